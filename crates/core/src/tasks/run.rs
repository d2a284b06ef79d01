//! Drives a task loop: turns what happened into inputs of the scheduler, and carries out what it
//! answers. It decides nothing itself.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use descartes_kernel::budget;
use descartes_kernel::control::{Command, Grace};
use descartes_kernel::event::StopBy;
use descartes_kernel::fact;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched::{self, Effect, Input, Scheduler};
use descartes_kernel::state::{LoopState, Pause};
use descartes_kernel::step::{self, EndRun};
use descartes_kernel::tasks::{EarlyEnd, Hurry, Landing, ProvenTree, shown_wait};
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_store::debug_log::variant;
use jiff::Timestamp;
use tracing::{debug, info};

use super::asking::{SourceAccess, Write};
use super::event::TaskEvent;
use super::executor::{Executor, Threads};
use super::fleet::{Fleet, stop_remote_agents};
use super::launch;
use super::locks::{Locks, Wake};
use super::orders::Orders;
use super::place::Fresh;
use super::prepare::{Prepared, check_agents};
use super::runner::{Busy, Merging, Runner};
use super::runner_state::{AtWork, FileState, Growth, HeldStart, Questions};
use super::watch::FileWatch;
use crate::host::driver::Driver;
use crate::host::message::HostMessage;
use crate::host::task_loop::TaskLoop;
use crate::host::{HostEnd, HostError, HostSettings, Retry};

/// Waits look at the wall clock again this often: suspend and clock jumps.
const CLOCK_CHECK: Duration = Duration::from_secs(15);

impl TaskLoop for Prepared {
    fn run(mut self: Box<Self>, d: &mut Driver) -> Result<HostEnd, HostError> {
        let land_only = self.land_only.take();
        let mut runner = Runner::new(d, *self)?;
        let end = match land_only {
            Some(before) => runner.land_only(&before),
            None => runner.run(),
        };
        if end.is_err() {
            runner.stop_all();
            runner.wait_for_all();
        }
        end
    }

    fn own_agents(&self) -> Vec<String> {
        let asked = self.agents.iter().map(|brief| brief.agent.clone());
        let mut agents: Vec<String> = asked.collect::<Option<_>>().unwrap_or_default();
        agents.sort();
        agents.dedup();
        agents
    }

    fn stop_former(&self, former: &LoopState, settings: &HostSettings) -> Vec<String> {
        let Some(connect) = &settings.engines else {
            return Vec::new();
        };
        let work = stop_remote_agents(former, connect, Grace::Ask);
        let id = &former.loop_id;
        let untold = work.untold().map(|untold| {
            format!("{untold}; once the engine answers again: descartes loop cancel {id}")
        });
        let told = work.stopped().into_iter().chain(work.left());
        told.chain(untold).collect()
    }
}

impl<'d> Runner<'d> {
    fn new(d: &'d mut Driver, prepared: Prepared) -> Result<Self, HostError> {
        let Some(config) = d.state.config.tasks.as_deref().cloned() else {
            return Err(HostError::Internal("there are no tasks to run".to_owned()));
        };
        let Prepared {
            source,
            loaded,
            place,
            history,
            lock,
            retry,
            agents,
            engine,
            land_only: _,
        } = prepared;
        let executor: Box<dyn Executor> = match engine {
            None => Box::new(Threads::new(place.clone(), &d.settings)),
            Some(engine) => Box::new(Fleet::begin(engine, &config, place.clone(), d)?),
        };
        let tx = d.tx.clone();
        let source = SourceAccess::new(source, move |answer| {
            let answer = TaskEvent::Answered(Box::new(answer));
            drop(tx.send(HostMessage::Task(Box::new(answer))));
        });
        let source = source
            .map_err(|error| HostError::Internal(format!("cannot start a thread: {error}")))?;
        let sched_config = config.sched(d.state.config.max_iterations);
        let sched = Scheduler::recover(loaded.plan.clone(), sched_config, &history)
            .map_err(|error| HostError::refused(error.to_string(), "start over with --force"))?;
        let claimed = d.state.tasks.iter().flat_map(|tasks| {
            let ours = tasks.tasks.iter();
            ours.filter(|(_, task)| task.status == TaskStatus::InProgress)
                .map(|(id, _)| id.clone())
        });
        let reported = d
            .state
            .tasks
            .iter()
            .flat_map(|tasks| tasks.reported_iterations.keys());
        let reported: Vec<TaskId> = reported.cloned().collect();
        Ok(Self {
            claimed: claimed.collect(),
            orders: Orders::of(&loaded),
            d,
            config,
            sched,
            source,
            questions: Questions::default(),
            loaded,
            executor,
            place,
            live: BTreeMap::new(),
            next_serial: 0,
            refused: HashSet::new(),
            inputs: VecDeque::new(),
            waking: None,
            merging: Vec::new(),
            busy_since: None,
            delivered: HashMap::new(),
            no_commit: HashMap::new(),
            ended: None,
            stopped_for_person: false,
            history,
            growth: Growth::of(&reported),
            grew: Vec::new(),
            early: EarlyEnd::default(),
            at_work: AtWork::default(),
            reload_trouble: None,
            file: FileState::default(),
            retry,
            agents,
            news: VecDeque::new(),
            recorded: Vec::new(),
            watch: None,
            _lock: lock,
        })
    }

