//! What is known of the loop that a person looks at: what is wanted of it, and what was read.

use std::sync::Arc;

use descartes_agents::reader::Source;
use descartes_client::logs::LogWindow;
use descartes_kernel::state::LoopState;
use descartes_views::view::{Head, HistoryRow, Life, NoteRow, Remark, WaitRow};

/// What the screen needs; the reader gets it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Want {
    /// The loop that is looked at.
    pub id: Option<String>,
    /// The first row of the history that is shown; `None`: the newest rows.
    pub row: Option<u64>,
    /// The output that is shown.
    pub log: Option<LogWant>,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq)]
pub struct LogWant {
    /// Of which loop: for a task loop it is the loop of one of its tasks.
    pub id: String,
    /// Of which iteration; `None`: the newest.
    pub iteration: Option<u32>,
    /// Of which stream.
    pub source: Source,
    /// Where in it.
    pub place: LogPlace,
}

/// A place in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogPlace {
    /// The end, as it grows.
    #[default]
    Follow,
    /// The line at this byte.
    At(u64),
    /// So many thousandths of it; becomes a byte once the size is known.
    Share(u16),
}

/// Rows of the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Place of the first in the whole history, from 0.
    pub from: u64,
    pub rows: Vec<HistoryRow>,
    /// How many there are in all; the one under way is the last.
    pub total: u64,
}

impl Rows {
    /// The row at this place, if it was read.
    pub fn get(&self, place: u64) -> Option<&HistoryRow> {
        let index = place.checked_sub(self.from)?;
        self.rows.get(usize::try_from(index).ok()?)
    }
}

/// Output that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogView {
    /// Of which iteration.
    pub iteration: u32,
    /// Of which run.
    pub run: u64,
    pub window: LogWindow,
    /// Where a share of the log turned out to be.
    pub at: Option<u64>,
}

/// What was read of a loop. Parts are shared: a line of output copies nothing else.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    pub id: String,
    /// How it stands; `None` where that cannot be told.
    pub standing: Option<Arc<LoopView>>,
    /// A part of its history.
    pub rows: Arc<Rows>,
    /// Output; or why there is none.
    pub log: Option<Result<Arc<LogView>, String>>,
    /// What is wrong with its files.
    pub trouble: Option<String>,
}

/// How a loop stands, and what happened beside its iterations, newest last.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopView {
    pub state: LoopState,
    /// Whether a process has it.
    pub life: Life,
    /// The first lines.
    pub head: Head,
    pub waits: Vec<WaitRow>,
    pub notes: Vec<NoteRow>,
    pub remarks: Vec<Remark>,
}
