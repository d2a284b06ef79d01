//! What all attempts of a task loop share that workers make, and where what is told of each goes.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descartes_bridge::{Delivery, Engine, EngineError, SubjectEntry, subject};
use descartes_kernel::fleet::{
    EngineSilence, KnownOffer, OfferRefs, RemoteHealth, SilenceNews, StoredClaim, WatchTerms,
};
use descartes_kernel::outcome::Budget;
use descartes_kernel::state::Spent;
use descartes_kernel::tasks::TasksConfig;
use descartes_text::units::show_duration;
use tracing::debug;

use super::git_remote::{GitRemote, offer_refs};
use super::messages::{AttemptNote, WorkerFacts, child_name};
use super::stored::{remember, stored_claim, stored_memory, try_write};
use crate::host::HostSettings;
use crate::host::message::HostMessage;
use crate::tasks::event::TaskEvent;
use crate::tasks::place::Workplace;

/// How an attempt is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptStop {
    EndRun(Budget),
    Stop,
    Kill,
}

/// Something that became of a remote attempt.
#[derive(Debug)]
pub(super) enum AttemptInput {
    Stored(StoredClaim),
    /// The engine lost what it had stored.
    LostAll,
    Note {
        worker: String,
        note: AttemptNote,
    },
    /// The loop of the task is open, as its worker says with the copy of it.
    Opened {
        loop_id: String,
        unheard: Spent,
        worker: String,
    },
    /// Somebody wants it to end.
    Stop(AttemptStop),
}

/// Where what is told of an attempt goes: by task and number of the offer.
type Routes = HashMap<(String, u64), Sender<AttemptInput>>;

/// What all attempts of a task loop share.
pub(super) struct FleetShared {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) loop_id: String,
    pub(super) pool: String,
    pub(super) settings: HostSettings,
    pub(super) tasks: TasksConfig,
    pub(super) place: Arc<dyn Workplace>,
    /// Where bundles are written.
    pub(super) folder: PathBuf,
    pub(super) terms: WatchTerms,
    /// The repository by which work travels; none: through the engine's store.
    pub(super) remote: Option<Arc<GitRemote>>,
    /// How that has done lately.
    pub(super) health: Mutex<RemoteHealth>,
    /// Since when all times are counted.
    pub(super) origin: Instant,
    /// Offers that are over, whose refs may lie there.
    pub(super) over: Mutex<BTreeSet<OfferRefs>>,
    /// A commit whose history is in the engine's store.
    pub(super) root: Mutex<Option<String>>,
    /// What is written into a bundle is written by one at a time.
    pub(super) publishing: Mutex<()>,
    pub(super) routes: Mutex<Routes>,
    pub(super) workers: Mutex<Vec<WorkerFacts>>,
    /// What tells the engine's store from the one after a loss of its disk; 0: not known.
    pub(super) memory: AtomicU64,
    /// Attempts that are not told of to the end.
    pub(super) under_way: AtomicUsize,
    pub(super) closed: AtomicBool,
    pub(super) tx: Sender<HostMessage>,
}

impl FleetShared {
    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Workers that were there when it was last looked.
    pub(super) fn workers(&self) -> Vec<WorkerFacts> {
        let workers = self.workers.lock();
        workers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A commit whose history is in the engine's store.
    pub(super) fn known_root(&self) -> Option<String> {
        let root = self.root.lock();
        root.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_root(&self, commit: &str) {
        let root = self.root.lock();
        *root.unwrap_or_else(PoisonError::into_inner) = Some(commit.to_owned());
    }

    /// From now on what is told of an attempt goes there.
    pub(super) fn route(&self, task: &str, epoch: u64, to: Sender<AttemptInput>) {
        self.routes().insert((task.to_owned(), epoch), to);
    }

    pub(super) fn forget(&self, task: &str, epoch: u64) {
        self.routes().remove(&(task.to_owned(), epoch));
    }

    /// An offer is over: what lies of it in the repository by which work travels goes.
    pub(super) fn forget_refs(&self, subject: &str) {
        self.note_over(subject);
        self.forget_over();
    }

    /// An offer is over, and with it those of the same task before it, which earlier hosts may have left.
    pub(super) fn note_over(&self, subject: &str) {
        let (Some(_), Some((_, task, last))) = (&self.remote, subject::parse_task(subject)) else {
            return;
        };
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        over.extend((1..=last).map(|epoch| {
            let subject = subject::task(&self.loop_id, &task, epoch);
            offer_refs(&self.loop_id, &subject)
        }));
    }

    /// What lies of offers that are over in the repository by which work travels goes.
    pub(super) fn forget_over(&self) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remote) = &self.remote
            && !over.is_empty()
        {
            remote.forget(&self.loop_id, &over);
        }
    }