    fn run(&mut self) -> Result<HostEnd, HostError> {
        self.begin(self.slots())?;
        let gone = self.gone_meanwhile();
        self.announce()?;
        self.remember_gate_files()?;
        self.watch = FileWatch::begin(self.config.source.watched(), self.d.tx.clone());
        let begun = self.d.state.tasks.as_ref().is_some_and(|t| t.begun());
        if begun {
            let inputs = self.differences();
            self.inputs.extend(inputs);
            self.inputs.extend(self.lost_marks());
            self.inputs.push_back(Input::Removed { tasks: gone });
            self.run_lost_again()?;
        }
        self.inputs.push_back(Input::Begin);
        if self.retry == Retry::Blocked {
            self.inputs.push_back(Input::RetryBlocked);
        }
        self.apply_user_requests()?;
        self.advance()?;
        self.close_left_offers();
        loop {
            if self.wants_growth() {
                self.grow()?;
            } else if self.ended.is_some() && !self.growth.is_under_way() {
                break;
            }
            self.d.save_or_warn()?;
            self.wait()?;
            self.apply_user_requests()?;
            self.advance()?;
        }
        self.settle_source()?;
        self.land_rest()?;
        self.close()
    }

    /// Finished work that has not landed is tried once more when everything else is over.
    fn land_rest(&mut self) -> Result<(), HostError> {
        let landing = self.d.state.tasks.as_ref().and_then(|t| t.landing.clone());
        match self
            .early
            .lands_rest(self.d.state.requests.stop, landing.as_ref())
        {
            true => self.land_now(),
            false => Ok(()),
        }
    }

    fn land_now(&mut self) -> Result<(), HostError> {
        launch::land_rest(self)?;
        while !self.merging.is_empty() {
            self.wait()?;
            if self.d.state.requests.stop.is_some() {
                self.stop_for_person();
            }
        }
        Ok(())
    }

    /// Lands what is finished, and leaves everything else as it was.
    fn land_only(&mut self, before: &IterativeExitReason) -> Result<HostEnd, HostError> {
        let tried = self
            .begin(0)
            .and_then(|()| match self.d.state.requests.stop {
                None => self.land_now(),
                Some(_) => Ok(()),
            });
        if let Err(error) = tried {
            // The loop had ended before, and not for this.
            if !matches!(before, IterativeExitReason::Running) {
                self.d.finish(before.clone())?;
            }
            return Err(error);
        }
        self.after_landing(before)
    }

    /// Something that worked on the integration worktree is over.
    pub(super) fn free_integration(&mut self, what: Busy) {
        self.delivered.clear();
        self.merging.retain(|merging| merging.busy != what);
    }

    fn append_proofs(&mut self, proven: Vec<ProvenTree>) -> Result<(), HostError> {
        self.d.append_all(proven.into_iter().map(fact::tree_proven))
    }

    /// Where work goes and what it is built on, as soon as that is another.
    fn append_base(&mut self) -> Result<(), HostError> {
        let base = self.place.base();
        let decided = base.and_then(|base| fact::work_based(&self.d.state, base));
        self.d.append_all(decided)
    }

    /// Where finished work is, as soon as it is elsewhere than was known.
    fn append_landing(&mut self, landing: Option<Landing>) -> Result<(), HostError> {
        self.append_base()?;
        let Some(landing) = landing else {
            return Ok(());
        };
        let decided = fact::work_landed(&self.d.state, landing.clone());
        if decided.is_some() {
            info!(landing = %variant(&landing), "finished work");
        }
        self.d.append_all(decided)
    }

