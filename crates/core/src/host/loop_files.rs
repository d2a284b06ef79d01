//! What lies around the journal: the state file, the lock beside it, the budget of the logs, and
//! files made ahead for the next iteration. Saving and making go on beside the driver.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use descartes_kernel::state::IterativeLoopState;
use descartes_proc::work_in_idle_moments;
use descartes_store::catalog::LoopMeta;
use descartes_store::host::HostInfo;
use descartes_store::layout::LoopDir;
use descartes_store::lock::StateLock;
use descartes_store::logs::{LoopLogs, PrunedRun, expect_run};
use descartes_store::prompts::{store_prompt, store_prompt_in};
use descartes_store::spare::{self, Spare};
use descartes_store::state_file::{StateFile, StateFileError, Touched};
use descartes_store::{IoError, Sync};
use jiff::Timestamp;

use super::HostError;
use super::background_worker::BackgroundWorker;
use crate::worktree::budget::{Budget, Dropped};

/// In folders of their own: who makes a file holds its folder for as long.
fn spare_state(dir: &LoopDir) -> PathBuf {
    dir.path().join("spare-state")
}

fn spare_prompt(dir: &LoopDir) -> PathBuf {
    dir.prompts().join("spare")
}

/// What came of a save, and where what it replaced is kept.
type Saved = (Result<(), StateFileError>, Option<PathBuf>);

/// Copies of edited state files that one host keeps; whoever edits it more often has been told.
const MOST_EDITS: u32 = 3;

/// What a host looks after.
pub(crate) struct LoopFiles {
    pub(crate) lock: StateLock,
    /// The loop's description, and how its host is found: written again where they were deleted.
    pub(crate) meta: Option<LoopMeta>,
    pub(crate) info: HostInfo,
    path: PathBuf,
    /// Held by whoever saves it.
    state_file: Arc<Mutex<StateFile>>,
    /// The answer of a save that was begun.
    saving: Option<Receiver<Saved>>,
    /// Where a state file is kept that somebody wrote meanwhile; how often there was one.
    edited: Option<PathBuf>,
    edits_kept: u32,
    dir: LoopDir,
    logs: Logs,
    spares: Spares,
    /// Two threads: a save does not wait for files that are being made.
    saver: Option<BackgroundWorker>,
    maker: Option<BackgroundWorker>,
    /// Nothing is to be made any more.
    closed: Arc<AtomicBool>,
    /// Snapshots that had to go.
    drops: (Sender<Dropped>, Receiver<Dropped>),
}

/// Files made ahead, as far as they are ready.
struct Spares {
    made: Receiver<(Use, Spare)>,
    makes: Sender<(Use, Spare)>,
    state: Option<Spare>,
    prompt: Option<Spare>,
}

/// What a spare file is for.
enum Use {
    State,
    Prompt,
}

impl Spares {
    fn new() -> Self {
        let (makes, made) = channel();
        Self {
            made,
            makes,
            state: None,
            prompt: None,
        }
    }

    /// Takes in what has been made by now.
    fn look(&mut self) {
        for (what, spare) in self.made.try_iter() {
            match what {
                Use::State => self.state = Some(spare),
                Use::Prompt => self.prompt = Some(spare),
            }
        }
    }
}

/// The budget of all logs.
struct Logs {
    budget: Arc<Mutex<LoopLogs>>,
    /// The run whose logs are not counted yet.
    uncounted: Option<u64>,
    /// Those that had to go.
    pruned: Receiver<PrunedRun>,
    prunes: Sender<PrunedRun>,
}

impl Logs {
    fn new(budget: LoopLogs) -> Self {
        let (prunes, pruned) = channel();
        Self {
            budget: Arc::new(Mutex::new(budget)),
            uncounted: None,
            pruned,
            prunes,
        }
    }

    /// Counts the logs of the last run; the oldest ones go when all outgrow their budget.
    fn count(&mut self) -> Option<impl FnOnce() + Send + 'static> {
        let run = self.uncounted.take()?;
        let (budget, prunes) = (Arc::clone(&self.budget), self.prunes.clone());
        Some(move || {
            let mut budget = budget.lock().unwrap_or_else(PoisonError::into_inner);
            // What cannot be counted or removed now is met again with the next run.
            for gone in budget.add(run).unwrap_or_default() {
                let _ = prunes.send(gone);
            }
        })
    }
}

