//! One attempt on a worker: claimed, made as a task loop makes its own, handed in.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use descartes_bridge::{Engine, EngineError, ServedRequest, subject};
use descartes_kernel::fleet::{AgentLogin, EndOrder, LeaseEnd, LimitedLogin, add_limit, limit_of};
use descartes_kernel::sched::AttemptEnd;
use descartes_kernel::tasks::AttemptTrouble;
use descartes_proc::LeaseClock;
use descartes_store::state_file;
use jiff::Timestamp;
use tracing::{debug, info, warn};

use super::clone::{Clones, PlaceError};
use super::ending::Ending;
use super::git_remote::{GitRemote, OfferRemote, offer_refs};
use super::handover::Handover;
use super::keeper::{Keeper, TakenClaim};
use super::messages::{
    AttemptNote, AttemptRequest, DeliveredAttempt, OfferMessage, RemoteFailure, RequestReceipt,
    child_name,
};
use super::mirror_source::{MirrorHandle, MirrorSource};
use super::results::{FinishedAttempt, Results};
use super::wip::{WipKeeper, WipOf};
use crate::host::gate_files::gate_programs;
use crate::host::message::HostMessage;
use crate::host::{AttemptTree, HostSettings};
use crate::tasks::attempt::Job;
use crate::tasks::attempt_control::Control;
use crate::tasks::event::{AttemptNews, TaskEvent};
use crate::tasks::executor::of_tasks;
use crate::tasks::launch::file_name;
use crate::tasks::order::AttemptOrder;
use crate::tasks::trees::Trees;

const BETWEEN_TRIES: Duration = Duration::from_secs(2);

/// What a worker makes attempts with.
pub(super) struct SlotContext {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) clones: Clones,
    pub(super) settings: HostSettings,
    pub(super) worker: String,
    /// Whose accounts its agents use.
    pub(super) login: String,
    /// Limits that providers told this worker.
    pub(super) limits: Mutex<Vec<LimitedLogin>>,
    pub(super) results: Results,
    /// By task loop: the programs of its gates on this machine, as they were when they were met first.
    pub(super) gate_programs: Mutex<HashMap<String, BTreeMap<String, String>>>,
    /// How often work in progress is stored; as long a repository is tried that does not take commits.
    pub(super) wip_every: Duration,
    pub(super) ending: Arc<Ending>,
}

/// What became of an attempt whose task was claimed.
pub(super) enum MadeAttempt {
    HandedIn(FinishedAttempt),
    /// It is over, and the engine was away for too long: its result is on the disk.
    Kept(FinishedAttempt),
    /// The task is not this worker's any more.
    InVain,
}

impl SlotContext {
    fn login_of(&self, agent: &str) -> AgentLogin {
        AgentLogin {
            agent: agent.to_owned(),
            login: self.login.clone(),
        }
    }

    /// Until when the provider of an agent has limited the login of this worker.
    pub(super) fn limit(&self, agent: &str) -> Option<Timestamp> {
        let known = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limit_of(&known, &self.login_of(agent), Timestamp::now())
    }

    /// Why an offer is not taken for an agent whose provider has limited the login of this worker, as
    /// the coordinator heard from another.
    pub(super) fn limit_objection(&self, offer: &OfferMessage) -> Option<String> {
        let agent = &offer.order.config.backend.backend_type;
        let mut known = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        for told in &offer.order.limited_logins {
            add_limit(&mut known, told.clone());
        }
        drop(known);
        let until = self.limit(agent)?;
        Some(format!(
            "the provider of {agent} has limited the login `{}` until {until:.0}",
            self.login
        ))
    }

    /// What the gates of an offer hang on: files of the tree as the coordinator knows them, and the programs of this
    /// machine.
    fn gate_files(&self, offer: &OfferMessage) -> BTreeMap<String, String> {
        let gates = &offer.order.config.verify;
        let found = gate_programs(gates, &self.settings.environment);
        let known = self.gate_programs.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let known = known.entry(offer.loop_id.clone()).or_default();
        let ours = found.into_iter().map(|(file, print)| {
            let print = known.entry(file.clone()).or_insert(print).clone();
            (file, print)
        });
        let of_tree = offer.order.gate_files.iter();
        let of_tree = of_tree.filter(|(file, _)| !file.starts_with('/'));
        let of_tree = of_tree.map(|(file, print)| (file.clone(), print.clone()));
        of_tree.chain(ours).collect()
    }