    /// Makes the place ready. Apart from this thread, since git may keep it waiting.
    fn begin(&mut self, slots: u32) -> Result<(), HostError> {
        if let Some(locks) = self.place.locks() {
            let tx = self.d.tx.clone();
            let notice = || HostMessage::Task(Box::new(TaskEvent::LockNotice));
            locks.wake(Wake(Box::new(move || drop(tx.send(notice())))));
        }
        let begun = self.d.state.tasks.as_ref().is_some_and(|t| t.begun());
        let fresh = match begun {
            true => Fresh::No,
            false => Fresh::Yes,
        };
        self.place.keep_in(self.d.dir.path());
        if let Some(tasks) = &self.d.state.tasks {
            self.place.remember(&tasks.proven);
            if let Some(base) = &tasks.base {
                self.place.recall(base, &tasks.steps);
            }
        }
        if let Some(branch) = &self.d.state.branch {
            self.place.land_on(branch);
        }
        let (place, tx) = (self.place.clone(), self.d.tx.clone());
        launch::spawn("begin", move || {
            let begun = TaskEvent::Prepared(place.begin(fresh, slots));
            drop(tx.send(HostMessage::Task(Box::new(begun))));
        })?;
        loop {
            match self.d.next(None)? {
                Some(HostMessage::Task(news)) => match *news {
                    TaskEvent::Prepared(Ok(waiting)) => return self.append_landing(waiting),
                    // Somebody wants it to end: there is nothing to be ready for.
                    TaskEvent::Prepared(Err(_)) if self.d.state.requests.stop.is_some() => {
                        return Ok(());
                    }
                    TaskEvent::Prepared(Err(error)) => {
                        error.log("preparing worktrees");
                        self.say()?;
                        // git may have been killed; and where something is wrong, it says what.
                        let hint = error.hint().unwrap_or_else(|| {
                            "to try again, once nothing is wrong in git: descartes loop resume"
                                .to_owned()
                        });
                        return Err(HostError::refused(error.to_string(), hint));
                    }
                    TaskEvent::LockNotice => self.say()?,
                    other => self.news.push_back(other),
                },
                Some(message) => {
                    self.handle_control(message)?;
                    if self.d.state.requests.stop.is_some() {
                        self.place.stop();
                    }
                }
                None => {}
            }
        }
    }

    /// Tasks that may be at work at the same time.
    fn slots(&self) -> u32 {
        let graph = self.loaded.plan.graph();
        let open = graph
            .nodes()
            .iter()
            .filter(|node| matches!(node.status, TaskStatus::Pending | TaskStatus::InProgress));
        let open = open.count().try_into().unwrap_or(u32::MAX);
        if self.config.workers.is_some() {
            // Nobody works here.
            return open.min(1);
        }
        self.config.parallel.max(1).min(open)
    }

    /// Passes on what the place has to say.
    pub(super) fn say(&mut self) -> Result<(), HostError> {
        let said = self.place.locks().map(Locks::said);
        for notice in said.unwrap_or_default() {
            self.d.append(match notice.needs_person {
                true => fact::needs_person(notice.message),
                false => fact::warning(notice.message),
            })?;
        }
        Ok(())
    }

    /// Without what a lock keeps from it the loop ends here, as if its host had died: nothing was
    /// decided about the task or wave that has met it, so that it is taken up where it was.
    fn fail_if_locked(&mut self) -> Result<(), HostError> {
        self.say()?;
        match self.place.locks().and_then(Locks::stuck) {
            None => Ok(()),
            Some(message) => Err(HostError::refused(
                message,
                "then continue with: descartes loop resume",
            )),
        }
    }

