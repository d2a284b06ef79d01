//! What lies around the journal: the state file, the lock beside it, and the room that logs and
//! snapshots may take.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use descartes_kernel::state::IterativeLoopState;
use descartes_store::Sync;
use descartes_store::catalog::LoopMeta;
use descartes_store::host::HostInfo;
use descartes_store::lock::StateLock;
use descartes_store::logs::{LoopLogs, PrunedRun};
use descartes_store::state_file::{StateFile, StateFileError, Touched};
use jiff::Timestamp;

use crate::worktree::budget::{Budget, Dropped};

/// Copies of edited state files that one host keeps; whoever edits it more often has been told.
const MOST_EDITS: u32 = 3;

/// What a host looks after.
pub(crate) struct LoopFiles {
    pub(crate) lock: StateLock,
    /// The loop's description, and how its host is found: written again where they were deleted.
    pub(crate) meta: Option<LoopMeta>,
    pub(crate) info: HostInfo,
    state_file: StateFile,
    /// Where a state file is kept that somebody wrote meanwhile; how often there was one.
    edited: Option<PathBuf>,
    edits_kept: u32,
    logs: Logs,
    /// Snapshots that had to go.
    drops: (Sender<Dropped>, Receiver<Dropped>),
}

/// The budget of all logs. Counted beside the driver: there may be much to delete.
struct Logs {
    budget: Arc<Mutex<LoopLogs>>,
    /// Runs that are over and whose logs are not counted yet.
    uncounted: Vec<u64>,
    counting: Option<JoinHandle<Vec<PrunedRun>>>,
}

impl Logs {
    /// Waits for what is being counted.
    fn counted(&mut self) -> Vec<PrunedRun> {
        let counting = self.counting.take().map(JoinHandle::join);
        counting.and_then(Result::ok).unwrap_or_default()
    }
}

/// Counts the logs of these runs; the oldest ones go when all outgrow their budget.
fn count(budget: &Mutex<LoopLogs>, runs: &[u64]) -> Vec<PrunedRun> {
    let mut budget = budget.lock().unwrap_or_else(PoisonError::into_inner);
    // What cannot be counted or removed now is met again with the next run.
    let pruned = runs
        .iter()
        .flat_map(|run| budget.add(*run).unwrap_or_default());
    pruned.collect()
}

impl LoopFiles {
    pub(super) fn new(
        lock: StateLock,
        state_file: StateFile,
        logs: LoopLogs,
        meta: Option<LoopMeta>,
        info: HostInfo,
    ) -> Self {
        Self {
            lock,
            meta,
            info,
            state_file,
            edited: None,
            edits_kept: 0,
            logs: Logs {
                budget: Arc::new(Mutex::new(logs)),
                uncounted: Vec::new(),
                counting: None,
            },
            drops: channel(),
        }
    }

    /// Where the state file really lies.
    pub(super) fn state_file(&self) -> &Path {
        self.state_file.path()
    }

    /// Replaces the state file; what somebody else wrote there is kept first.
    pub(super) fn save(
        &mut self,
        state: &IterativeLoopState,
        seq: u64,
    ) -> Result<(), StateFileError> {
        // What cannot be copied is replaced all the same: the journal is what counts.
        if self.edits_kept < MOST_EDITS
            && self.state_file.touched() == Touched::Edited
            && let Ok(copy) = self.state_file.keep_edited(Timestamp::now())
        {
            self.edits_kept += 1;
            self.edited = Some(copy);
        }
        self.state_file.save(state, seq, Sync::Lazy)
    }

    /// Where a state file is kept that somebody wrote while the loop ran, once.
    pub(super) fn take_edited(&mut self) -> Option<PathBuf> {
        self.edited.take()
    }

    /// Makes room among the snapshots beside the driver; what went is told by
    /// [`dropped`](Self::dropped).
    pub(super) fn keep_snapshots(&mut self, budget: Budget) {
        let drops = self.drops.0.clone();
        let thread = thread::Builder::new().name("snapshots".to_owned());
        // Where no thread can be had now, it is tried again with the next run.
        drop(thread.spawn(move || {
            if let Some(dropped) = budget.keep() {
                let _ = drops.send(dropped);
            }
        }));
    }

    /// Snapshots that had to go.
    pub(super) fn dropped(&mut self) -> Option<Dropped> {
        self.drops.1.try_iter().last()
    }

    /// This run is over; its logs are counted while the next one works, or at the end.
    pub(super) fn run_is_over(&mut self, run: u64) {
        self.logs.uncounted.push(run);
    }

    /// An agent works: the logs of the runs before it are counted, unless others still are.
    pub(super) fn count_logs(&mut self) {
        if self.logs.counting.is_some() || self.logs.uncounted.is_empty() {
            return;
        }
        let (budget, runs) = (Arc::clone(&self.logs.budget), self.logs.uncounted.clone());
        let thread = thread::Builder::new().name("logs".to_owned());
        // Where no thread can be had now, it is tried again with the next run.
        if let Ok(counting) = thread.spawn(move || count(&budget, &runs)) {
            self.logs.uncounted.clear();
            self.logs.counting = Some(counting);
        }
    }

    /// The logs that had to go, as far as is known.
    pub(super) fn pruned(&mut self) -> Vec<PrunedRun> {
        match &self.logs.counting {
            Some(counting) if counting.is_finished() => self.logs.counted(),
            _ => Vec::new(),
        }
    }

    /// All of them: there is no next run.
    pub(super) fn pruned_at_last(&mut self) -> Vec<PrunedRun> {
        let mut pruned = self.logs.counted();
        let rest = std::mem::take(&mut self.logs.uncounted);
        pruned.extend(count(&self.logs.budget, &rest));
        pruned
    }
}

impl Drop for LoopFiles {
    /// Nothing is deleted any more once another host may take the lock.
    fn drop(&mut self) {
        self.logs.counted();
    }
}

/// What was said last of something that may go wrong again and again.
#[derive(Default)]
pub(crate) struct LastWarning(Option<String>);

impl LastWarning {
    /// The message, unless they were the last ones; `None` is for all is well.
    pub(super) fn news(&mut self, message: Option<String>) -> Option<String> {
        if self.0 == message {
            return None;
        }
        self.0.clone_from(&message);
        message
    }

    pub(super) fn last(&self) -> Option<String> {
        self.0.clone()
    }
}

/// The last message on each.
#[derive(Default)]
pub(crate) struct Warnings {
    pub(super) state_file: LastWarning,
    pub(super) lock: LastWarning,
    pub(super) measure: LastWarning,
    /// Whether it was said that measuring takes long.
    pub(super) slow_measure: bool,
    /// Whether it was said that snapshots had to go.
    pub(super) dropped: bool,
}
