//! A task loop whose attempts are made by workers on other machines: offers them, follows what becomes of
//! them, and takes in what they came to.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use descartes_bridge::{Delivery, Engine, FollowFrom, subject};
use descartes_kernel::fleet::{EngineSilence, KnownOffer, RemoteHealth, WatchTerms};
use descartes_kernel::tasks::TasksConfig;
use tracing::warn;

use super::git_remote::GitRemote;
use super::left_offers::close_left;
use super::remote_attempt::RemoteAttempt;
use super::shared::FleetShared;
use super::worker::DEFAULT_POOL;
use crate::host::driver::Driver;
use crate::host::message::HostMessage;
use crate::host::{ConnectEngine, HostError, HostSettings, git_of};
use crate::tasks::attempt_control::Control;
use crate::tasks::executor::Executor;
use crate::tasks::git::Repo;
use crate::tasks::order::AttemptOrder;
use crate::tasks::place::Workplace;

/// Where git is called that talks with the repository by which work travels.
const CARRIER: &str = "remote.git";
/// How often it is looked who is there.
const LOOK_FOR_WORKERS: Duration = Duration::from_secs(3);
/// How often it is tried whether the engine takes writes: as often as each worker renews its claim.
const LOOK_AT_ENGINE: Duration = Duration::from_secs(15);
/// How often threads look whether they are still wanted.
const LOOK: Duration = Duration::from_millis(500);
/// How long attempts that are over may take to tell their workers.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Attempts made by workers on other machines.
pub(in crate::tasks) struct Fleet {
    shared: Arc<FleetShared>,
}

impl Fleet {
    /// Connects to the engine of an address: what is wrong with it is said before a loop is begun.
    pub(in crate::tasks) fn connect(
        address: &str,
        settings: &HostSettings,
    ) -> Result<Arc<dyn Engine>, HostError> {
        match &settings.engines {
            Some(connect) => Self::connect_with(connect, address),
            None => Err(HostError::refused(
                "this program cannot connect to workers",
                "use the program descartes",
            )),
        }
    }

    /// The same; the pool behind the address does not matter.
    pub(super) fn connect_with(
        connect: &ConnectEngine,
        address: &str,
    ) -> Result<Arc<dyn Engine>, HostError> {
        connect(split(address).0)
    }

    /// Follows what becomes of the tasks of a loop.
    pub(in crate::tasks) fn begin(
        engine: Arc<dyn Engine>,
        tasks: &TasksConfig,
        place: Arc<dyn Workplace>,
        d: &Driver,
    ) -> Result<Self, HostError> {
        let (_, pool) = split(tasks.workers.as_deref().unwrap_or_default());
        let loop_id = d.state.loop_id.as_str();
        let folder = d.dir.path().join("tasks").join("wire");
        let remote = match &tasks.git_remote {
            None => None,
            Some(url) => {
                let remote =
                    GitRemote::open(url, &*place, &folder.join(CARRIER), d.settings.remote_terms);
                Some(Arc::new(remote.map_err(HostError::Internal)?))
            }
        };
        let shared = Arc::new(FleetShared {
            engine,
            loop_id: loop_id.to_owned(),
            pool: pool.to_owned(),
            settings: d.settings.clone(),
            tasks: tasks.clone(),
            place,
            folder,
            terms: WatchTerms::default(),
            remote,
            health: Mutex::new(RemoteHealth::new(d.settings.remote_terms)),
            origin: Instant::now(),
            over: Mutex::default(),
            root: Mutex::default(),
            publishing: Mutex::default(),
            routes: Mutex::default(),
            workers: Mutex::default(),
            memory: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            tx: d.tx.clone(),
        });
        shared.look_for_workers();
        shared.recall_memory();
        let of_tasks = follow(&shared, &subject::tasks_of(loop_id))?;
        let of_notes = follow(&shared, &subject::events_of(loop_id))?;
        spawn(&shared, "fleet tasks", move |shared| {
            deliver(shared, &of_tasks, FleetShared::heard_of_task);
        })?;
        spawn(&shared, "fleet notes", move |shared| {
            deliver(shared, &of_notes, |shared, delivery| {
                if let Delivery::Entry(entry) = delivery {
                    shared.heard_note(&entry);
                }
            });
        })?;
        spawn(&shared, "fleet workers", |shared| {
            let (mut silence, mut looked) = (EngineSilence::default(), Duration::ZERO);
            while !shared.is_closed() {
                shared.look_for_workers();
                if shared.now() >= looked + LOOK_AT_ENGINE {
                    looked = shared.now();
                    shared.look_at_engine(&mut silence);
                }
                std::thread::sleep(LOOK_FOR_WORKERS);
            }
        })?;
        Ok(Self { shared })
    }
}