    pub(super) fn advance(&mut self) -> Result<(), HostError> {
        self.d.work_directory.check()?;
        while !self.inputs.is_empty() {
            let inputs: Vec<Input> = self.inputs.drain(..).collect();
            for input in &inputs {
                debug!(input = %variant(input), "scheduler input");
            }
            for effect in self.sched.advance_all(&inputs) {
                self.perform(effect)?;
            }
        }
        for recorded in self.recorded.drain(..) {
            // Who does not wait for it any more has given up.
            let _ = recorded.send(());
        }
        Ok(())
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), HostError> {
        debug!(effect = %variant(&effect), "scheduler");
        match effect {
            Effect::Append(event) => {
                let of_tasks = event.of_tasks().cloned();
                self.d.append(*event)?;
                if let Some(of_tasks) = &of_tasks {
                    self.tell_merged_too_late(of_tasks)?;
                }
                self.history.extend(of_tasks);
            }
            Effect::Claim { task } => self.claim(task)?,
            Effect::StartAttempt { slot, tasks } => {
                let claims = &self.questions.claims;
                match tasks.iter().any(|one| claims.contains(&one.task)) {
                    true => self.questions.held.push(HeldStart {
                        slot,
                        tasks,
                        looks_up: false,
                        stopped: false,
                    }),
                    false => self.start_attempt(slot, tasks)?,
                }
            }
            Effect::StopAttempts => self.stop_all(),
            Effect::EndRuns { budget } => {
                self.questions.stop_held(|_| true);
                let live = self.live.values();
                live.for_each(|live| live.control.end_run(budget));
            }
            Effect::Abandon { task } => {
                self.questions
                    .stop_held(|held| held.tasks.iter().any(|one| one.task == task));
                let live = self.live.values();
                live.filter(|live| live.tasks.contains(&task))
                    .for_each(|live| live.control.stop());
                let merging = self.merging.iter();
                merging
                    .filter(|merging| merging.tasks.contains(&task))
                    .for_each(Merging::stop);
            }
            Effect::Merge { task } => launch::merge(self, &task)?,
            Effect::StackTrain { train, tasks } => launch::stack_train(self, train, &tasks)?,
            Effect::GateTrain {
                train,
                tasks,
                members,
            } => launch::gate_train(self, train, &tasks, members)?,
            Effect::CheckMark { task } => launch::check_mark(self, task)?,
            Effect::SetBack { task, tail } => {
                self.write(&task, Write::Reopen)?;
                let first = tail.lines().next().unwrap_or_default();
                let message = format!(
                    "marked done by others, but a gate fails: set back to pending: {first}"
                );
                self.source.note(&task, &format!("descartes: {message}"));
                self.d.warn(format!("task {task}: {message}"))?;
            }
            Effect::MarkDone { task } => {
                self.write(&task, Write::Status(TaskStatus::Done))?;
                if self.claimed.remove(&task) {
                    self.source.note(&task, "descartes: done and proven");
                }
            }
            Effect::MarkBlocked { task, reason } => {
                self.take_back_mark(&task)?;
                self.write(&task, Write::Status(TaskStatus::Blocked))?;
                if self.claimed.remove(&task) {
                    let message = format!("descartes: blocked: {}", reason.describe());
                    self.source.note(&task, &message);
                }
            }
            Effect::Release { task } => {
                self.take_back_mark(&task)?;
                self.write(&task, Write::Status(TaskStatus::Pending))?;
                self.claimed.remove(&task);
            }
            Effect::CommitWave { wave, .. } => launch::commit_wave(self, wave)?,
            Effect::Wait { until } => self.waking = Some(until),
            Effect::Finish(ended) => self.ended = Some(ended),
        }
        Ok(())
    }

    /// Proven work of a task that left the file when it was merged already lands with the rest.
    fn tell_merged_too_late(&mut self, event: &sched::Event) -> Result<(), HostError> {
        match event {
            sched::Event::MergeEnded {
                task,
                next: sched::Next::Done,
                ..
            } if self.sched.state(task).is_none() => self.d.warn(format!(
                "task {task} is no longer in the task file, but its proven work was merged before \
                 that was known: it lands with the rest"
            )),
            _ => Ok(()),
        }
    }