    pub(super) fn health(&self) -> MutexGuard<'_, RemoteHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Learns what the engine stores now, or gives it a number.
    pub(super) fn recall_memory(&self) {
        match remember(&self.engine, &self.loop_id) {
            Ok(memory) => self.memory.store(memory, Ordering::SeqCst),
            Err(error) => debug!(%error, "what the engine stores cannot be told from later"),
        }
    }

    /// Whether the engine still has what it stored when this offer was made.
    pub(super) fn remembers(&self, offer: KnownOffer) -> Result<bool, EngineError> {
        let now = stored_memory(&self.engine, &self.loop_id)?;
        Ok(offer.memory != 0 && now == Some(offer.memory))
    }

    fn tell(&self, task: &str, epoch: u64, input: AttemptInput) {
        if let Some(to) = self.routes().get(&(task.to_owned(), epoch)) {
            // An attempt that is over is told nothing.
            drop(to.send(input));
        }
    }

    pub(super) fn heard_of_task(&self, delivery: Delivery) {
        match delivery {
            Delivery::Reset => {
                self.recall_memory();
                for to in self.routes().values() {
                    drop(to.send(AttemptInput::LostAll));
                }
            }
            Delivery::Entry(entry) => {
                // What tells the engine's store from another one has no task.
                if let Some((_, task, epoch)) = subject::parse_task(&entry.subject)
                    && !task.is_empty()
                {
                    let stored = stored_claim(Some(&entry));
                    self.tell(&task, epoch, AttemptInput::Stored(stored));
                }
            }
        }
    }

    pub(super) fn heard_note(&self, entry: &SubjectEntry) {
        let Some((_, worker, child)) = subject::parse_child(&entry.subject) else {
            return;
        };
        let note = entry.value().map(serde_json::from_slice::<AttemptNote>);
        let key = {
            let routes = self.routes();
            let mut keys = routes.keys();
            keys.find(|(task, epoch)| child_name(task, *epoch) == child)
                .cloned()
        };
        if let (Some(Ok(note)), Some((task, epoch))) = (note, key) {
            self.tell(&task, epoch, AttemptInput::Note { worker, note });
        }
    }

    /// Tells of an engine that does not answer, or takes no writes, and of its return.
    pub(super) fn look_at_engine(&self, silence: &mut EngineSilence) {
        let tried = try_write(&self.engine, &self.loop_id);
        let news = silence.heard(self.now(), tried.is_ok());
        let address = self.tasks.workers.as_deref().unwrap_or_default();
        let (message, answers) = match (news, tried) {
            (Some(SilenceNews::Away { lasting }), Err(error)) => (
                format!(
                    "the engine {address} has taken no writes for {} ({error}): agents of its workers stand still within \
                 a minute, and go on when it is back; on its machine: descartes engine status",
                    show_duration(lasting)
                ),
                false,
            ),
            (Some(SilenceNews::Back), _) => (format!("the engine {address} answers again"), true),
            _ => return,
        };
        let event = TaskEvent::Engine { message, answers };
        drop(self.tx.send(HostMessage::Task(Box::new(event))));
    }

    pub(super) fn look_for_workers(&self) {
        let Ok(found) = self.engine.workers() else {
            return;
        };
        let found = found.iter();
        let facts = found.filter_map(|(_, value)| serde_json::from_slice(value).ok());
        let facts: Vec<WorkerFacts> = facts.collect();
        let before = self.room();
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = facts;
        if self.room() != before {
            let event = TaskEvent::RoomChanged;
            drop(self.tx.send(HostMessage::Task(Box::new(event))));
        }
    }

    pub(super) fn room(&self) -> u32 {
        let workers = self.workers();
        let of_pool = workers.iter().filter(|worker| worker.pool == self.pool);
        let slots: u32 = of_pool
            .map(|worker| match worker.draining {
                true => u32::try_from(worker.at_work.len()).unwrap_or(0),
                false => worker.slots,
            })
            .sum();
        // Where nobody is there yet, one offer shows whether somebody comes.
        slots.max(1)
    }
}
