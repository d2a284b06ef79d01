//! What lies around the journal: the state file, the lock beside it, the budget of the logs, the
//! next run's prompt and folder.
//!
//! Making a file takes longer than a durable append, so all that an iteration's end and the next
//! one's start need is made in a thread of its own, while the journal waits for the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use descartes_kernel::state::IterativeLoopState;
use descartes_store::Sync;
use descartes_store::layout::LoopDir;
use descartes_store::lock::{LockError, StateLock};
use descartes_store::logs::{LoopLogs, PrunedRun, expect_run};
use descartes_store::prompts::store_prompt;
use descartes_store::state_file::{Staged, StateFile, StateFileError};

/// What a host looks after at each iteration's end.
pub(crate) struct House {
    state_file: PathBuf,
    rooms: Arc<Mutex<Rooms>>,
    aside: Option<Aside>,
}

/// What only one at a time may use.
pub(crate) struct Rooms {
    pub(crate) lock: StateLock,
    pub(crate) state_file: StateFile,
    pub(crate) logs: LoopLogs,
}

/// What an iteration leaves to be put in order.
pub(super) struct Left {
    pub(super) state: IterativeLoopState,
    pub(super) seq: u64,
    pub(super) run: u64,
    pub(super) next: Option<NextRun>,
}

/// The run that will start, unless something comes in between.
pub(super) struct NextRun {
    pub(super) dir: LoopDir,
    pub(super) run: u64,
    pub(super) prompt: String,
}

/// How it went. The state file lies ready beside its place.
pub(super) struct Ready {
    pub(super) lock: Result<(), LockError>,
    pub(super) pruned: Vec<PrunedRun>,
    pub(super) staged: Result<Staged, StateFileError>,
}

impl House {
    pub(super) fn new(rooms: Rooms) -> Self {
        Self {
            state_file: rooms.state_file.path().to_owned(),
            rooms: Arc::new(Mutex::new(rooms)),
            aside: None,
        }
    }

    /// Where the state file really lies.
    pub(super) fn state_file(&self) -> &Path {
        &self.state_file
    }

    pub(crate) fn rooms(&self) -> MutexGuard<'_, Rooms> {
        enter(&self.rooms)
    }

    /// Begins to put things in order. The answer comes when what the next start needs is there;
    /// nothing comes where the thread was lost.
    pub(super) fn put_in_order(&mut self, left: Left) -> Receiver<Ready> {
        let (done, ready) = channel();
        let rooms = Arc::clone(&self.rooms);
        self.aside
            .get_or_insert_with(Aside::new)
            .run(Box::new(move || {
                let Left {
                    state,
                    seq,
                    run,
                    next,
                } = left;
                let mut rooms = enter(&rooms);
                let news = Ready {
                    lock: rooms.lock.keep(),
                    // What cannot be counted or removed now is met again with the next run.
                    pruned: rooms.logs.add(run).unwrap_or_default(),
                    staged: rooms.state_file.stage(&state, seq, Sync::Lazy),
                };
                drop(rooms);
                // Trouble with these is met again, and told, when they are needed.
                if let Some(next) = &next {
                    let _ = store_prompt(&next.dir, &next.prompt, Sync::Lazy);
                }
                // The driver may have given up.
                let _ = done.send(news);
                if let Some(next) = &next {
                    let _ = expect_run(&next.dir.run(next.run));
                }
            }));
        ready
    }
}

fn enter(rooms: &Mutex<Rooms>) -> MutexGuard<'_, Rooms> {
    rooms.lock().unwrap_or_else(PoisonError::into_inner)
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
