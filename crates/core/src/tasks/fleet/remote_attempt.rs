//! One attempt that a worker makes, as its coordinator follows it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use descartes_bridge::{EngineError, OfferTarget, subject};
use descartes_kernel::fleet::{
    ClaimState, ClaimWatch, KnownOffer, OfferStep, OfferTime, OwnLink, StoredClaim, TaskClaim,
    WatchAct, offer_step,
};
use descartes_kernel::outcome::Budget;
use descartes_kernel::sched::AttemptEnd;
use tracing::{debug, info, warn};

use super::messages::{
    AttemptNote, AttemptRequest, DeliveredAttempt, GitParcel, OfferMessage, why_untaken,
};
use super::shared::{AttemptInput, AttemptStop, FleetShared};
use super::slot::child_name;
use super::stored::{read_claim, write_claim};
use crate::host::message::HostMessage;
use crate::tasks::attempt_control::StopAttempt;
use crate::tasks::event::{AttemptNews, TaskEvent};
use crate::tasks::launch::file_name;
use crate::tasks::order::AttemptOrder;
use crate::tasks::place::{Published, WorkDelivery};

/// How long a worker may take to answer a request to stop before its task is taken back.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
const KILL_PATIENCE: Duration = Duration::from_secs(3);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// After an error of the engine.
const REST: Duration = Duration::from_secs(2);
/// How long commits that were handed in are waited for: an engine that lost its disk gets them again.
const IMPORT_PATIENCE: Duration = Duration::from_secs(90);

impl StopAttempt for Sender<AttemptInput> {
    fn end_run(&self, budget: Budget) {
        drop(self.send(AttemptInput::Stop(AttemptStop::EndRun(budget))));
    }

    fn stop(&self) {
        drop(self.send(AttemptInput::Stop(AttemptStop::Stop)));
    }

    fn kill(&self) {
        drop(self.send(AttemptInput::Stop(AttemptStop::Kill)));
    }
}

/// An attempt that others make.
pub(super) struct RemoteAttempt {
    shared: Arc<FleetShared>,
    order: AttemptOrder,
    tx: Sender<HostMessage>,
    inputs: Sender<AttemptInput>,
    inbox: Receiver<AttemptInput>,
    origin: Instant,
    /// Where the claim is stored.
    subject: String,
    epoch: u64,
    /// Who holds it.
    worker: Option<String>,
    /// What was last seen stored.
    last: StoredClaim,
    /// When it is taken back, since its worker did not stop.
    give_up_at: Option<Instant>,
    stopping: bool,
}

impl RemoteAttempt {
    pub(super) fn new(
        shared: Arc<FleetShared>,
        order: AttemptOrder,
        tx: Sender<HostMessage>,
        inputs: Sender<AttemptInput>,
        inbox: Receiver<AttemptInput>,
    ) -> Self {
        Self {
            shared,
            order,
            tx,
            inputs,
            inbox,
            origin: Instant::now(),
            subject: String::new(),
            epoch: 0,
            worker: None,
            last: StoredClaim::Nothing,
            give_up_at: None,
            stopping: false,
        }
    }

    /// Offers the attempt or takes it up, follows it, and tells how it ended.
    pub(super) fn make(mut self) {
        let task = self.order.work.id.clone();
        let news = match self.begin() {
            Ok(Some(watch)) => self.follow(watch),
            Ok(None) => self.interrupted(None),
            Err(message) => self.interrupted(Some(format!("task {task}: {message}"))),
        };
        self.shared.forget(&task, self.epoch);
        let accepts = self.last.state() == ClaimState::Done;
        self.tell(TaskEvent::Attempt(Box::new(news)));
        if accepts {
            self.accept();
        }
    }

    fn interrupted(&self, trouble: Option<String>) -> AttemptNews {
        let mut news = AttemptNews::interrupted(self.order.slot, self.order.tasks.clone());
        news.trouble = trouble;
        news
    }

