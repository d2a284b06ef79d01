//! How a loop stands, without reading its whole history: journals hold checkpoints, and only
//! what stands behind the last one is folded. The fold is the same, so the answer is, too.

use std::path::Path;

use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{Fold, fold_end};
use descartes_store::journal::{JournalReader, end_from, last_records};

use crate::ClientError;

/// Records that are looked at from the end before the journal is read from its beginning.
const NEAR: usize = 4096;

/// A fold can begin with it.
fn begins(record: &Record) -> bool {
    matches!(
        record.event,
        Event::Checkpoint { .. } | Event::LoopCreated { .. }
    )
}

/// The state and its place, and the last records, `count` or more, that lead there: one way through the
/// end of the journal for all of it.
pub(crate) fn read_with_records(
    journal: &Path,
    count: usize,
) -> Result<(LoopState, u64, Vec<Record>), ClientError> {
    let (mut seen, mut can_begin) = (0, false);
    let enough = |record: &Record| {
        seen += 1;
        can_begin |= begins(record);
        can_begin && seen >= count || matches!(record.event, Event::LoopCreated { .. })
    };
    if let Some(end) = end_from(journal, NEAR.max(count), enough)?
        && let Some(begin) = end.records.iter().rposition(begins)
        && let Some(state) = fold_end(&end.records[begin..])?
    {
        return Ok((state, end.offset, end.records));
    }
    let mut records = last_records(journal, count)?;
    let (state, offset) = read(journal)?;
    records.retain(|record| record.seq <= state.seq);
    Ok((state, offset, records))
}

/// The state, and the place in the journal behind the last record in it.
pub(crate) fn read(journal: &Path) -> Result<(LoopState, u64), ClientError> {
    if let Some(end) = end_from(journal, NEAR, begins)?
        && let Some(state) = fold_end(&end.records)?
    {
        return Ok((state, end.offset));
    }
    read_all(journal)
}

/// The same by way of every record: the reference, and the way through journals without
/// checkpoints.
pub(crate) fn read_all(journal: &Path) -> Result<(LoopState, u64), ClientError> {
    let mut reader = JournalReader::open(journal)?;
    let mut fold = Fold::default();
    reader.for_each_new(|record| fold.push(&record))?;
    match fold.finish()? {
        Some(state) => Ok((state, reader.offset())),
        None => Err(ClientError::Empty(journal.to_owned())),
    }
}