    /// A limit that an attempt was told holds for this worker's login alone.
    fn note_limit(&self, agent: &str, end: &mut AttemptEnd) {
        if let AttemptEnd::Limited { until, login } = end {
            let (of, until) = (self.login_of(agent), *until);
            *login = Some(of.clone());
            let mut own = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            add_limit(&mut own, LimitedLogin { of, until });
        }
    }
}

/// Makes an attempt whose task was claimed.
pub(super) fn make_attempt(
    ctx: &SlotContext,
    slot: u32,
    offer: &OfferMessage,
    taken: TakenClaim,
    control: &Control,
) -> MadeAttempt {
    let clock = LeaseClock::default();
    let (subject, claim) = (taken.of.subject.clone(), taken.of.claim.clone());
    let keeper = Keeper::start(
        ctx.engine.clone(),
        taken,
        clock.clone(),
        control.clone(),
        ctx.ending.clone(),
    );
    let keeper = match keeper {
        Ok(keeper) => keeper,
        Err(error) => {
            warn!(%error, "cannot start a thread");
            return MadeAttempt::InVain;
        }
    };
    let child = child_name(&offer.order.work.id, offer.epoch);
    let mirror = {
        let subject = subject::journal(&offer.loop_id, &ctx.worker, &child);
        MirrorSource::start(&ctx.engine, &subject, &ctx.settings.root)
    };
    let _commands = serve_commands(ctx, offer, &child, control, &mirror.handle());
    let mut done = DeliveredAttempt {
        news: AttemptNews::interrupted(&offer.order),
        commit: None,
        object: None,
        pushed: false,
        others_fault: false,
        remote_failure: None,
    };
    let began = Instant::now();
    let (mut object, mut spare, mut is_stored) = (None, None, true);
    match place_for(ctx, slot, offer, &keeper) {
        Err(error) => {
            let is_remote = matches!(error, PlaceError::Remote(_));
            done.remote_failure = is_remote.then_some(RemoteFailure::Fetch);
            done.news.trouble = Some(error.to_string());
        }
        Ok((place, remote)) => {
            let making = Making {
                slot,
                offer,
                child: &child,
                place: &place,
                clock: &clock,
                control,
                mirror: mirror.handle(),
                remote: remote.clone(),
            };
            done.news = making.run_job(ctx);
            mirror.over();
            ctx.note_limit(&offer.order.config.backend.backend_type, &mut done.news.end);
            if clock.has_stood_still() && matches!(done.news.end, AttemptEnd::Failed { .. }) {
                // It may have failed because it stood still.
                done.news.end = AttemptEnd::Interrupted;
            }
            let handover = Handover {
                engine: &ctx.engine,
                ending: &ctx.ending,
                keeper: &keeper,
                folder: ctx.clones.folder_of(offer).join("results"),
                push_patience: ctx.wip_every,
            };
            let handed = match done.news.no_commit.take() {
                None => handover.deliver(offer, &place, remote.as_ref()),
                Some(message) => Err(format!("cannot commit the work: {message}")),
            };
            match handed {
                Ok(delivered) => {
                    is_stored = delivered.is_stored;
                    done.commit = Some((delivered.commit, offer.git.built_on().to_owned()));
                    done.pushed = delivered.pushed;
                    match delivered.pushed {
                        true => spare = delivered.bundle,
                        false => object = delivered.bundle,
                    }
                    let not_pushed = object.as_ref().and(remote.as_ref());
                    done.remote_failure = not_pushed.map(|_| RemoteFailure::Push);
                    done.object = object.as_ref().map(|(name, _)| name.clone());
                }
                Err(message) => {
                    done.news.end = AttemptEnd::Interrupted;
                    done.news.trouble = Some(message);
                }
            }
        }
    }
    mirror.over();
    let machine_failure = machine_failure(&done);
    if machine_failure.is_some() {
        // What another attempt has damaged is no fault of this one.
        done.others_fault = ctx.clones.is_suspect_since(offer, began);
        ctx.clones.suspect(offer);
    }
    let result = match serde_json::to_value(&done) {
        Ok(result) if keeper.end().is_none() => result,
        _ => return MadeAttempt::InVain,
    };
    let finished = FinishedAttempt {
        subject,
        claim,
        result,
        object,
        spare,
        spare_stored: false,
        machine_failure,
        others_fault: done.others_fault,
        loop_id: mirror.handle().loop_id(),
        mirror: Some(mirror),
    };
    ctx.results.write(&finished);
    let end = match is_stored {
        true => keeper.hand_in(finished.result.clone()),
        // Nobody may hear of commits that are not there.
        false => LeaseEnd::Left,
    };
    match end {
        LeaseEnd::HandedIn => {
            info!(task = offer.order.work.id, epoch = offer.epoch, "handed in");
            MadeAttempt::HandedIn(finished)
        }
        LeaseEnd::GivenUp | LeaseEnd::Left => {
            warn!(
                task = offer.order.work.id,
                epoch = offer.epoch,
                "kept on the disk"
            );
            MadeAttempt::Kept(finished)
        }
        LeaseEnd::Fenced => {
            ctx.results.forget(&finished);
            MadeAttempt::InVain
        }
    }
}

