//! One attempt that a worker makes, as its coordinator follows it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use descartes_bridge::{LinkStatus, subject};
use descartes_kernel::fleet::{ClaimState, ClaimWatch, OwnLink, StoredClaim, TaskClaim, WatchAct};
use descartes_kernel::outcome::Budget;
use descartes_kernel::state::Spent;
use descartes_proc::BootTime;
use tracing::{debug, info};

use super::messages::{AttemptNote, AttemptRequest, child_name, why_untaken};
use super::mirror::{Mirror, MirrorOf};
use super::shared::{AttemptInput, AttemptStop, FleetShared};
use super::stored::{closed_now, read_claim, write_claim};
use crate::host::message::HostMessage;
use crate::tasks::attempt_control::StopAttempt;
use crate::tasks::event::{AttemptNews, TaskEvent};
use crate::tasks::order::AttemptOrder;

/// How long a worker may take to answer a request to stop before its task is taken back.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(15);
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(3);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the engine may take to take a task back, before this host leaves it to the next one.
const LEAVE_PATIENCE: Duration = Duration::from_secs(30);
const KILL_LEAVE_PATIENCE: Duration = Duration::from_secs(5);
/// After an error of the engine.
pub(super) const REST: Duration = Duration::from_secs(2);

/// Whether nothing has to be asked of the engine any more.
fn is_settled(state: ClaimState) -> bool {
    matches!(
        state,
        ClaimState::Done | ClaimState::Closed | ClaimState::ForceClosed | ClaimState::Accepted
    )
}

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
    pub(super) shared: Arc<FleetShared>,
    pub(super) order: AttemptOrder,
    pub(super) tx: Sender<HostMessage>,
    pub(super) inputs: Sender<AttemptInput>,
    pub(super) inbox: Receiver<AttemptInput>,
    /// Leases are counted from there.
    pub(super) origin: BootTime,
    /// Where the claim is stored.
    pub(super) subject: String,
    pub(super) epoch: u64,
    /// Who holds it.
    pub(super) worker: Option<String>,
    /// The copy of its loop.
    pub(super) mirror: Option<Mirror>,
    /// It was told that its loop is open.
    pub(super) opened: bool,
    /// An earlier host has offered it.
    pub(super) attached: bool,
    /// The same as its worker noted it.
    pub(super) noted: Option<(String, Spent, String)>,
    /// What was last seen stored.
    pub(super) last: StoredClaim,
    /// When it is taken back, since its worker did not stop.
    pub(super) give_up_at: Option<Instant>,
    /// When it is left as it is, since the engine does not let us take it back.
    pub(super) leave_at: Option<Instant>,
    pub(super) stopping: bool,
    /// Its offer was closed, and nobody is at work on it.
    pub(super) is_taken_back: bool,
    /// It was closed while its holder may have been at work.
    was_forced: bool,
    /// Nothing of the offer is needed any more.
    pub(super) is_over: bool,
    /// Its result waits for the next host: it could not be fetched before somebody wanted the end.
    pub(super) left_to_next: bool,
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
            origin: BootTime::now(),
            subject: String::new(),
            epoch: 0,
            worker: None,
            mirror: None,
            opened: false,
            attached: false,
            noted: None,
            last: StoredClaim::Nothing,
            give_up_at: None,
            leave_at: None,
            stopping: false,
            is_taken_back: false,
            was_forced: false,
            is_over: false,
            left_to_next: false,
        }
    }

    /// Offers the attempt or takes it up, follows it, and tells how it ended.
    pub(super) fn make(mut self) {
        let task = self.order.work.id.clone();
        let mut news = match self.begin() {
            Ok(Some(watch)) => self.follow(watch),
            Ok(None) => self.interrupted(None),
            Err(message) => self.interrupted(Some(format!("task {task}: {message}"))),
        };
        self.shared.forget(&task, self.epoch);
        let accepts = self.last.state() == ClaimState::Done && !self.left_to_next;
        self.close_mirror(accepts);
        news.offer_over = Some(self.epoch).filter(|_| accepts || self.is_taken_back);
        let (recorded, settled) = channel();
        news.recorded = Some(recorded);
        self.tell(TaskEvent::Attempt(Box::new(news)));
        // A loop that does not write it down leaves it to the next host.
        if accepts && settled.recv().is_ok() {
            self.accept();
        }
        if self.is_over {
            self.shared.forget_refs(&self.subject);
        }
    }

    pub(super) fn interrupted(&self, trouble: Option<String>) -> AttemptNews {
        let mut news = AttemptNews::interrupted(&self.order);
        news.trouble = trouble;
        news
    }

    pub(super) fn tell(&self, event: TaskEvent) {
        // A task loop that is gone has given up already.
        drop(self.tx.send(HostMessage::Task(Box::new(event))));
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(super) fn link(&self) -> OwnLink {
        match self.shared.engine.link() {
            LinkStatus::Up { since, .. } => OwnLink::Up { lasting: since },
            LinkStatus::Down { .. } => OwnLink::Down,
        }
    }

    pub(super) fn saw(&mut self, stored: &StoredClaim) {
        if let Some(worker) = stored.worker() {
            self.worker = Some(worker.to_owned());
            if self.mirror.is_none() {
                self.mirror = self.begin_mirror(worker);
            }
        }
        self.last = stored.clone();
    }

    fn begin_mirror(&self, worker: &str) -> Option<Mirror> {
        let task = self.order.work.id.clone();
        let of = MirrorOf {
            child: child_name(&task, self.epoch),
            task,
            worker: worker.to_owned(),
            epoch: self.epoch,
        };
        Mirror::start(self.shared.clone(), of, self.inputs.clone())
    }

    /// Follows what becomes of it to its end.
    fn follow(&mut self, mut watch: ClaimWatch) -> AttemptNews {
        loop {
            if self.give_up_at.is_some_and(|at| Instant::now() >= at) {
                self.give_up_at = None;
                watch.take_back();
            }
            if self.leave_at.is_some_and(|at| Instant::now() >= at) && !is_settled(watch.state()) {
                return self.leave();
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
                    let claim = closed_now(forced);
                    let closed = write_claim(engine, &self.subject, expect, None, &claim);
                    info!(
                        task = self.order.work.id,
                        epoch = self.epoch,
                        taken = closed.is_ok(),
                        "taking a task back"
                    );
                    self.was_forced |= forced && closed.is_ok();
                    watch.closed(self.now(), closed.is_ok());
                }
                WatchAct::TellUntaken => {
                    let message = self.untaken();
                    self.tell(TaskEvent::Notice(message));
                }
                WatchAct::Deliver => return self.deliver(),
                WatchAct::Interrupted | WatchAct::Over => {
                    // One that does not know it yet may be at work for a while.
                    self.is_taken_back = !self.was_forced;
                    let stored = self.take_stored();
                    if !self.stopping {
                        let worker = self.worker.as_deref().unwrap_or("its worker");
                        let begins = match stored {
                            true => ", from the work that it had stored",
                            false => "",
                        };
                        self.tell(TaskEvent::Notice(format!(
                            "task {}: {worker} is gone: it is offered again{begins}",
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
        let deadlines = self.give_up_at.into_iter().chain(self.leave_at);
        let deadlines = deadlines.map(|at| at.saturating_duration_since(Instant::now()));
        let left = until.map(|until| until.saturating_sub(now));
        let left = left.into_iter().chain(deadlines).min();
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
            Some(AttemptInput::Opened {
                loop_id,
                unheard,
                worker,
            }) => {
                // An earlier host that has heard of it has counted what it used before.
                let is_known = self.attached && self.order.last_loop.as_ref() == Some(&loop_id);
                let unheard = if is_known { Spent::default() } else { unheard };
                self.tell_opened(loop_id, unheard, worker);
            }
            Some(AttemptInput::Stop(stop)) => self.ask_to_stop(watch, stop),
        }
    }

    /// The engine does not answer, and somebody wants the end: its worker cannot be told.
    fn leave(&self) -> AttemptNews {
        let worker = self.worker.as_deref().unwrap_or("its worker");
        self.tell(TaskEvent::Notice(format!(
            "task {}: the engine does not answer, so {worker} cannot be told to stop: its agent stands still \
             within a minute if the engine is away for it, too, and works on otherwise; once the engine answers \
             again: descartes loop cancel {}",
            self.order.work.id, self.shared.loop_id
        )));
        self.interrupted(None)
    }

    fn heard(&mut self, worker: String, note: AttemptNote) {
        if self.worker.as_ref().is_some_and(|known| *known != worker) {
            return;
        }
        match note {
            // Told once its copy is there; at the end, where there is none.
            AttemptNote::Opened { loop_id, unheard } => {
                self.noted = Some((loop_id, unheard, worker));
            }
            AttemptNote::Spent { spent } => self.tell(TaskEvent::Spent(self.order.serial, spent)),
        }
    }

    /// Tells once that the loop of the task is open.
    pub(super) fn tell_opened(&mut self, loop_id: String, unheard: Spent, worker: String) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        self.tell(TaskEvent::Opened {
            work: self.order.work.id.clone(),
            slot: self.order.slot,
            serial: self.order.serial,
            loop_id,
            unheard,
            worker: Some(worker),
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
        let leave = match stop {
            AttemptStop::EndRun(_) => None,
            AttemptStop::Stop => Some(LEAVE_PATIENCE),
            AttemptStop::Kill => Some(KILL_LEAVE_PATIENCE),
        };
        let leave_at = leave.map(|time| Instant::now() + time);
        self.leave_at = self.leave_at.into_iter().chain(leave_at).min();
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

    /// Why nobody takes the offer, as far as that can be told.
    fn untaken(&self) -> String {
        let task = &self.order.work.id;
        let agent = &self.order.config.backend.backend_type;
        let why = why_untaken(&self.shared.workers(), &self.shared.pool, agent);
        format!("task {task} is offered, and nobody has taken it: {why}")
    }
}
