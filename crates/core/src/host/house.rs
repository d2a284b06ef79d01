//! What lies around the journal: the state file, the lock beside it, the budget of the logs, and
//! files made ahead for the next iteration, in a thread of their own.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use descartes_kernel::state::IterativeLoopState;
use descartes_store::layout::LoopDir;
use descartes_store::lock::StateLock;
use descartes_store::logs::{LoopLogs, PrunedRun, expect_run};
use descartes_store::prompts::{store_prompt, store_prompt_in};
use descartes_store::spare::{self, Spare};
use descartes_store::state_file::{StateFile, StateFileError};
use descartes_store::{IoError, Sync};

use super::HostError;

/// The names of the spare files.
const STATE: &str = "state";
const PROMPT: &str = "prompt";

/// What a host looks after.
pub(crate) struct House {
    pub(crate) lock: StateLock,
    path: PathBuf,
    /// Held by whoever saves it.
    state_file: Arc<Mutex<StateFile>>,
    /// The answer of a save that was begun.
    saving: Option<Receiver<Result<(), StateFileError>>>,
    dir: LoopDir,
    logs: LoopLogs,
    /// The run whose logs are not counted yet.
    uncounted: Option<u64>,
    spares: Spares,
    aside: Option<Aside>,
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

impl House {
    pub(super) fn new(
        dir: LoopDir,
        lock: StateLock,
        state_file: StateFile,
        logs: LoopLogs,
    ) -> Self {
        Self {
            lock,
            path: state_file.path().to_owned(),
            state_file: Arc::new(Mutex::new(state_file)),
            saving: None,
            dir,
            logs,
            uncounted: None,
            spares: Spares::new(),
            aside: None,
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
        self.aside(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let saved = match spare {
                Some(spare) => file.save_in(&state, seq, spare),
                None => file.save(&state, seq, Sync::Lazy),
            };
            // Nobody asks any more where the host has given up.
            let _ = answer.send(saved);
        });
    }

    /// Waits for the save that was begun last; `None` where none was.
    pub(super) fn saved(&mut self) -> Option<Result<(), HostError>> {
        let answer = self.saving.take()?.recv();
        let lost = || HostError::Internal("the thread that saves the state was lost".to_owned());
        Some(answer.map_err(|_| lost()).and_then(|saved| Ok(saved?)))
    }

    /// Keeps a prompt as it is sent; gives its hash.
    pub(super) fn store_prompt(&mut self, text: &str) -> Result<String, IoError> {
        self.spares.look();
        match self.spares.prompt.take() {
            Some(spare) => store_prompt_in(&self.dir, text, spare),
            None => store_prompt(&self.dir, text, Sync::Lazy),
        }
    }

    /// An agent works now: what the end of its iteration and the next one need is made.
    pub(super) fn make_spares(&mut self) {
        self.spares.look();
        let wanted = [
            (self.spares.state.is_none(), Use::State, STATE),
            (self.spares.prompt.is_none(), Use::Prompt, PROMPT),
        ];
        for (wanted, what, name) in wanted {
            let (path, makes) = (self.dir.spare(name), self.spares.makes.clone());
            if wanted {
                self.aside(move || {
                    // Where it cannot be made now, it is made when it is needed, and told.
                    if let Ok(spare) = Spare::make(path) {
                        let _ = makes.send((what, spare));
                    }
                });
            }
        }
    }

    /// This run is about to start.
    pub(super) fn expect_run(&mut self, run: u64) {
        let folder = self.dir.run(run);
        self.aside(move || {
            // As with spare files.
            let _ = expect_run(&folder);
        });
    }

    /// This run is over; its logs are counted soon.
    pub(super) fn run_is_over(&mut self, run: u64) {
        self.uncounted = Some(run);
    }

    /// Counts the logs of the last run; the oldest ones go when all outgrow their budget.
    pub(super) fn count_logs(&mut self) -> Vec<PrunedRun> {
        match self.uncounted.take() {
            // What cannot be counted or removed now is met again with the next run.
            Some(run) => self.logs.add(run).unwrap_or_default(),
            None => Vec::new(),
        }
    }

    fn aside(&mut self, job: impl FnOnce() + Send + 'static) {
        self.aside.get_or_insert_with(Aside::new).run(Box::new(job));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.aside.take().is_some() {
            for name in [STATE, PROMPT] {
                // Empty, or an old state: it does no harm.
                let _ = spare::remove(&self.dir.spare(name));
            }
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does one job after the other. Dropped, it finishes what it was given.
struct Aside {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Aside {
    /// Where no thread can be had, jobs are done by whoever gives them.
    fn new() -> Self {
        let (jobs, given) = channel::<Job>();
        let named = thread::Builder::new().name("house".to_owned());
        match named.spawn(move || given.into_iter().for_each(|job| job())) {
            Ok(thread) => Self {
                jobs: Some(jobs),
                thread: Some(thread),
            },
            Err(_) => Self {
                jobs: None,
                thread: None,
            },
        }
    }

    fn run(&self, job: Job) {
        let refused = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|SendError(job)| job),
            None => Some(job),
        };
        if let Some(job) = refused {
            job();
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What was said last of something that may go wrong again and again.
#[derive(Default)]
pub(crate) struct Said(Option<String>);

impl Said {
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
pub(crate) struct Troubles {
    pub(super) state_file: Said,
    pub(super) lock: Said,
}