/// Why another machine may fare better with it. A repository that gives nothing is seen to by the coordinator.
fn machine_failure(done: &DeliveredAttempt) -> Option<String> {
    if let Some(RemoteFailure::Fetch) = done.remote_failure {
        return None;
    }
    let AttemptNews {
        trouble,
        ends_all,
        run,
        ..
    } = &done.news;
    let told = AttemptTrouble::of_worker(trouble.clone(), ends_all.clone(), run.is_some());
    Some(told.0?.message().to_owned())
}

/// Where an attempt is made, and how its commits are handed over if not through the engine.
fn place_for(
    ctx: &SlotContext,
    slot: u32,
    offer: &OfferMessage,
    keeper: &Keeper,
) -> Result<(Arc<Trees>, Option<OfferRemote>), PlaceError> {
    let began = Instant::now();
    let place = loop {
        match ctx.clones.place_for(offer) {
            Err(PlaceError::Remote(message))
                if began.elapsed() < ctx.wip_every && ctx.ending.order() < Some(EndOrder::Stop) =>
            {
                if keeper.end().is_some() {
                    return Err(PlaceError::from("the task was taken back"));
                }
                debug!(message, "trying again");
                std::thread::sleep(BETWEEN_TRIES);
            }
            place => break place?,
        }
    };
    let Some(url) = &offer.git.remote else {
        return Ok((place, None));
    };
    let dir = ctx.clones.folder_of(offer);
    let remote = GitRemote::open(
        url,
        &*place,
        &dir.join(format!("remote-{slot}.git")),
        ctx.settings.remote_terms,
    )?;
    let remote = OfferRemote {
        remote: Arc::new(remote),
        refs: offer_refs(&offer.loop_id, &offer.subject),
    };
    Ok((place, Some(remote)))
}

/// An attempt that is being made.
struct Making<'a> {
    slot: u32,
    offer: &'a OfferMessage,
    child: &'a str,
    place: &'a Arc<Trees>,
    clock: &'a LeaseClock,
    control: &'a Control,
    mirror: MirrorHandle,
    remote: Option<OfferRemote>,
}