impl LoopFiles {
    pub(super) fn new(
        dir: LoopDir,
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
            path: state_file.path().to_owned(),
            state_file: Arc::new(Mutex::new(state_file)),
            saving: None,
            edited: None,
            edits_kept: 0,
            dir,
            logs: Logs::new(logs),
            spares: Spares::new(),
            saver: None,
            maker: None,
            closed: Arc::default(),
            drops: channel(),
        }
    }

    /// Where the state file really lies.
    pub(super) fn state_file(&self) -> &Path {
        &self.path
    }

    /// Begins to replace the state file, beside what the caller does until it asks
    /// [`saved`](Self::saved).
    pub(super) fn save(&mut self, state: IterativeLoopState, seq: u64) {
        self.spares.look();
        let spare = self.spares.state.take();
        let file = Arc::clone(&self.state_file);
        let (answer, saving) = channel();
        self.saving = Some(saving);
        let keep = self.edits_kept < MOST_EDITS;
        self.saver().run(Box::new(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let edited = keep && file.touched() == Touched::Edited;
            // What cannot be copied is replaced all the same: the journal is what counts.
            let edited = edited.then(|| file.keep_edited(Timestamp::now()).ok());
            let saved = match spare {
                Some(spare) => file.save_in(&state, seq, spare),
                None => file.save(&state, seq, Sync::Lazy),
            };
            // Nobody asks any more where the host has given up.
            let _ = answer.send((saved, edited.flatten()));
        }));
    }

    /// Waits for the save that was begun last; `None` where none was.
    pub(super) fn saved(&mut self) -> Option<Result<(), HostError>> {
        let answer = self.saving.take()?.recv();
        let lost = || HostError::Internal("the thread that saves the state was lost".to_owned());
        Some(answer.map_err(|_| lost()).and_then(|(saved, edited)| {
            if let Some(edited) = edited {
                self.edits_kept += 1;
                self.edited = Some(edited);
            }
            Ok(saved?)
        }))
    }

    /// Where a state file is kept that somebody wrote while the loop ran, once.
    pub(super) fn take_edited(&mut self) -> Option<PathBuf> {
        self.edited.take()
    }

    /// Keeps a prompt as it is sent; gives its hash.
    pub(super) fn store_prompt(&mut self, text: &str) -> Result<String, IoError> {
        self.spares.look();
        match self.spares.prompt.take() {
            Some(spare) => store_prompt_in(&self.dir, text, spare),
            None => store_prompt(&self.dir, text, Sync::Lazy),
        }
    }

    /// Makes room among the snapshots beside the driver; what went is told by
    /// [`dropped`](Self::dropped).
    pub(super) fn keep_snapshots(&mut self, budget: Budget) {
        let drops = self.drops.0.clone();
        let thread = std::thread::Builder::new().name("snapshots".to_owned());
        // At the driver's own priority, since it may wait for it. Where no thread can be had now,
        // it is tried again with the next run.
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

    /// The agent of this run is being started: the folder of its output is made, then what the end
    /// of its iteration and the next one need; and the logs of the last one are counted.
    pub(super) fn make_ahead(&mut self, run: u64) {
        let folder = self.dir.run(run);
        self.make(move || {
            // Where it cannot be made now, the first bytes meet the same trouble, and it is told.
            let _ = expect_run(&folder);
        });
        self.spares.look();
        let wanted = [
            (
                self.spares.state.is_none(),
                Use::State,
                spare_state(&self.dir),
            ),
            (
                self.spares.prompt.is_none(),
                Use::Prompt,
                spare_prompt(&self.dir),
            ),
        ];
        for (wanted, what, path) in wanted {
            let (makes, closed) = (self.spares.makes.clone(), Arc::clone(&self.closed));
            if wanted {
                self.make(move || {
                    // Where it cannot be made now, it is made when it is needed, and told.
                    if let Ok(spare) = Spare::make(path.clone()) {
                        let _ = makes.send((what, spare));
                    }
                    // The folder was closed, and swept, in between.
                    if closed.load(Ordering::Acquire) {
                        let _ = spare::remove(&path);
                    }
                });
            }
        }
        if let Some(count) = self.logs.count() {
            self.saver().run(Box::new(count));
        }
    }

    /// This run is over; its logs are counted when the next one starts, or at the end.
    pub(super) fn run_is_over(&mut self, run: u64) {
        self.logs.uncounted = Some(run);
    }

    /// The logs that had to go, as far as is known.
    pub(super) fn pruned(&self) -> Vec<PrunedRun> {
        self.logs.pruned.try_iter().collect()
    }

    /// All of them: there is no next run.
    pub(super) fn pruned_at_last(&mut self) -> Vec<PrunedRun> {
        // Joined: whatever was being counted is counted.
        self.saver = None;
        if let Some(count) = self.logs.count() {
            count();
        }
        self.pruned()
    }

    fn saver(&mut self) -> &BackgroundWorker {
        self.saver
            .get_or_insert_with(|| BackgroundWorker::new("saver", || {}))
    }

    /// Nobody waits for these: on a busy machine they may take their time.
    fn make(&mut self, job: impl FnOnce() + Send + 'static) {
        let closed = Arc::clone(&self.closed);
        let maker = self
            .maker
            .get_or_insert_with(|| BackgroundWorker::new("maker", work_in_idle_moments));
        maker.run(Box::new(move || {
            if !closed.load(Ordering::Acquire) {
                job();
            }
        }));
    }
}

impl Drop for LoopFiles {
    fn drop(&mut self) {
        drop(self.saver.take());
        let Some(maker) = self.maker.take() else {
            return;
        };
        self.closed.store(true, Ordering::Release);
        maker.leave();
        for path in [spare_state(&self.dir), spare_prompt(&self.dir)] {
            // Empty, or an old state: it does no harm.
            let _ = spare::remove(&path);
        }
    }
}

/// What was said last of something that may go wrong again and again.
#[derive(Default)]
pub(crate) struct LastWarning(Option<String>);

impl LastWarning {
    /// The words, unless they were the last ones; `None` is for all is well.
    pub(super) fn news(&mut self, words: Option<String>) -> Option<String> {
        if self.0 == words {
            return None;
        }
        self.0.clone_from(&words);
        words
    }

    pub(super) fn last(&self) -> Option<String> {
        self.0.clone()
    }
}

/// The last words on each.
#[derive(Default)]
pub(crate) struct Warnings {
    pub(super) state_file: LastWarning,
    pub(super) lock: LastWarning,
    pub(super) measure: LastWarning,
    /// Whether it was said that snapshots had to go.
    pub(super) dropped: bool,
}