    /// The next thing that happened, as inputs.
    pub(super) fn wait(&mut self) -> Result<(), HostError> {
        self.tell_wait()?;
        if let Some(news) = self.news.pop_front() {
            return self.hear(news);
        }
        let wake = self.waking;
        let wake = wake.map(|until| self.d.left_until(until).min(CLOCK_CHECK));
        let asking = self.questions.settling || self.questions.news.is_some();
        let look = self.file.look_again().filter(|_| !asking);
        let time = self.time_to_land();
        let deadline = wake.into_iter().chain(look).chain(time).min();
        let deadline = deadline.map(|left| self.d.mono() + left);
        if look.is_some_and(|left| left.is_zero()) {
            return self.look_for_file();
        }
        match self.d.next(deadline)? {
            None => {
                self.mind_time_to_land();
                if let Some(until) = self.waking
                    && self.d.left_until(until).is_zero()
                {
                    (self.waking, self.d.alarm) = (None, None);
                    self.d.input(&step::Input::WaitElapsed)?;
                    // A clock that was put back meanwhile is not there yet.
                    let now = until.max(Timestamp::now());
                    self.inputs.push_back(Input::Wake { now });
                }
                match self.file.look_again() {
                    Some(left) if left.is_zero() && !asking => self.look_for_file(),
                    _ => Ok(()),
                }
            }
            Some(HostMessage::Task(news)) => self.hear(*news),
            Some(message) => {
                if matches!(message, HostMessage::Command(Command::RetryNow, ..)) {
                    self.waking = None;
                    self.inputs.push_back(Input::RetryNow);
                }
                if self.handle_control(message)? == Some(EndRun::Kill) {
                    self.kill_all();
                }
                Ok(())
            }
        }
    }

    /// Deals with everything that is not about a task.
    pub(super) fn handle_control(
        &mut self,
        message: HostMessage,
    ) -> Result<Option<EndRun>, HostError> {
        let asked = self.d.asked_config(&message);
        let refusal = asked.and_then(|config| {
            let dir = self.d.working_dir();
            match self.config.workers {
                Some(_) => None,
                None => check_agents(&self.agents, &config, &self.d.settings, &dir).err(),
            }
        });
        Ok(self.d.handle_control(message, refusal)?.end)
    }

    /// How long work has been committed, merged or landed, each attempt from its beginning: hooks and
    /// gates may take long, and a branch that moves may keep work from landing for ever.
    fn busy_landing(&mut self) -> Option<Duration> {
        let now = self.d.mono();
        let since = match self.merging.is_empty() {
            true => None,
            false => Some(self.busy_since.unwrap_or(now)),
        };
        self.busy_since = since;
        let merging = since.map(|since| now.saturating_sub(since));
        let finishing = self
            .live
            .values()
            .filter_map(|live| live.control.finishing());
        finishing.chain(merging).max()
    }

    /// What is left of the time budget for that.
    fn time_to_land(&mut self) -> Option<Duration> {
        let busy = self.busy_landing()?;
        // Once it is told, only the end is waited for.
        let state = (!self.early.is_decided()).then_some(&self.d.state)?;
        budget::time_left_to_land(&state.config, &state.spent, busy)
    }

    fn mind_time_to_land(&mut self) {
        let Some(busy) = self.busy_landing() else {
            return;
        };
        let is_over = self.time_to_land().is_some_and(|left| left.is_zero());
        if is_over && self.is_time_up(busy).is_some() {
            self.stop_all();
            // A used-up budget lets merges finish; here it is they that take too long.
            self.inputs.push_back(Input::Cancel);
        }
    }

    /// Where nothing runs and a limit is waited for, the views are told.
    fn tell_wait(&mut self) -> Result<(), HostError> {
        let idle = self.live.is_empty() && self.merging.is_empty();
        match self.waking {
            Some(until) if idle => self.d.append_all(shown_wait(&self.d.state, until)),
            _ if !idle => self.d.input(&step::Input::WaitElapsed),
            _ => Ok(()),
        }
    }