impl Making<'_> {
    fn run_job(self, ctx: &SlotContext) -> AttemptNews {
        let (tx, rx) = channel();
        let order = own_order(ctx, self.slot, self.offer);
        let mut settings = of_tasks(&ctx.settings, &order);
        settings.lease = self.clock.clone();
        let told = {
            let engine = ctx.engine.clone();
            let subject = subject::events(&self.offer.loop_id, &ctx.worker, self.child);
            let thread = std::thread::Builder::new().name("notes".to_owned());
            let mirror = self.mirror.clone();
            thread.spawn(move || tell_notes(&engine, &subject, &rx, &mirror))
        };
        let job = Job {
            order,
            settings,
            place: self.place.clone(),
            control: self.control.clone(),
            tx,
        };
        let wip = WipKeeper::start(WipOf {
            engine: ctx.engine.clone(),
            place: self.place.clone(),
            slot: self.slot,
            work: self.offer.order.work.clone(),
            subject: self.offer.subject.clone(),
            built_on: self.offer.git.built_on().to_owned(),
            folder: ctx.clones.folder_of(self.offer).join("results"),
            every: ctx.wip_every,
            remote: self.remote.clone(),
            mirror: self.mirror.clone(),
        });
        let mut news = job.make();
        drop(wip);
        if let Ok(told) = told {
            drop(told.join());
        }
        news.slot = self.offer.order.slot;
        news
    }
}

/// The order as this worker carries it out: in files of its own, and counted from what the coordinator
/// has heard of this worker's loop.
fn own_order(ctx: &SlotContext, slot: u32, offer: &OfferMessage) -> AttemptOrder {
    let mut order = offer.order.clone();
    order.slot = slot;
    order.gate_files = ctx.gate_files(offer);
    order.name = format!("{}@{}", order.name, ctx.worker);
    let worker = serde_json::Value::from(ctx.worker.as_str());
    order.family.insert("worker".to_owned(), worker);
    let folder = ctx.clones.folder_of(offer).join("tasks");
    let file = folder.join(format!("{}.json", file_name(&order.work.id)));
    match state_file::load(&file) {
        Ok(loaded) => {
            // What this loop proved and could not hand in is in no tree any more: an offer brings its own.
            order.tree = AttemptTree::Other;
            let id = loaded.state.loop_id.clone();
            if id.is_none() || id != order.last_loop {
                // Another worker went on meanwhile: what this loop did was heard of, or is not wanted.
                order.reported_iterations = loaded.state.iteration;
                order.reported_spent = None;
            }
        }
        Err(_) => {
            let spent = order.reported_spent.take().unwrap_or_default();
            let least = Duration::from_secs(1);
            let left = |time: Duration| time.saturating_sub(Duration::from_millis(spent.ms));
            order.own.time = order.own.time.map(|time| left(time).max(least));
            let used = spent.cost_micros.unwrap_or(0) as f64 / 1e6;
            order.own.cost = order.own.cost.map(|cost| (cost - used).max(0.000_001));
            order.reported_iterations = 0;
            order.reported_spent = Some(descartes_kernel::state::Spent::default());
        }
    }
    order.config.state_file = Some(file);
    order
}

/// Passes on what happens while an attempt is under way. What a run has spent comes with every line that its agent
/// says of it, and each holds all of it: where the engine is slower than that, only the last is passed on, so that
/// nothing piles up and the result waits for no more than that.
fn tell_notes(
    engine: &Arc<dyn Engine>,
    subject: &str,
    events: &Receiver<HostMessage>,
    mirror: &MirrorHandle,
) {
    let mut count = 0_u64;
    let mut next = None;
    while let Some(message) = next.take().or_else(|| events.recv().ok()) {
        let HostMessage::Task(mut event) = message else {
            continue;
        };
        if let TaskEvent::Spent(..) = *event {
            for later in events.try_iter() {
                match later {
                    HostMessage::Task(later) if matches!(*later, TaskEvent::Spent(..)) => {
                        event = later;
                    }
                    other => {
                        next = Some(other);
                        break;
                    }
                }
            }
        }
        let note = match *event {
            TaskEvent::Opened {
                loop_id, unheard, ..
            } => {
                mirror.opened(&loop_id, unheard);
                AttemptNote::Opened { loop_id, unheard }
            }
            TaskEvent::Spent(_, spent) => AttemptNote::Spent { spent },
            _ => continue,
        };
        let Ok(value) = serde_json::to_vec(&note) else {
            continue;
        };
        count += 1;
        // What does not arrive comes with the result.
        let id = format!("{subject}-{count}");
        if let Err(error) = engine.append_event(subject, &id, &value) {
            warn!(%error, "a note did not arrive");
        }
    }
}

