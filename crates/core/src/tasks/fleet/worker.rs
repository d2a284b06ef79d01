//! A worker: takes attempts that task loops on other machines offer, and makes them in slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descartes_bridge::{Engine, EngineError, OfferTarget, PulledOffer, subject};
use descartes_kernel::fleet::{
    Announced, EndOrder, LeaseTerms, OfferRefusals, SilenceNews, WorkerHealth, check_remote,
};
use descartes_kernel::sandbox::SandboxLevel;
use descartes_text::units::show_duration;
use tracing::{debug, info, warn};

use super::clone::Clones;
use super::ending::Ending;
use super::keeper::{ClaimOf, TakenClaim, claim};
use super::messages::{OfferMessage, SlotFacts, WorkerFacts};
use super::results::{FinishedAttempt, Results};
use super::slot::{MadeAttempt, SlotContext, make_attempt};
use crate::host::{HostError, HostSettings, ask_profiles, missing_programs, program_of, try_level};
use crate::tasks::attempt_control::Control;

/// The pool of workers and offers that name none.
pub const DEFAULT_POOL: &str = "default";

/// How long an idle slot waits for an offer before it looks whether it is still wanted.
const PULL_WAIT: Duration = Duration::from_secs(2);
/// A worker that did not announce itself for so long is gone.
const ANNOUNCE_TTL: Duration = Duration::from_secs(60);
const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);
/// How often results that nobody has taken yet are looked at.
const RESULTS_EVERY: Duration = Duration::from_secs(10);
/// Clones that nobody used for so long are removed, and results that nobody took.
const UNUSED: Duration = Duration::from_secs(14 * 24 * 3600);
/// How often it is looked for them, beside the start.
const TIDY_EVERY: Duration = Duration::from_secs(3600);
/// Of clones that nobody used for so long nothing is held open.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// After an error of the engine.
const REST: Duration = Duration::from_secs(2);

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// What it is called; no other may be called so.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Whose accounts its agents use.
    pub login: String,
    /// The offers that it takes.
    pub pool: String,
    /// Attempts at once.
    pub slots: u32,
    /// Repositories that it works for; none: all.
    pub allow_repos: Vec<String>,
    /// Agents that it can run.
    pub agents: Vec<String>,
    /// Files that git does not bring into a worktree.
    pub worktree_copy: Vec<String>,
    /// A command that makes a new worktree ready.
    pub worktree_setup: Option<String>,
    /// Attempts are confined at least so far; `None` and `off`: as far as their loops say.
    pub sandbox: Option<SandboxLevel>,
    /// How long a claim holds, and how often it is renewed.
    pub terms: LeaseTerms,
    /// How often the work of an attempt is stored while its agent is at it.
    pub wip_every: Duration,
    /// How long it takes nothing after an attempt that it could not make; longer after each further one.
    pub first_rest: Duration,
}

/// An attempt that a worker tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerTask {
    /// The task, or the wave that one agent is given.
    pub task: String,
    /// The task loop.
    pub loop_id: String,
}

/// What a worker tells of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerNotice {
    /// An attempt was claimed.
    Began(WorkerTask),
    /// Its result was handed in.
    HandedIn(WorkerTask),
    /// It is over, and the engine did not answer for so long that its result is kept in this file. It is handed
    /// in as soon as the engine is back, also by the next start of the worker.
    Kept(WorkerTask, PathBuf),
    /// The task was taken back, or the engine was away for too long.
    InVain(WorkerTask),
    /// Why an offer was not taken.
    Refused(String),
    /// The engine does not answer; it is asked again.
    EngineError(String),
    /// It answers again.
    EngineBack,
    /// Another worker of this name is there.
    Namesake(String),
}

/// Tells of what happens.
type Tell = Arc<dyn Fn(WorkerNotice) + Send + Sync>;

/// An attempt under way.
struct SlotWork {
    loop_id: String,
    task: String,
    since: Instant,
    control: Control,
}

struct WorkerShared {
    ctx: SlotContext,
    options: WorkerOptions,
    tell: Tell,
    ended: AtomicBool,
    claims: AtomicU64,
    at_work: Mutex<BTreeMap<u32, SlotWork>>,
    refusals: Mutex<OfferRefusals>,
    /// Whether this machine can make attempts.
    health: Mutex<WorkerHealth>,
    origin: Instant,
    /// The strictest sandbox that was found to work here.
    works: Mutex<SandboxLevel>,
    /// What is wrong with the engine, as it was told last.
    trouble: Mutex<Option<EngineError>>,
    /// Whether nobody else announces itself by this name.
    announced: Mutex<Announced>,
}

