//! How a loop stands, without reading its whole history: journals hold checkpoints, and only
//! what stands behind the last one is folded. The fold is the same, so the answer is, too.

use std::path::Path;

use descartes_kernel::event::{Event, Record};
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{Fold, fold_end};
use descartes_store::journal::{JournalReader, end_from};

use crate::ClientError;

/// Records that are looked at from the end before the journal is read from its beginning.
const NEAR: usize = 4096;

/// The state, and the place in the journal behind the last record in it.
pub(crate) fn read(journal: &Path) -> Result<(LoopState, u64), ClientError> {
    let begins = |record: &Record| {
        matches!(
            record.event,
            Event::Checkpoint { .. } | Event::LoopCreated { .. }
        )
    };
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