    fn tell(&self, event: TaskEvent) {
        // A task loop that is gone has given up already.
        drop(self.tx.send(HostMessage::Task(Box::new(event))));
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn link(&self) -> OwnLink {
        let period = self.shared.terms.ttl * 2;
        match self.shared.engine.link().was_down_within(period) {
            true => OwnLink::Interrupted,
            false => OwnLink::Steady,
        }
    }

    /// Until an answer comes, or somebody wants the attempt to end.
    fn insist<T>(
        &mut self,
        what: &str,
        ask: impl Fn(&FleetShared) -> Result<T, EngineError>,
    ) -> Result<Option<T>, String> {
        let mut said = false;
        loop {
            match ask(&self.shared) {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) if error.is_temporary() => {
                    if !std::mem::replace(&mut said, true) {
                        warn!(%error, what, "the engine does not answer: trying again");
                    }
                }
                Err(error) => return Err(format!("{what}: {error}")),
            }
            match self.inbox.recv_timeout(REST) {
                Ok(AttemptInput::Stop(_)) => return Ok(None),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Offers the attempt, or takes up the one that an earlier host has offered.
    fn begin(&mut self) -> Result<Option<ClaimWatch>, String> {
        let task = self.order.work.id.clone();
        let known = self.order.offered;
        loop {
            let stored = match known {
                None => StoredClaim::Nothing,
                Some(known) => {
                    let subject = subject::task(&self.shared.loop_id, &task, known.epoch);
                    let read = |shared: &FleetShared| read_claim(&shared.engine, &subject);
                    match self.insist("reading who holds it", read)? {
                        Some(stored) => stored,
                        None => return Ok(None),
                    }
                }
            };
            match offer_step(known, self.order.attempt, stored.state()) {
                OfferStep::Offer { epoch, when } => {
                    if when == OfferTime::AfterLease && !self.wait_for_lease() {
                        return Ok(None);
                    }
                    return self.offer(epoch);
                }
                OfferStep::Attach { epoch } => return self.attach(epoch, &stored),
                OfferStep::Replace { close, forced } => {
                    let subject = subject::task(&self.shared.loop_id, &task, close);
                    let put = |shared: &FleetShared| {
                        let claim = TaskClaim::Closed { forced };
                        match write_claim(&shared.engine, &subject, stored.seq(), None, &claim) {
                            // Where its worker was quicker, it is looked at again.
                            Ok(_) | Err(EngineError::Conflict) => Ok(()),
                            Err(error) => Err(error),
                        }
                    };
                    if self.insist("taking an earlier offer back", put)?.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits until a claim that was taken back by force would have lapsed; false where somebody wants
    /// the end.
    fn wait_for_lease(&self) -> bool {
        let until = Instant::now() + self.shared.terms.ttl;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Ok(AttemptInput::Stop(_)) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }

    /// What is told of this epoch comes here from now on.
    fn listen(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.subject = subject::task(&self.shared.loop_id, &self.order.work.id, epoch);
        let task = &self.order.work.id;
        self.shared.route(task, epoch, self.inputs.clone());
    }

    fn attach(&mut self, epoch: u64, stored: &StoredClaim) -> Result<Option<ClaimWatch>, String> {
        info!(task = self.order.work.id, epoch, state = ?stored.state(), "taking an offer up");
        self.listen(epoch);
        if stored.state() == ClaimState::Offered && !self.send_offer()? {
            return Ok(None);
        }
        let subject = self.subject.clone();
        let read = |shared: &FleetShared| read_claim(&shared.engine, &subject);
        let Some(stored) = self.insist("reading who holds it", read)? else {
            return Ok(None);
        };
        self.saw(&stored);
        let watch = ClaimWatch::new(self.shared.terms, self.now(), &stored);
        Ok(Some(watch))
    }

    fn offer(&mut self, epoch: u64) -> Result<Option<ClaimWatch>, String> {
        let attempt = self.order.attempt;
        let (recorded, answer) = channel();
        self.tell(TaskEvent::Offering {
            work: self.order.work.id.clone(),
            offer: KnownOffer { attempt, epoch },
            recorded,
        });
        // A loop that does not write it down is about to end.
        if answer.recv().is_err() {
            return Ok(None);
        }
        self.listen(epoch);
        let subject = self.subject.clone();
        let put = |shared: &FleetShared| {
            let claim = TaskClaim::Offered { attempt };
            match write_claim(&shared.engine, &subject, 0, None, &claim) {
                // Nobody else writes this number: an answer got lost.
                Err(EngineError::Conflict) => Ok(()),
                other => other.map(drop),
            }
        };
        if self.insist("offering it", put)?.is_none() || !self.send_offer()? {
            return Ok(None);
        }
        let read = |shared: &FleetShared| read_claim(&shared.engine, &subject);
        let Some(stored) = self.insist("reading who holds it", read)? else {
            return Ok(None);
        };
        self.saw(&stored);
        let watch = ClaimWatch::new(self.shared.terms, self.now(), &stored);
        Ok(Some(watch))
    }

    /// Puts bundles and the offer where workers find them; false where somebody wants the end.
    fn send_offer(&mut self) -> Result<bool, String> {
        let Some(message) = self.message()? else {
            return Ok(false);
        };
        let value = serde_json::to_vec(&message).map_err(|error| error.to_string())?;
        let target = OfferTarget::Pool {
            pool: self.shared.pool.clone(),
            agent: self.order.config.backend.backend_type.clone(),
        };
        let id = self.subject.clone();
        let offer = |shared: &FleetShared| shared.engine.offer(&target, &id, &value);
        Ok(self.insist("offering it", offer)?.is_some())
    }

    fn message(&mut self) -> Result<Option<OfferMessage>, String> {
        let shared = self.shared.clone();
        let _one = shared
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = shared.known_root();
        let published = shared
            .place
            .publish(&self.order.work, known.as_deref(), &shared.folder)
            .map_err(|error| format!("cannot pack what its worker needs: {error}"))?;
        let Published { root, base, .. } = &published;
        let prefix = file_name(&shared.loop_id);
        let root_object = format!("{prefix}-root-{root}");
        if let Some(bundle) = &published.root_bundle {
            let put = |shared: &FleetShared| shared.engine.put_object(&root_object, bundle);
            if self.insist("sending the repository", put)?.is_none() {
                return Ok(None);
            }
            drop(fs_err::remove_file(bundle));
            shared.set_root(root);
        }
        let rest = match &published.bundle {
            None => None,
            Some(bundle) => {
                let name = format!("{}-order", file_name(&self.subject));
                let put = |shared: &FleetShared| shared.engine.put_object(&name, bundle);
                if self.insist("sending the work", put)?.is_none() {
                    return Ok(None);
                }
                drop(fs_err::remove_file(bundle));
                Some(name)
            }
        };
        Ok(Some(OfferMessage {
            version: shared.version.clone(),
            loop_id: shared.loop_id.clone(),
            repository: published.repository.clone(),
            epoch: self.epoch,
            subject: self.subject.clone(),
            tasks: shared.tasks.clone(),
            folder: published.folder.clone(),
            shielded: published.shielded.clone(),
            git: GitParcel {
                base: base.clone(),
                branch: published.branch.clone(),
                root: (root.clone(), root_object),
                rest,
                author: published.author.clone(),
            },
            order: self.order.clone(),
        }))
    }

    fn saw(&mut self, stored: &StoredClaim) {
        if let Some(worker) = stored.worker() {
            self.worker = Some(worker.to_owned());
        }
        self.last = stored.clone();
    }

    /// Follows what becomes of it to its end.
    fn follow(&mut self, mut watch: ClaimWatch) -> AttemptNews {
        loop {
            if self.give_up_at.is_some_and(|at| Instant::now() >= at) {
                self.give_up_at = None;
                watch.take_back();
            }
            let now = self.now();
            match watch.act(now) {
                WatchAct::Wait { until } => self.wait(&mut watch, until),
                WatchAct::Read => match read_claim(&self.shared.engine, &self.subject) {
                    Ok(stored) => {
                        self.saw(&stored);
                        watch.read(self.now(), self.link(), &stored);
                    }
                    Err(error) => {
                        debug!(%error, "cannot read who holds a task");
                        watch.not_read(self.now());
                    }
                },
                WatchAct::Recall => {
                    let engine = &self.shared.engine;
                    let seq = write_claim(engine, &self.subject, 0, None, &TaskClaim::Recalled);
                    info!(
                        task = self.order.work.id,
                        epoch = self.epoch,
                        "calling its worker"
                    );
                    watch.recalled(self.now(), seq.ok());
                }
                WatchAct::Close { expect, forced } => {
                    let engine = &self.shared.engine;
                    let claim = TaskClaim::Closed { forced };
                    let closed = write_claim(engine, &self.subject, expect, None, &claim);
                    info!(
                        task = self.order.work.id,
                        epoch = self.epoch,
                        taken = closed.is_ok(),
                        "taking a task back"
                    );
                    watch.closed(self.now(), closed.is_ok());
                }
                WatchAct::TellUntaken => {
                    let message = self.untaken();
                    self.tell(TaskEvent::Notice(message));
                }
                WatchAct::Deliver => return self.deliver(),
                WatchAct::Interrupted | WatchAct::Over => {
                    if !self.stopping {
                        let worker = self.worker.as_deref().unwrap_or("its worker");
                        self.tell(TaskEvent::Notice(format!(
                            "task {}: {worker} is gone: it is offered again",
                            self.order.work.id
                        )));
                    }
                    return self.interrupted(None);
                }
            }
        }
    }

    fn wait(&mut self, watch: &mut ClaimWatch, until: Option<Duration>) {
        let now = self.now();
        let give_up = self
            .give_up_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        let left = until.map(|until| until.saturating_sub(now));
        let left = left.into_iter().chain(give_up).min();
        let input = match left {
            None => self.inbox.recv().ok(),
            Some(left) => self.inbox.recv_timeout(left).ok(),
        };
        match input {
            None => {}
            Some(AttemptInput::Stored(stored)) => {
                self.saw(&stored);
                watch.saw(self.now(), self.link(), &stored);
            }
            Some(AttemptInput::LostAll) => watch.lost_all(self.now()),
            Some(AttemptInput::Note { worker, note }) => self.heard(worker, note),
            Some(AttemptInput::Stop(stop)) => self.ask_to_stop(watch, stop),
        }
    }

    fn heard(&mut self, worker: String, note: AttemptNote) {
        if self.worker.as_ref().is_some_and(|known| *known != worker) {
            return;
        }
        self.tell(match note {
            AttemptNote::Opened { loop_id, unheard } => TaskEvent::Opened {
                work: self.order.work.id.clone(),
                slot: self.order.slot,
                loop_id,
                unheard,
                worker: Some(worker),
            },
            AttemptNote::Spent { spent } => TaskEvent::Spent(self.order.slot, spent),
        });
    }

    /// Asks the worker; a task that nobody holds, or whose worker does not answer, is taken back.
    fn ask_to_stop(&mut self, watch: &mut ClaimWatch, stop: AttemptStop) {
        let (request, patience) = match stop {
            AttemptStop::EndRun(budget) => (AttemptRequest::EndRun { budget }, None),
            AttemptStop::Stop => (AttemptRequest::Stop, Some(STOP_PATIENCE)),
            AttemptStop::Kill => (AttemptRequest::Kill, Some(KILL_PATIENCE)),
        };
        self.stopping |= patience.is_some();
        let Some(worker) = self
            .worker
            .clone()
            .filter(|_| watch.state() == ClaimState::Held)
        else {
            return watch.take_back();
        };
        let child = child_name(&self.order.work.id, self.epoch);
        let subject = subject::control(&self.shared.loop_id, &worker, &child);
        let body = serde_json::to_vec(&request).unwrap_or_default();
        let engine = &self.shared.engine;
        match (engine.request(&subject, &body, REQUEST_TIMEOUT), patience) {
            (_, None) => {}
            (Ok(_), Some(patience)) => self.give_up_at = Some(Instant::now() + patience),
            (Err(error), Some(_)) => {
                debug!(%error, worker, "a worker cannot be reached: its task is taken back");
                watch.take_back();
            }
        }
    }

    /// Takes in what the attempt came to.
    fn deliver(&mut self) -> AttemptNews {
        let task = self.order.work.id.clone();
        let StoredClaim::Value {
            claim: TaskClaim::Done { worker, result, .. },
            ..
        } = &self.last
        else {
            return self.interrupted(Some(format!("task {task}: its result is gone")));
        };
        let worker = worker.clone();
        let done: DeliveredAttempt = match serde_json::from_value((**result).clone()) {
            Ok(done) => done,
            Err(error) => {
                let message =
                    format!("task {task}: what {worker} handed in is unreadable: {error}");
                return self.interrupted(Some(message));
            }
        };
        let mut news = done.news;
        (news.slot, news.tasks) = (self.order.slot, self.order.tasks.clone());
        let imported = match &done.commit {
            None => Ok(()),
            Some((commit, built_on)) => self.import(commit, built_on, done.object.as_deref()),
        };
        if let Err(message) = imported {
            warn!(task, worker, message, "work could not be taken in");
            news.end = AttemptEnd::Interrupted;
            news.run = None;
            news.trouble = Some(format!(
                "task {task}: cannot take in the work of {worker}: {message}"
            ));
        }
        news
    }

    fn import(&self, commit: &str, built_on: &str, object: Option<&str>) -> Result<(), String> {
        let file = match object {
            None => None,
            Some(object) => {
                let file = self.shared.folder.join(file_name(object));
                fs_err::create_dir_all(&self.shared.folder).map_err(|error| error.to_string())?;
                self.fetch(object, &file)?;
                Some(file)
            }
        };
        let delivery = WorkDelivery {
            epoch: self.epoch,
            commit: commit.to_owned(),
            built_on: built_on.to_owned(),
            bundle: file.clone(),
        };
        let imported = self.shared.place.import(&self.order.work, &delivery);
        if let Some(file) = file {
            drop(fs_err::remove_file(file));
        }
        imported.map_err(|error| error.to_string())
    }

    fn fetch(&self, object: &str, file: &std::path::Path) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match self.shared.engine.get_object(object, file) {
                Ok(()) => return Ok(()),
                Err(error)
                    if (error.is_temporary() || matches!(error, EngineError::NoObject(_)))
                        && began.elapsed() < IMPORT_PATIENCE =>
                {
                    std::thread::sleep(REST);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The worker may forget its result once the journal has it.
    fn accept(&mut self) {
        let (told, settled) = channel();
        self.tell(TaskEvent::Settled(told));
        if settled.recv().is_err() {
            return;
        }
        let engine = &self.shared.engine;
        let seq = self.last.seq();
        let accepted = write_claim(engine, &self.subject, seq, None, &TaskClaim::Accepted);
        if let Err(error) = accepted {
            debug!(%error, "a result was not confirmed");
        }
        let name = file_name(&self.subject);
        for object in [format!("{name}-order"), format!("{name}-result")] {
            drop(engine.delete_object(&object));
        }
    }

    /// Why nobody takes the offer, as far as that can be told.
    fn untaken(&self) -> String {
        let task = &self.order.work.id;
        let agent = &self.order.config.backend.backend_type;
        let why = why_untaken(&self.shared.workers(), &self.shared.pool, agent);
        format!("task {task} is offered, and nobody has taken it: {why}")
    }
}
