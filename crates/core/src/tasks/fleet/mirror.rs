//! At the coordinator: the loop of a task that a worker runs, as a loop folder like any other. Its journal
//! and logs are copied as they are written, its lock is held while the attempt is under way, and commands
//! to it are passed on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use descartes_bridge::{EngineError, subject};
use descartes_store::catalog::{self, LoopMeta};
use descartes_store::host::{HostInfo, this_host};
use descartes_store::lock::{Holder, StateLock};
use descartes_store::mirror::FolderCopy;
use jiff::Timestamp;
use serde_json::json;
use tracing::{debug, info, warn};

use super::messages::{MirrorNews, MirrorRequest, MirroredLoop};
use super::relay::{Relay, RelayTarget};
use super::shared::{AttemptInput, FleetShared};

/// In `meta.json`: the worker that runs the loop.
const WORKER: &str = "worker";
/// In `meta.json` of a copy: the number of the offer that it was last copied for.
const MIRROR: &str = "mirror";

/// A request is held by the worker for five seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// After a request without an answer.
const REST: Duration = Duration::from_millis(250);
/// How long the rest of a finished attempt is waited for.
const FINISH_PATIENCE: Duration = Duration::from_secs(20);
/// So many requests without an answer, one after the other, end that.
const LAST_TRIES: u32 = 8;
/// Logs of one loop where there is no limit of the user's own.
const MOST_LOGS: u64 = 10 << 30;

/// Whose loop is copied.
#[derive(Clone, Debug)]
pub(super) struct MirrorOf {
    pub(super) task: String,
    pub(super) worker: String,
    pub(super) epoch: u64,
    /// The name under which the attempt is reached.
    pub(super) child: String,
}

/// A copy that is kept up to date while an attempt is under way.
pub(super) struct Mirror {
    shared: Arc<MirrorShared>,
    /// Closed when the copy is complete, or cannot become so.
    ended: Receiver<()>,
}

struct MirrorShared {
    fleet: Arc<FleetShared>,
    of: MirrorOf,
    /// Where it is told that the loop is open.
    inputs: Sender<AttemptInput>,
    held: Mutex<Option<HeldCopy>>,
    /// It was told that the loop is open.
    told: AtomicBool,
    stopped: AtomicBool,
    finishing: AtomicBool,
    complete: AtomicBool,
}

/// The copy of a loop, held as a host holds its loop. The socket is closed before the lock is given back.
struct HeldCopy {
    relay: Relay,
    copy: FolderCopy,
    /// The loop that is copied.
    loop_id: String,
    meta: LoopMeta,
    registered: bool,
    _lock: StateLock,
}

/// What became of asking once.
enum Exchange {
    Going,
    /// Nothing more comes.
    Complete,
    /// The worker's state folder is this one: its loop is here as it is.
    Here,
}

impl Mirror {
    /// Begins to copy.
    pub(super) fn start(
        fleet: Arc<FleetShared>,
        of: MirrorOf,
        inputs: Sender<AttemptInput>,
    ) -> Option<Self> {
        let shared = Arc::new(MirrorShared {
            fleet,
            of,
            inputs,
            held: Mutex::default(),
            told: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            complete: AtomicBool::new(false),
        });
        let (end, ended) = channel();
        let run = shared.clone();
        let thread = std::thread::Builder::new().name("mirror".to_owned());
        let spawned = thread.spawn(move || {
            run.follow();
            drop(end);
        });
        match spawned {
            Ok(_) => Some(Self { shared, ended }),
            Err(error) => {
                warn!(%error, "a remote loop cannot be shown");
                None
            }
        }
    }