/// Serves the coordinator's requests while an attempt is under way.
struct CommandServer {
    stop: std::sync::mpsc::Sender<()>,
}

impl Drop for CommandServer {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.stop.send(());
    }
}

fn serve_commands(
    ctx: &SlotContext,
    offer: &OfferMessage,
    child: &str,
    control: &Control,
    mirror: &MirrorHandle,
) -> Option<CommandServer> {
    let subject = subject::control(&offer.loop_id, &ctx.worker, child);
    let requests = match ctx.engine.serve(&subject) {
        Ok(requests) => requests,
        Err(error) => {
            warn!(%error, "this attempt cannot be reached by commands");
            return None;
        }
    };
    let (stop, stopped) = channel();
    let (engine, control, mirror) = (ctx.engine.clone(), control.clone(), mirror.clone());
    let thread = std::thread::Builder::new().name("commands".to_owned());
    let run = move || {
        while stopped.try_recv().is_err() {
            if let Ok(request) = requests.recv_timeout(Duration::from_millis(200)) {
                drop(carry_out(&engine, &control, &mirror, &request));
            }
        }
    };
    thread.spawn(run).ok()?;
    Some(CommandServer { stop })
}

fn carry_out(
    engine: &Arc<dyn Engine>,
    control: &Control,
    mirror: &MirrorHandle,
    request: &ServedRequest,
) -> Result<(), EngineError> {
    let mut receipt = RequestReceipt::Taken;
    match serde_json::from_slice(&request.body) {
        Ok(AttemptRequest::EndRun { budget }) => control.end_run(budget),
        Ok(AttemptRequest::Stop) => control.stop(),
        Ok(AttemptRequest::Kill) => control.kill(),
        Ok(AttemptRequest::Command { order }) => receipt = mirror.command(control, order),
        Err(_) => receipt = RequestReceipt::Unknown,
    }
    let body = serde_json::to_vec(&receipt).unwrap_or_default();
    engine.answer(&request.token, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_bridge::FollowFrom;
    use descartes_bridge::memory::MemoryServer;
    use descartes_kernel::state::Spent;

    #[test]
    fn a_backlog_of_usage_lines_is_one_note_with_the_last_of_them() {
        let server = MemoryServer::new();
        let engine: Arc<dyn Engine> = Arc::new(server.connect());
        let subject = subject::events("loop", "here", "7");
        let root = tempfile::tempdir().unwrap();
        let root = descartes_store::layout::StateRoot::at(root.path().to_owned());
        let mirror = MirrorSource::start(&engine, "unused", &root);
        let (tx, rx) = channel();
        let tell = |event| tx.send(HostMessage::Task(Box::new(event))).unwrap();
        let spent = |ms| Spent {
            ms,
            ..Spent::default()
        };
        for ms in 1..=10_000 {
            tell(TaskEvent::Spent(0, spent(ms)));
        }
        tell(TaskEvent::Opened {
            work: "7".to_owned(),
            slot: 0,
            serial: 0,
            loop_id: "child".to_owned(),
            unheard: Spent::default(),
            worker: None,
        });
        (10_001..=20_000).for_each(|ms| tell(TaskEvent::Spent(0, spent(ms))));
        drop(tx);
        tell_notes(&engine, &subject, &rx, &mirror.handle());
        let told = engine.follow(&subject, FollowFrom::Start).unwrap();
        let notes = std::iter::from_fn(|| told.recv_timeout(Duration::from_millis(200)).ok());
        let notes = notes.filter_map(|delivery| match delivery {
            descartes_bridge::Delivery::Entry(entry) => serde_json::from_slice(entry.value()?).ok(),
            _ => None,
        });
        let notes: Vec<AttemptNote> = notes.collect();
        let [
            AttemptNote::Spent { spent: first },
            AttemptNote::Opened { .. },
            AttemptNote::Spent { spent: last },
        ] = &notes[..]
        else {
            panic!("{notes:?}")
        };
        assert_eq!((first.ms, last.ms), (10_000, 20_000));
    }
}