impl Fleet {
    /// Deletes refs that could not be deleted before, or that a worker wrote too late.
    fn tidy_remote(&self) {
        let shared = &self.shared;
        let Some(remote) = &shared.remote else {
            return;
        };
        let dir = shared.folder.join(CARRIER);
        if let Ok(over) = shared.over.try_lock()
            && !over.is_empty()
        {
            // Gits of before may have been told to end.
            let repo = Repo::at(&dir, &git_of(&shared.settings)).with_env("GIT_DIR", &dir);
            GitRemote::at(remote.url(), &repo, shared.settings.remote_terms)
                .forget(&shared.loop_id, &over);
        }
        drop(fs_err::remove_dir_all(dir));
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Workers keep results until they are told that those were taken.
        let until = Instant::now() + LAST_WORDS;
        while self.shared.under_way.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.shared.closed.store(true, Ordering::SeqCst);
        self.tidy_remote();
    }
}

impl Executor for Fleet {
    fn start(
        &mut self,
        order: AttemptOrder,
        control: Control,
        tx: Sender<HostMessage>,
    ) -> Result<(), HostError> {
        let (inputs, inbox) = channel();
        let attempt = RemoteAttempt::new(self.shared.clone(), order, tx, inputs.clone(), inbox);
        control.connect(Box::new(inputs));
        self.shared.under_way.fetch_add(1, Ordering::SeqCst);
        let made = spawn(&self.shared, "remote attempt", move |shared| {
            attempt.make();
            shared.under_way.fetch_sub(1, Ordering::SeqCst);
        });
        if made.is_err() {
            self.shared.under_way.fetch_sub(1, Ordering::SeqCst);
        }
        made
    }

    fn close_left(&mut self, left: Vec<(String, KnownOffer)>) {
        let closing = move |shared: &FleetShared| close_left(shared, &left);
        if let Err(error) = spawn(&self.shared, "left offers", closing) {
            warn!(%error, "offers of earlier hosts are not taken back");
        }
    }

    fn room(&self) -> Option<u32> {
        Some(self.shared.room())
    }
}

/// The address of an engine, and the pool behind it.
fn split(address: &str) -> (&str, &str) {
    address.split_once('#').unwrap_or((address, DEFAULT_POOL))
}

fn follow(shared: &FleetShared, filter: &str) -> Result<Receiver<Delivery>, HostError> {
    // What an earlier host has seen is read when its attempts are taken up.
    shared
        .engine
        .follow(filter, FollowFrom::Now)
        .map_err(|error| {
            HostError::refused(
                format!("the engine does not tell what becomes of tasks: {error}"),
                "look at it with: descartes engine status",
            )
        })
}

fn deliver(
    shared: &FleetShared,
    from: &Receiver<Delivery>,
    handle: impl Fn(&FleetShared, Delivery),
) {
    while !shared.is_closed() {
        match from.recv_timeout(LOOK) {
            Ok(delivery) => handle(shared, delivery),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                warn!("the engine tells nothing more");
                return;
            }
        }
    }
}

fn spawn(
    shared: &Arc<FleetShared>,
    name: &str,
    run: impl FnOnce(&FleetShared) + Send + 'static,
) -> Result<(), HostError> {
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name(name.to_owned());
    match thread.spawn(move || run(&shared)) {
        Ok(_) => Ok(()),
        Err(error) => Err(HostError::Internal(format!(
            "cannot start a thread: {error}"
        ))),
    }
}