    fn hear(&mut self, news: TaskEvent) -> Result<(), HostError> {
        if let Err(error) = self.fail_if_locked() {
            // Whoever waits for the end of all attempts has to hear of this one.
            self.news.push_front(news);
            return Err(error);
        }
        match news {
            TaskEvent::LockNotice | TaskEvent::Prepared(_) | TaskEvent::Closed(_) => Ok(()),
            TaskEvent::Delivered(slot, words) => self.looked_up(slot, words),
            TaskEvent::RoomChanged => {
                // The scheduler looks again what can be started.
                let now = Timestamp::now();
                self.inputs.push_back(Input::Wake { now });
                Ok(())
            }
            TaskEvent::Offering {
                work,
                offer,
                recorded,
            } => {
                self.d
                    .append(fact::task_offered(work.as_str().into(), offer))?;
                // Who does not wait for it any more has given up.
                let _ = recorded.send(());
                Ok(())
            }
            TaskEvent::Notice(message) => self.d.warn(message),
            TaskEvent::Engine { message, answers } => {
                self.d.append(fact::engine_heard(message, answers))
            }
            TaskEvent::Opened {
                work,
                slot,
                serial,
                loop_id,
                unheard,
                worker,
            } => {
                let task: TaskId = work.as_str().into();
                self.count_time();
                if let Some(live) = self.live.get_mut(&serial) {
                    live.opened = true;
                }
                self.count_unheard(&task, unheard)?;
                self.d.append(fact::task_loop(task, slot, loop_id, worker))
            }
            TaskEvent::Spent(serial, spent) => {
                self.spent_by(serial, spent);
                Ok(())
            }
            TaskEvent::FileWritten => {
                debug!("the task file was written");
                self.reload()
            }
            TaskEvent::Answered(answer) => {
                self.source.heard();
                self.answered(*answer)
            }
            TaskEvent::Attempt(news) => self.attempt_over(*news),
            TaskEvent::Merged(task, done) => {
                self.free_integration(Busy::Merge);
                self.append_proofs(done.proven)?;
                self.append_landing(done.landing)?;
                let end = done.end;
                info!(%task, end = %variant(&end), "task merged");
                self.inputs.push_back(Input::Merged { task, end });
                Ok(())
            }
            TaskEvent::Stacked(train, done) => {
                self.free_integration(Busy::Merge);
                info!(
                    train,
                    out = done.out.len(),
                    held = done.held.len(),
                    "work stacked"
                );
                let out = done.out.into_iter();
                self.inputs.push_back(Input::TrainStacked {
                    train,
                    out: out.map(|(task, end)| (task.as_str().into(), end)).collect(),
                    held: done.held.iter().map(|task| task.as_str().into()).collect(),
                });
                Ok(())
            }
            TaskEvent::TrainGated {
                train,
                members,
                done,
                gate_ms,
            } => {
                self.free_integration(Busy::Merge);
                self.append_proofs(done.proven)?;
                self.append_landing(done.landing)?;
                let end = done.end;
                info!(train, members, end = %variant(&end), gate_ms, "train gated");
                self.inputs.push_back(Input::TrainGated {
                    train,
                    members,
                    end,
                    gate_ms,
                });
                Ok(())
            }
            TaskEvent::MarkChecked(task, end) => {
                info!(%task, end = %variant(&end), "task marked by others checked");
                self.free_integration(Busy::Mark);
                self.inputs.push_back(Input::MarkChecked { task, end });
                Ok(())
            }
            TaskEvent::WaveCommitted(wave, done) => {
                self.free_integration(Busy::Wave);
                self.append_proofs(done.proven)?;
                self.append_landing(done.landing)?;
                let end = done.end;
                info!(wave, end = %variant(&end), "wave committed");
                self.inputs.push_back(Input::WaveCommitted { wave, end });
                Ok(())
            }
            TaskEvent::Landed(done) => {
                self.free_integration(Busy::Landing);
                self.append_proofs(done.proven)?;
                self.append_landing(done.landing)
            }
        }
    }

    /// Stops, pauses and other limits that a person asked for meanwhile.
    pub(super) fn apply_user_requests(&mut self) -> Result<(), HostError> {
        if self.d.state.requests.stop.is_some() {
            self.source.hurry(Hurry::Stop);
        }
        match self.d.state.requests.stop {
            None => {}
            Some(StopBy::Interrupt) => self.inputs.push_back(Input::Drain),
            Some(_) => {
                self.stop_for_person();
                self.inputs.push_back(Input::Cancel);
            }
        }
        let wants = self.d.state.requests.pause != Pause::No;
        match (wants, self.sched.is_paused()) {
            (true, false) => self.inputs.push_back(Input::Pause),
            (false, true) => self.inputs.push_back(Input::Unpause),
            _ => {}
        }
        if wants
            && self.live.is_empty()
            && self.questions.held.is_empty()
            && self.merging.is_empty()
        {
            self.d.input(&step::Input::Held)?;
        }
        let mut config = self.config.sched(self.d.state.config.max_iterations);
        if let Some(room) = self.executor.room() {
            config.slots = config.slots.min(room);
        }
        self.sched.reconfigure(config);
        // A budget may have been set below what was spent already.
        if !self.live.is_empty()
            && let Some(reached) = self.exhausted()
        {
            self.inputs.push_back(reached.into());
        }
        Ok(())
    }
}