/// A worker. Dropped, it does not end its attempts: [`FleetWorker::stop`] does.
#[derive(Clone)]
pub struct FleetWorker {
    shared: Arc<WorkerShared>,
}

impl FleetWorker {
    /// A worker that keeps its clones in `folder`.
    pub fn new(
        engine: Arc<dyn Engine>,
        settings: HostSettings,
        folder: PathBuf,
        options: WorkerOptions,
        tell: impl Fn(WorkerNotice) + Send + Sync + 'static,
    ) -> Self {
        let results = Results::load(
            engine.clone(),
            &options.name,
            &settings,
            folder.join("results"),
            UNUSED,
        );
        let clones = Clones::new(
            folder,
            settings.clone(),
            engine.clone(),
            options.worktree_copy.clone(),
            options.worktree_setup.clone(),
        );
        let health = Mutex::new(WorkerHealth::new(options.first_rest));
        Self {
            shared: Arc::new(WorkerShared {
                ctx: SlotContext {
                    engine,
                    clones,
                    settings,
                    worker: options.name.clone(),
                    login: options.login.clone(),
                    limits: Mutex::default(),
                    gate_programs: Mutex::default(),
                    results,
                    wip_every: options.wip_every,
                    ending: Arc::new(Ending::default()),
                },
                options,
                tell: Arc::new(tell),
                ended: AtomicBool::new(false),
                claims: AtomicU64::new(0),
                at_work: Mutex::default(),
                refusals: Mutex::default(),
                health,
                origin: Instant::now(),
                works: Mutex::default(),
                trouble: Mutex::default(),
                announced: Mutex::default(),
            }),
        }
    }

    /// Takes and makes attempts until it was told to drain or stop and nothing is under way.
    pub fn run(&self) -> Result<(), HostError> {
        if let Some(least) = self.shared.options.sandbox {
            // Nothing would ever be taken.
            self.shared.try_sandbox(least)?;
        }
        let failed = |error| HostError::Internal(format!("cannot start a thread: {error}"));
        let ctx = &self.shared.ctx;
        ctx.clones.remove_unused(UNUSED, &ctx.results.files());
        let mut slots = Vec::new();
        for slot in 0..self.shared.options.slots {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name(format!("slot {slot}"));
            slots.push(
                thread
                    .spawn(move || shared.serve_slot(slot))
                    .map_err(failed)?,
            );
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("announce".to_owned());
        let announcer = thread.spawn(move || shared.stay_known()).map_err(failed)?;
        for slot in slots {
            drop(slot.join());
        }
        self.shared.ended.store(true, Ordering::SeqCst);
        drop(announcer.join());
        match &*self.shared.trouble() {
            Some(error @ EngineError::KeyRevoked(name)) => {
                let message = error.to_string();
                let hint = format!("where the engine runs: descartes engine join-token {name}");
                Err(HostError::refused(message, hint))
            }
            _ => Ok(()),
        }
    }

    /// Takes nothing more; what is under way is finished.
    pub fn drain(&self) {
        self.end(EndOrder::Finish);
    }

    /// Takes nothing more, and ends what is under way.
    pub fn stop(&self) {
        self.end(EndOrder::Stop);
    }

    /// Takes nothing more; what is under way is finished or ended, and an engine that is away is waited for as long
    /// as the order says. What that does not take stays on the disk, and is handed in by the next start.
    pub fn end(&self, order: EndOrder) {
        self.shared.end(order);
    }

    /// How it was told to end, where it was.
    pub fn end_order(&self) -> Option<EndOrder> {
        self.shared.ctx.ending.order()
    }

    /// Attempts under way.
    pub fn at_work(&self) -> usize {
        self.shared.at_work().len()
    }
}

impl WorkerShared {
    fn at_work(&self) -> MutexGuard<'_, BTreeMap<u32, SlotWork>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_draining(&self) -> bool {
        self.ctx.ending.order().is_some()
    }

    fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.ended.load(Ordering::SeqCst) && !self.is_draining() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn health(&self) -> MutexGuard<'_, WorkerHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, OfferRefusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it may be offered now: nothing for agents whose login is limited, and nothing at all while it rests.
    fn targets(&self) -> Vec<OfferTarget> {
        let now = self.origin.elapsed();
        if self.health().objection(now).is_some() || self.refusals().pauses(now) {
            return Vec::new();
        }
        let agents = self.options.agents.iter();
        let agents = agents.filter(|agent| self.ctx.limit(agent).is_none());
        let pool = |agent: &String| OfferTarget::Pool {
            pool: self.options.pool.clone(),
            agent: agent.clone(),
        };
        agents.map(pool).collect()
    }

    fn serve_slot(&self, slot: u32) {
        while !self.is_draining() {
            let targets = self.targets();
            if targets.is_empty() {
                self.rest(REST);
                continue;
            }
            let count = self.refusals().batch(self.origin.elapsed());
            match self.ctx.engine.pull(&targets, count, PULL_WAIT) {
                Ok(offers) => {
                    *self.trouble() = None;
                    self.take_one(slot, &offers);
                }
                Err(error) => {
                    self.tell_trouble(&error);
                    if let EngineError::KeyRevoked(_) = error {
                        self.end(EndOrder::Stop);
                    }
                    self.rest(REST);
                }
            }
        }
    }

