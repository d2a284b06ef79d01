//! Repairs a damaged journal on a person's request. The damaged file is kept.

use super::line::{self, BadLine};
use super::{JournalError, scan};
use crate::ops::{self, Sync};
use descartes_kernel::event::{Event, FORMAT, Record};
use descartes_kernel::state::LoopState;
use descartes_kernel::transition::{IllegalEvent, apply, begin};
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Where the damaged file was kept; `None` where nothing was damaged and nothing was changed.
    pub copy: Option<PathBuf>,
    /// Lines as they were.
    pub kept: u64,
    /// Damaged and missing lines.
    pub damaged: u64,
    /// Whole lines that were dropped too, since they cannot follow without the damaged ones.
    pub dependent: u64,
}

#[derive(Serialize)]
struct LineLost {
    kind: &'static str,
}

/// Rewrites the journal without its damaged lines. Each lost number is marked by a `line_lost`
/// event. Where the loop's state cannot be told without a lost line, the journal ends before it; a
/// journal without its first line, or without any, is removed. The caller holds the loop's lock.
pub fn repair(path: &Path) -> Result<Repaired, JournalError> {
    let raw = ops::read(path)?;
    let mut done = Repaired {
        copy: None,
        kept: 0,
        damaged: 0,
        dependent: 0,
    };
    let (mut out, mut scratch) = (Vec::with_capacity(raw.len()), Vec::new());
    let (mut state, mut byte, mut marks) = (None, 0, 0);
    for text in raw.split(|byte| *byte == b'\n') {
        let start = byte;
        byte += text.len() as u64 + 1;
        let record = match line::decode(text, &mut scratch) {
            Ok((head, _)) if head.v > FORMAT => return Err(newer(path, head.v)),
            Ok((_, record)) => record,
            Err(BadLine::Unreadable { v, why }) => {
                return Err(scan::unreadable(path, start, v, why));
            }
            Err(BadLine::Damaged(_)) => {
                done.damaged += u64::from(!text.is_empty());
                continue;
            }
        };
        let next_seq = state.as_ref().map_or(0, |state: &LoopState| state.seq + 1);
        if record.seq < next_seq {
            // A line twice: the first one counts.
            done.damaged += 1;
            continue;
        }
        let lost = next_seq..record.seq;
        if done.dependent == 0 {
            marks += record.seq - next_seq;
        }
        if done.dependent > 0 || fold(&mut state, lost.clone(), &record).is_err() {
            done.dependent += 1;
            continue;
        }
        for seq in lost {
            let event = LineLost { kind: "line_lost" };
            line::encode(&mut out, seq, record.at, &event).map_err(JournalError::Encode)?;
        }
        out.extend_from_slice(text);
        out.push(b'\n');
        done.kept += 1;
    }
    // A damaged line end joins two lines, a removed line leaves nothing: the numbers tell.
    done.damaged = done.damaged.max(marks);
    if done.damaged > 0 || done.kept == 0 {
        let copy = done.copy.insert(free_name(path));
        ops::replace(copy, &raw, Sync::Durable)?;
        match out.is_empty() {
            true => ops::remove_file(path)?,
            false => ops::replace(path, &out, Sync::Durable)?,
        }
    }
    Ok(done)
}

/// Whether a record can follow when those before it are lost.
fn fold(
    state: &mut Option<LoopState>,
    lost: Range<u64>,
    record: &Record,
) -> Result<(), IllegalEvent> {
    let unknown = |seq| Record {
        v: record.v,
        seq,
        at: record.at,
        event: Event::Unknown,
    };
    let Some(state) = state else {
        *state = Some(begin(record)?);
        return Ok(());
    };
    for seq in lost {
        apply(state, &unknown(seq))?;
    }
    apply(state, record)
}

fn newer(path: &Path, found: u32) -> JournalError {
    JournalError::Newer {
        path: path.to_owned(),
        found,
    }
}

fn free_name(path: &Path) -> PathBuf {
    let first = ops::beside(path, ".damaged");
    let more = (2u32..).map(|count| ops::beside(path, &format!(".damaged-{count}")));
    std::iter::once(first)
        .chain(more)
        .find(|name| !crate::safe_open::is_there(name))
        .unwrap_or_default()
}