    /// The attempt is over and handed in: waits for the rest, as long as its worker is there. False where
    /// something is missing.
    pub(super) fn finish(self) -> bool {
        self.shared.finishing.store(true, Ordering::SeqCst);
        if self.ended.recv_timeout(FINISH_PATIENCE) == Err(RecvTimeoutError::Timeout) {
            debug!(of = ?self.shared.of, "the rest of a remote loop did not come in time");
        }
        self.shared.complete.load(Ordering::SeqCst)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // A request may be under way for seconds; nobody has the loop from now on.
        drop(self.shared.held().take());
    }
}

impl MirrorShared {
    fn held(&self) -> MutexGuard<'_, Option<HeldCopy>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.fleet.is_closed()
    }

    fn follow(&self) {
        let mut failures = 0;
        while !self.is_stopped() {
            match self.exchange() {
                Ok(Exchange::Going) => failures = 0,
                Ok(Exchange::Complete | Exchange::Here) => {
                    self.complete.store(true, Ordering::SeqCst);
                    return;
                }
                Err(message) => {
                    debug!(message, of = ?self.of, "a remote loop is not copied");
                    failures += 1;
                    if self.finishing.load(Ordering::SeqCst) && failures >= LAST_TRIES {
                        return;
                    }
                    std::thread::sleep(REST);
                }
            }
        }
    }

    /// Asks what is new, and takes it.
    fn exchange(&self) -> Result<Exchange, String> {
        let request = match &*self.held() {
            None => MirrorRequest::default(),
            Some(held) => MirrorRequest {
                copy: Some((held.loop_id.clone(), held.copy.end().clone())),
                answers: held.relay.answered(),
            },
        };
        let news = self.ask(&request).map_err(|error| error.to_string())?;
        let news = news.ok_or("an answer that nobody understands")?;
        let mut held = self.held();
        if self.is_stopped() {
            return Ok(Exchange::Going);
        }
        let Some(of) = &news.facts.of else {
            return Ok(match news.facts.over {
                true => Exchange::Complete,
                false => Exchange::Going,
            });
        };
        let is_known = held.as_ref().is_some_and(|held| held.loop_id == of.meta.id);
        if !is_known {
            drop(held.take());
            *held = self
                .open(of, &of.meta.id)
                .inspect_err(|_| self.tell_opened(of))?;
            return Ok(match held.is_some() {
                true => Exchange::Going,
                false => {
                    self.tell_opened(of);
                    Exchange::Here
                }
            });
        }
        if news.facts.other_journal {
            let next = held.take().map(|held| self.next_folder(&held));
            let Some(next) = next else {
                return Ok(Exchange::Going);
            };
            warn!(of = ?self.of, folder = next, "another journal than the one that was copied");
            *held = self.open(of, &next)?;
            return Ok(Exchange::Going);
        }
        match held.as_mut() {
            Some(held) => held.take_news(self, &news),
            None => Ok(Exchange::Going),
        }
    }

    /// Once others find the loop, so that who hears of it can look at it.
    fn tell_opened(&self, of: &MirroredLoop) {
        if self.told.swap(true, Ordering::SeqCst) {
            return;
        }
        let opened = AttemptInput::Opened {
            loop_id: of.meta.id.clone(),
            unheard: of.unheard,
            worker: self.of.worker.clone(),
        };
        // An attempt that is over is told nothing.
        drop(self.inputs.send(opened));
    }

    fn ask(&self, request: &MirrorRequest) -> Result<Option<MirrorNews>, EngineError> {
        let MirrorOf { worker, child, .. } = &self.of;
        let subject = subject::journal(&self.fleet.loop_id, worker, child);
        let body = serde_json::to_vec(request).unwrap_or_default();
        let answer = self
            .fleet
            .engine
            .request(&subject, &body, REQUEST_TIMEOUT)?;
        Ok(MirrorNews::decode(&answer))
    }

    /// A folder of this epoch's own, for a journal that is not the one that was copied.
    fn next_folder(&self, held: &HeldCopy) -> String {
        let first = format!("{}-{}", held.loop_id, self.of.epoch);
        match held.meta.id.strip_prefix(&first) {
            None => first,
            Some(number) => {
                let number: u32 = number.trim_start_matches('-').parse().unwrap_or(1);
                format!("{first}-{}", number + 1)
            }
        }
    }

    /// Takes the folder of a copy; `None` where the loop itself is there.
    fn open(&self, of: &MirroredLoop, folder: &str) -> Result<Option<HeldCopy>, String> {
        let settings = &self.fleet.settings;
        let dir = settings
            .root
            .loop_dir(folder)
            .map_err(|error| error.to_string())?;
        let there = catalog::find(&settings.root, folder).ok();
        if let Some(there) = there.filter(|there| there.meta.id == folder) {
            let extra = &there.meta.extra;
            if !extra.contains_key(MIRROR) {
                debug!(folder, "the loop itself is here");
                return Ok(None);
            }
            if extra.get("parent") != Some(&json!(self.fleet.loop_id)) {
                return Err(format!("{folder} is the copy of another task loop's"));
            }
        }
        let MirrorOf {
            task,
            worker,
            epoch,
            child,
        } = &self.of;
        let mut meta = LoopMeta {
            id: folder.to_owned(),
            // In its own folder: the file that the worker keeps is on another machine.
            state_file: dir.path().join("state.json"),
            ..of.meta.clone()
        };
        let extra = [
            ("parent", json!(self.fleet.loop_id)),
            ("task", json!(task)),
            (WORKER, json!(worker)),
            (MIRROR, json!(epoch)),
        ];
        let extra = extra.map(|(name, value)| (name.to_owned(), value));
        meta.extra = extra.into_iter().collect();
        let facts = this_host(&settings.version);
        let holder = Holder {
            loop_id: folder.to_owned(),
            since: Timestamp::now(),
            host: facts.clone(),
        };
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let most = settings.max_logs.unwrap_or(MOST_LOGS);
        let copy = FolderCopy::open(dir.clone(), most).map_err(|error| said(&error))?;
        let mut lock = StateLock::acquire(&settings.root, &meta.state_file, &holder)
            .map_err(|error| said(&error))?;
        let target = RelayTarget {
            engine: self.fleet.engine.clone(),
            subject: subject::control(&self.fleet.loop_id, worker, child),
            worker: worker.clone(),
            task: task.clone(),
        };
        let relay = Relay::listen(target, &settings.paths, folder, &dir);
        let socket = relay.path();
        if let Some(socket) = &socket {
            lock.set_socket(socket).map_err(|error| said(&error))?;
        }
        let info = HostInfo { facts, socket };
        info.write(&dir).map_err(|error| said(&error))?;
        info!(folder, worker, task, "copying a remote loop");
        let mut held = HeldCopy {
            relay,
            copy,
            loop_id: of.meta.id.clone(),
            meta,
            registered: false,
            _lock: lock,
        };
        held.register(&self.fleet)?;
        Ok(Some(held))
    }
}

impl HeldCopy {
    /// Others find it once there is something to be seen.
    fn register(&mut self, fleet: &FleetShared) -> Result<(), String> {
        if self.registered || self.copy.end().journal == 0 {
            return Ok(());
        }
        catalog::register(&fleet.settings.root, &self.meta).map_err(|error| error.to_string())?;
        self.registered = true;
        Ok(())
    }

    fn take_news(&mut self, shared: &MirrorShared, news: &MirrorNews) -> Result<Exchange, String> {
        let is_new = !news.pieces.is_empty();
        for piece in &news.pieces {
            self.copy.take(piece).map_err(|error| error.to_string())?;
        }
        self.register(&shared.fleet)?;
        if let Some(of) = news.facts.of.as_ref().filter(|_| self.registered) {
            shared.tell_opened(of);
        }
        self.relay.take_answers(&news.facts.answers);
        Ok(match news.facts.over && !is_new {
            true => Exchange::Complete,
            false => Exchange::Going,
        })
    }
}