    fn end(&self, order: EndOrder) {
        self.ctx.ending.tell(order);
        let at_work = self.at_work();
        for work in at_work.values() {
            match order {
                EndOrder::Finish => {}
                EndOrder::Stop => work.control.stop(),
                EndOrder::AtOnce => work.control.kill(),
            }
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<EngineError>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells once what is wrong with the engine.
    fn tell_trouble(&self, error: &EngineError) {
        let before = self.trouble().replace(error.clone());
        if before.as_ref() != Some(error) {
            let message = match error {
                EngineError::NoResponders => "no task loop has used this engine yet".to_owned(),
                other => other.to_string(),
            };
            (self.tell)(WorkerNotice::EngineError(message));
        }
    }

    /// Makes one of these offers; all others go to whoever waits for one.
    fn take_one(&self, slot: u32, pulled: &[PulledOffer]) {
        let mut chosen = None;
        for offer in pulled {
            if chosen.is_none() {
                match self.readable(offer) {
                    Ok(message) => {
                        chosen = Some((message, offer));
                        continue;
                    }
                    Err(reason) => self.refuse(&reason),
                }
            }
            if let Err(error) = self.ctx.engine.give_back(&offer.token) {
                // It comes back by itself.
                debug!(%error, "an offer was not given back");
            }
        }
        match chosen {
            Some((message, offer)) => self.take_offer(slot, &message, offer),
            None if pulled.is_empty() => {}
            None => self.refusals().pause(self.origin.elapsed()),
        }
    }

    /// What is offered; or why it is not taken.
    fn readable(&self, pulled: &PulledOffer) -> Result<OfferMessage, String> {
        let read: Result<OfferMessage, _> = serde_json::from_slice(&pulled.value);
        let mut offer = read.map_err(|error| {
            format!(
                "an offer that descartes {} does not understand ({error}): install the same \
                 version on both machines",
                self.ctx.settings.version
            )
        })?;
        offer.order.config.sandbox.on_worker(self.options.sandbox);
        match self.objection(&offer) {
            Some(reason) => Err(reason),
            None => Ok(offer),
        }
    }

    fn take_offer(&self, slot: u32, offer: &OfferMessage, pulled: &PulledOffer) {
        let number = self.claims.fetch_add(1, Ordering::SeqCst);
        let unique = uuid::Uuid::now_v7();
        let of = ClaimOf {
            subject: offer.subject.clone(),
            worker: self.options.name.clone(),
            claim: format!("{}-{number}-{unique}", self.options.name),
        };
        let taken = match claim(&self.ctx.engine, of, self.options.terms) {
            Ok(taken) => taken,
            Err(error) => {
                debug!(%error, "an offer could not be claimed");
                return;
            }
        };
        if let Err(error) = self.ctx.engine.ack(&pulled.token) {
            // Handed out again, it is found to be held.
            debug!(%error, "an offer was not confirmed");
        }
        if let Some(taken) = taken {
            self.work(slot, offer, taken);
        }
    }

    /// Why an offer is not taken.
    fn objection(&self, offer: &OfferMessage) -> Option<String> {
        let (theirs, ours) = (&offer.version, &self.ctx.settings.version);
        if theirs != ours {
            return Some(format!(
                "the coordinator is descartes {theirs}, this worker {ours}: install the same version"
            ));
        }
        let remote = offer.git.remote.as_deref().map(check_remote);
        if let Some(Err(fault)) = remote {
            return Some(fault.to_string());
        }
        let allowed = &self.options.allow_repos;
        let repository = &offer.repository;
        if !allowed.is_empty() && !allowed.contains(repository) {
            return Some(format!(
                "the repository {repository} is not allowed (--allow-repo {repository})"
            ));
        }
        if let Some(reason) = self.ctx.limit_objection(offer) {
            return Some(reason);
        }
        let now = self.origin.elapsed();
        if let Some(why) = self.health().objection_to(now, &offer.loop_id) {
            return Some(format!(
                "{} takes nothing of this loop now: {why}",
                self.options.name
            ));
        }
        if let Some((gate, program)) = self.missing_gate_program(offer) {
            let host = &self.options.host;
            return Some(format!(
                "the gate `{gate}` cannot be run: {program} is not installed on {host}"
            ));
        }
        let mut config = offer.order.config.clone();
        ask_profiles(&mut config, &self.ctx.settings);
        let level = config.sandbox.effective();
        let error = self.try_sandbox(level).err()?;
        Some(format!(
            "the sandbox `{}` does not work on {}: {error}",
            level.as_str(),
            self.options.host
        ))
    }

    /// A gate whose program the coordinator has, and this machine has not. What neither has may be what the agent
    /// is to make.
    fn missing_gate_program<'o>(&self, offer: &'o OfferMessage) -> Option<(&'o str, &'o str)> {
        let order = &offer.order;
        let has_coordinator = |program: &str| {
            let mut files = order.gate_files.keys();
            files.any(|file| file.starts_with('/') && file.rsplit('/').next() == Some(program))
        };
        let gates = order.config.verify.iter().map(String::as_str);
        let begin = gates.filter_map(|gate| Some((gate, program_of(gate)?)));
        let begin: Vec<_> = begin
            .filter(|(_, program)| has_coordinator(program))
            .collect();
        let programs: BTreeSet<&str> = begin.iter().map(|(_, program)| *program).collect();
        if programs.is_empty() {
            return None;
        }
        let missing = missing_programs(&programs, &self.ctx.settings.environment, Path::new("/"));
        let mut begin = begin.into_iter();
        begin.find(|(_, program)| missing.contains(program))
    }

    /// Tries whether agents can be confined so far here. What works once is not tried again.
    fn try_sandbox(&self, level: SandboxLevel) -> Result<(), HostError> {
        let works = || self.works.lock().unwrap_or_else(PoisonError::into_inner);
        if level <= *works() {
            return Ok(());
        }
        let folder = self.ctx.clones.folder().join("sandbox");
        fs_err::create_dir_all(&folder)
            .map_err(|error| HostError::Internal(format!("cannot try a sandbox: {error}")))?;
        try_level(&self.ctx.settings, level, &folder)?;
        *works() = level;
        Ok(())
    }

    fn refuse(&self, message: &str) {
        if self.refusals().refused(self.origin.elapsed(), message) {
            warn!(message, "an offer was not taken");
            (self.tell)(WorkerNotice::Refused(message.to_owned()));
        }
    }

    fn work(&self, slot: u32, offer: &OfferMessage, taken: TakenClaim) {
        let (task, loop_id) = (offer.order.work.id.clone(), offer.loop_id.clone());
        let control = Control::default();
        let work = SlotWork {
            loop_id: loop_id.clone(),
            task: task.clone(),
            since: Instant::now(),
            control: control.clone(),
        };
        self.at_work().insert(slot, work);
        info!(task, loop_id, epoch = offer.epoch, "task claimed");
        let of = WorkerTask { task, loop_id };
        (self.tell)(WorkerNotice::Began(of.clone()));
        self.announce();
        let made = make_attempt(&self.ctx, slot, offer, taken, &control);
        self.at_work().remove(&slot);
        let (notice, finished) = match made {
            MadeAttempt::HandedIn(finished) => (WorkerNotice::HandedIn(of), finished),
            MadeAttempt::Kept(finished) => {
                let file = self.ctx.results.file(&finished.subject);
                (WorkerNotice::Kept(of, file), finished)
            }
            // That says nothing about this machine.
            MadeAttempt::InVain => {
                (self.tell)(WorkerNotice::InVain(of));
                return self.announce();
            }
        };
        match &finished.machine_failure {
            // That is counted for the attempt that did it.
            Some(_) if finished.others_fault => {}
            Some(why) => self.cannot_work(&finished, why),
            None => self.health().worked(),
        }
        (self.tell)(notice);
        self.ctx.results.keep(finished);
        self.announce();
    }

    /// Takes nothing for a while: another worker may fare better.
    fn cannot_work(&self, finished: &FinishedAttempt, why: &str) {
        let of = subject::parse_task(&finished.subject).map(|(loop_id, ..)| loop_id);
        let of = of.unwrap_or_default();
        let rest = self
            .health()
            .failed(self.origin.elapsed(), &of, why.to_owned());
        let name = &self.options.name;
        let message = format!("{name} takes nothing for {}: {why}", show_duration(rest));
        warn!(message, "a worker rests");
        (self.tell)(WorkerNotice::Refused(message));
    }

    /// Why it does not take what it is offered.
    fn refused(&self) -> Option<String> {
        let now = self.origin.elapsed();
        let health = self.health();
        let resting = health.resting(now);
        let resting = resting.map(|why| format!("{} takes nothing now: {why}", self.options.name));
        resting.or_else(|| self.refusals().why(now).map(str::to_owned))
    }

    fn facts(&self) -> WorkerFacts {
        let at_work = self.at_work();
        let slots = at_work.values().map(|work| SlotFacts {
            loop_id: work.loop_id.clone(),
            task: work.task.clone(),
            seconds: work.since.elapsed().as_secs(),
        });
        WorkerFacts {
            name: self.options.name.clone(),
            host: self.options.host.clone(),
            login: self.options.login.clone(),
            pool: self.options.pool.clone(),
            agents: self.options.agents.clone(),
            slots: self.options.slots,
            version: self.ctx.settings.version.clone(),
            at_work: slots.collect(),
            draining: self.is_draining(),
            refused: self.refused(),
        }
    }

    fn announce(&self) {
        let Ok(value) = serde_json::to_vec(&self.facts()) else {
            return;
        };
        let (engine, name) = (&self.ctx.engine, &self.options.name);
        let mut announced = self
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let announce = |last| engine.announce(name, last, &value, ANNOUNCE_TTL);
        let told = match announce(announced.last()) {
            Err(EngineError::Conflict) => {
                if announced.is_not_alone(self.origin.elapsed()) {
                    (self.tell)(WorkerNotice::Namesake(name.clone()));
                }
                announce(None)
            }
            told => told,
        };
        announced.told(told.as_ref().ok().copied());
        match told {
            Ok(_) => {}
            // Slots that are busy do not ask.
            Err(error @ EngineError::KeyRevoked(_)) => {
                self.tell_trouble(&error);
                self.end(EndOrder::Stop);
            }
            Err(error) => debug!(%error, "not announced"),
        }
    }

    /// Tells of an engine that does not answer while attempts are under way: slots that are busy do not ask for
    /// offers.
    fn tell_silence(&self) {
        match self.ctx.ending.take_news() {
            None => {}
            Some(SilenceNews::Back) => (self.tell)(WorkerNotice::EngineBack),
            Some(SilenceNews::Away { lasting }) => {
                (self.tell)(WorkerNotice::EngineError(format!(
                    "the engine has not confirmed a claim for {}: agents stand still when their claims run out, and go \
                     on when it is back",
                    show_duration(lasting)
                )));
            }
        }
    }

    /// Says that it is there, and looks after results, until the end.
    fn stay_known(&self) {
        // What an earlier process of this worker left is looked at first.
        self.ctx.results.look_after();
        let (mut looked, mut tidied) = (Instant::now(), Instant::now());
        while !self.ended.load(Ordering::SeqCst) {
            self.announce();
            self.tell_silence();
            if looked.elapsed() >= RESULTS_EVERY {
                looked = Instant::now();
                self.ctx.results.look_after();
                self.ctx.clones.close_idle(IDLE);
            }
            if tidied.elapsed() >= TIDY_EVERY {
                tidied = Instant::now();
                let needed = self.ctx.results.files();
                self.ctx.clones.remove_unused(UNUSED, &needed);
            }
            let until = Instant::now() + ANNOUNCE_EVERY;
            while Instant::now() < until && !self.ended.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
