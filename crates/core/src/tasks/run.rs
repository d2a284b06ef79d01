//! Drives a task loop: turns what happened into inputs of the scheduler, and carries out what it
//! answers. It decides nothing itself.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use descartes_kernel::control::Command;
use descartes_kernel::event::{Event, StopBy, WaitEnd, WaitReason};
use descartes_kernel::graph::{Plan, TaskId, TaskIx, TaskStatus};
use descartes_kernel::outcome::{Budget, IterativeExitReason};
use descartes_kernel::sched::{
    self, Account, AttemptEnd, Effect, Ended, Gates, Input, Outcome, Scheduler, StopReason,
};
use descartes_kernel::state::Pause;
use descartes_kernel::step;
use descartes_kernel::tasks::{PlannedTask, TasksConfig};
use descartes_proc::Ending;
use jiff::Timestamp;

use super::attempt::{AttemptNews, Control};
use super::growth::{Answer, Growth};
use super::place::{Work, Workplace};
use super::prepare::Prepared;
use super::shell::Stopper;
use super::source::{Claim, Keeps, Loaded, TaskSource};
use super::watch::FileWatch;
use super::{News, launch};
use crate::host::driver::Driver;
use crate::host::message::Message;
use crate::host::{HostEnd, HostError};

/// Waits look at the wall clock again this often: suspend and clock jumps.
const CLOCK_CHECK: Duration = Duration::from_secs(15);

/// An attempt under way.
pub(super) struct Live {
    pub(super) tasks: Vec<TaskId>,
    pub(super) control: Control,
}

/// A task loop at work.
pub(super) struct Runner<'d> {
    pub(super) d: &'d mut Driver,
    pub(super) config: TasksConfig,
    pub(super) sched: Scheduler,
    pub(super) source: Box<dyn TaskSource>,
    pub(super) loaded: Loaded,
    pub(super) place: Arc<dyn Workplace>,
    pub(super) live: BTreeMap<u32, Live>,
    /// Tasks whose status in the file is ours to keep.
    pub(super) claimed: HashSet<TaskId>,
    refused: HashSet<TaskId>,
    pub(super) inputs: VecDeque<Input>,
    waking: Option<Timestamp>,
    /// The merge or commit under way.
    pub(super) merging: Option<Stopper>,
    /// Why a task's green work is in no commit.
    pub(super) no_commit: HashMap<TaskId, String>,
    pub(super) ended: Option<Box<Ended>>,
    pub(super) fatal: Option<IterativeExitReason>,
    /// Everything that was decided, for a scheduler that takes over.
    pub(super) history: Vec<sched::Event>,
    pub(super) growth: Growth,
    /// Questions whose branches are of no use any more.
    pub(super) grew: Vec<Work>,
    failures: u32,
    reload_trouble: Option<String>,
    /// Tells when the task file is written.
    watch: Option<FileWatch>,
}

impl Driver {
    /// Runs the tasks until nothing more can be done, or until told to stop.
    pub(crate) fn go_through_tasks(&mut self, prepared: Prepared) -> Result<HostEnd, HostError> {
        let mut runner = Runner::new(self, prepared)?;
        let end = runner.run();
        if end.is_err() {
            runner.stop_all();
            runner.wait_for_all();
        }
        end
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
            _lock,
        } = prepared;
        let gates = gates_of(d);
        let sched_config = config.sched(d.state.config.max_iterations, gates);
        let sched = Scheduler::recover(loaded.plan.clone(), sched_config, &history)
            .map_err(|error| HostError::refused(error.to_string(), "start anew with --force"))?;
        let claimed = d.state.tasks.iter().flat_map(|tasks| {
            let ours = tasks.tasks.iter();
            ours.filter(|(_, task)| task.status == TaskStatus::InProgress)
                .map(|(id, _)| id.clone())
        });
        let told = d.state.tasks.iter().flat_map(|tasks| tasks.told.keys());
        let told: Vec<TaskId> = told.cloned().collect();
        Ok(Self {
            claimed: claimed.collect(),
            d,
            config,
            sched,
            source,
            loaded,
            place,
            live: BTreeMap::new(),
            refused: HashSet::new(),
            inputs: VecDeque::new(),
            waking: None,
            merging: None,
            no_commit: HashMap::new(),
            ended: None,
            fatal: None,
            history,
            growth: Growth::of(&told),
            grew: Vec::new(),
            failures: 0,
            reload_trouble: None,
            watch: None,
        })
    }

    fn run(&mut self) -> Result<HostEnd, HostError> {
        self.place
            .begin()
            .map_err(|words| HostError::refused(words, "mend it in git"))?;
        self.announce()?;
        self.watch = FileWatch::begin(self.config.source.path(), self.d.tx.clone());
        let begun = self.d.state.tasks.as_ref().is_some_and(|t| t.begun());
        if begun {
            let inputs = self.differences();
            self.inputs.extend(inputs);
        }
        self.inputs.push_back(Input::Begin);
        self.heed_person()?;
        self.advance()?;
        loop {
            if self.wants_growth() {
                self.grow()?;
            } else if self.ended.is_some() && !self.growth.under_way {
                break;
            }
            self.d.save_or_warn()?;
            self.wait()?;
            self.heed_person()?;
            self.advance()?;
        }
        self.close()
    }

    /// Tells the views what there is to do.
    pub(super) fn announce(&mut self) -> Result<(), HostError> {
        let tasks = planned(&self.loaded.plan);
        let tag = self.config.source.tag();
        self.d.append(Event::TasksPlanned { tag, tasks })
    }

    fn advance(&mut self) -> Result<(), HostError> {
        while !self.inputs.is_empty() {
            let inputs: Vec<Input> = self.inputs.drain(..).collect();
            for effect in self.sched.advance_all(&inputs) {
                self.perform(effect)?;
            }
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> Result<(), HostError> {
        match effect {
            Effect::Append(event) => {
                self.history.push(event.clone());
                let event = Box::new(event);
                self.d.append(Event::Tasks { event })?;
            }
            Effect::Claim { task } => self.claim(task)?,
            Effect::StartAttempt { slot, tasks } => {
                let refused = &mut self.refused;
                let tasks: Vec<_> = tasks
                    .into_iter()
                    .filter(|attempt| !refused.remove(&attempt.task))
                    .collect();
                if !tasks.is_empty() {
                    launch::attempt(self, slot, &tasks)?;
                }
            }
            Effect::StopAttempts => self.stop_all(),
            Effect::Abandon { task } => {
                let live = self.live.values();
                live.filter(|live| live.tasks.contains(&task))
                    .for_each(|live| live.control.stop());
            }
            Effect::Merge { task } => launch::merge(self, &task)?,
            Effect::MarkDone { task } => {
                self.source.set(&task, TaskStatus::Done)?;
                if self.claimed.remove(&task) {
                    self.source.note(&task, "descartes: done and proven");
                }
            }
            Effect::MarkBlocked { task, reason } => {
                self.source.set(&task, TaskStatus::Blocked)?;
                if self.claimed.remove(&task) {
                    let words = format!("descartes: blocked: {}", reason.words());
                    self.source.note(&task, &words);
                }
            }
            Effect::Release { task } => {
                self.source.set(&task, TaskStatus::Pending)?;
                self.claimed.remove(&task);
            }
            Effect::CommitWave { wave, tasks } => launch::commit_wave(self, wave, tasks)?,
            Effect::Wait { until } => self.waking = Some(until),
            Effect::Finish(ended) => self.ended = Some(ended),
        }
        Ok(())
    }

    fn claim(&mut self, task: TaskId) -> Result<(), HostError> {
        if self.claimed.contains(&task) {
            // Ours already: another tool put it back, and it is set right.
            return Ok(self.source.set(&task, TaskStatus::InProgress)?);
        }
        match self.source.claim(&task)? {
            Claim::Taken => {
                self.claimed.insert(task);
            }
            Claim::Found(found) => {
                self.refused.insert(task.clone());
                self.inputs.push_back(Input::ClaimRefused { task, found });
            }
        }
        Ok(())
    }

    /// The next thing that happened, as inputs.
    fn wait(&mut self) -> Result<(), HostError> {
        self.tell_wait()?;
        if let Some(news) = self.d.news.pop_front() {
            return self.hear(news);
        }
        let deadline = self.waking.map(|until| {
            let left = until.duration_since(Timestamp::now());
            let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
            self.d.mono() + left.min(CLOCK_CHECK)
        });
        match self.d.next(deadline)? {
            None => {
                let now = Timestamp::now();
                if self.waking.is_some_and(|until| until <= now) {
                    self.waking = None;
                    self.end_wait(WaitEnd::Elapsed)?;
                    self.inputs.push_back(Input::Wake { now });
                }
                Ok(())
            }
            Some(Message::Task(news)) => self.hear(*news),
            Some(message) => {
                if matches!(message, Message::Command(Command::RetryNow, _)) {
                    self.waking = None;
                    self.inputs.push_back(Input::RetryNow);
                }
                if self.d.attend(message)? == Some(Ending::Kill) {
                    self.kill_all();
                }
                Ok(())
            }
        }
    }

    /// Where nothing runs and a limit is waited for, the views are told.
    fn tell_wait(&mut self) -> Result<(), HostError> {
        let idle = self.live.is_empty() && self.merging.is_none();
        match self.waking {
            Some(until) if idle && self.d.state.wait.is_none() => {
                let words = "the agent's provider told a limit".to_owned();
                self.d.append(Event::WaitStarted {
                    until,
                    reason: WaitReason::Limit(descartes_kernel::event::LimitTold {
                        kind: descartes_kernel::event::LimitKind::Usage,
                        until: Some(until),
                        words,
                    }),
                })
            }
            _ if !idle => self.end_wait(WaitEnd::Elapsed),
            _ => Ok(()),
        }
    }

    fn end_wait(&mut self, by: WaitEnd) -> Result<(), HostError> {
        match self.d.state.wait {
            Some(_) => self.d.append(Event::WaitEnded { by }),
            None => Ok(()),
        }
    }

    fn hear(&mut self, news: News) -> Result<(), HostError> {
        match news {
            News::Opened {
                work,
                slot,
                loop_id,
            } => self.d.append(Event::TaskLoop {
                task: work.as_str().into(),
                slot,
                loop_id,
            }),
            News::FileWritten => self.reload(),
            News::Attempt(news) => self.attempt_over(*news),
            News::Merged(task, done) => {
                self.merging = None;
                if let Some(landing) = done.landing {
                    self.d.append(Event::WorkLanded { landing })?;
                }
                let end = done.end;
                self.inputs.push_back(Input::Merged { task, end });
                Ok(())
            }
            News::WaveCommitted(wave, done) => {
                self.merging = None;
                if let Some(landing) = done.landing {
                    self.d.append(Event::WorkLanded { landing })?;
                }
                let end = done.end;
                self.inputs.push_back(Input::WaveCommitted { wave, end });
                Ok(())
            }
        }
    }

    fn attempt_over(&mut self, news: AttemptNews) -> Result<(), HostError> {
        // An agent may have set its own status: that is put right before it is judged.
        self.reload()?;
        self.advance()?;
        self.live.remove(&news.slot);
        let answer = self.growth.under_way.then(|| Answer::of(&news));
        for warning in news.warnings {
            self.d.warn(warning)?;
        }
        if let Some(run) = news.run {
            let task = launch::work_id(self, &news.tasks);
            self.d.append(Event::TaskRun {
                task: task.as_str().into(),
                loop_id: run.loop_id,
                iterations: run.iterations,
                summary: Box::new(run.summary),
                spent: run.spent,
            })?;
        }
        if let Some(answer) = answer {
            self.grown(&answer)?;
            return self.d.keep_locks();
        }
        let mut end = news.end;
        if let Some(reason) = news.fatal {
            self.fatal.get_or_insert(reason);
            end = AttemptEnd::Interrupted;
        }
        if let (Some(words), AttemptEnd::Green { .. }) = (news.no_commit, &end) {
            for task in &news.tasks {
                self.no_commit.insert(task.clone(), words.clone());
            }
        }
        self.count_failures(&end);
        for task in news.tasks {
            let end = end.clone();
            self.inputs.push_back(Input::Finished { task, end });
        }
        if self.fatal.is_some() {
            self.inputs.push_back(Input::Cancel);
        } else if let Some((budget, limit, used)) = self.exhausted() {
            self.fatal = Some(IterativeExitReason::BudgetExhausted {
                budget,
                limit,
                used,
            });
            self.inputs.push_back(Input::BudgetReached {
                budget,
                limit,
                used,
            });
        }
        self.d.keep_locks()
    }

    /// An agent that fails again and again fails for every task.
    fn count_failures(&mut self, end: &AttemptEnd) {
        match end {
            AttemptEnd::Failed { message } => {
                self.failures += 1;
                if self.failures >= self.d.state.config.max_failures.max(2) && self.hopeless() {
                    self.fatal.get_or_insert(IterativeExitReason::AgentFailed {
                        failures: self.failures,
                        last: message.clone(),
                    });
                }
            }
            AttemptEnd::Limited { .. } | AttemptEnd::Interrupted => {}
            _ => self.failures = 0,
        }
    }

    /// Nothing was ever done in this loop.
    fn hopeless(&self) -> bool {
        let done = self.d.state.tasks.as_ref().map_or(0, |t| t.count().0);
        done == 0
    }

    fn exhausted(&self) -> Option<(Budget, f64, f64)> {
        let (config, spent) = (&self.d.state.config, &self.d.state.spent);
        let time = config.max_duration_secs.map(|limit| {
            (
                Budget::Duration,
                limit.0.as_secs_f64(),
                spent.ms as f64 / 1e3,
            )
        });
        let cost = config.max_cost_usd.zip(spent.cost_micros);
        let cost = cost.map(|(limit, used)| (Budget::Cost, limit, used as f64 / 1e6));
        let tokens = config.max_tokens.zip(spent.tokens);
        let tokens = tokens.map(|(limit, used)| (Budget::Tokens, limit as f64, used as f64));
        let all = [time, cost, tokens].into_iter().flatten();
        all.into_iter().find(|(_, limit, used)| used >= limit)
    }

    /// Stops, pauses and other limits that a person asked for meanwhile.
    fn heed_person(&mut self) -> Result<(), HostError> {
        match self.d.state.stop {
            None => {}
            Some(StopBy::Interrupt) => self.inputs.push_back(Input::Drain),
            Some(_) => {
                if self.growth.under_way {
                    self.stop_all();
                }
                if let Some(merge) = &self.merging {
                    merge.stop();
                }
                self.inputs.push_back(Input::Cancel);
            }
        }
        let wants = self.d.state.pause != Pause::No;
        match (wants, self.sched.is_paused()) {
            (true, false) => self.inputs.push_back(Input::Pause),
            (false, true) => self.inputs.push_back(Input::Unpause),
            _ => {}
        }
        if wants && self.live.is_empty() && self.merging.is_none() {
            self.d.input(&step::Input::Held)?;
        }
        let gates = gates_of(self.d);
        let config = self.config.sched(self.d.state.config.max_iterations, gates);
        self.sched.reconfigure(config);
        Ok(())
    }

    /// Reads the file again: what others changed becomes inputs, a new shape a new plan.
    fn reload(&mut self) -> Result<(), HostError> {
        if let Some(watch) = &self.watch {
            watch.heard();
        }
        let loaded = match self.source.news() {
            Ok(Some(loaded)) => loaded,
            Ok(None) => {
                self.reload_trouble = None;
                return Ok(());
            }
            Err(error) => {
                let words = format!("the tasks cannot be read now: {error}");
                if self.reload_trouble.as_ref() != Some(&words) {
                    self.d.warn(words.clone())?;
                    self.reload_trouble = Some(words);
                }
                return Ok(());
            }
        };
        self.reload_trouble = None;
        let same = same_shape(&self.loaded.plan, &loaded.plan);
        self.loaded = loaded;
        if !same {
            self.announce()?;
            for effect in self.sched.replan(self.loaded.plan.clone()) {
                self.perform(effect)?;
            }
        }
        let inputs = self.differences();
        self.inputs.extend(inputs);
        Ok(())
    }

    /// What the file says otherwise than we do.
    fn differences(&self) -> Vec<Input> {
        let statuses = self.loaded.plan.effective_statuses();
        let mut inputs = self.sched.differences(&statuses);
        if self.source.keeps() == Keeps::Done {
            // An open box says nothing about a task that is at work or blocked.
            inputs.retain(|input| {
                !matches!(
                    input,
                    Input::StatusSeen {
                        status: TaskStatus::Pending,
                        ..
                    }
                )
            });
        }
        inputs
    }

    /// Somebody does not want to wait for anybody's grace.
    fn kill_all(&mut self) {
        self.live.values().for_each(|live| live.control.kill());
        self.place.stop();
        if let Some(merge) = &self.merging {
            merge.kill();
        }
    }

    fn stop_all(&mut self) {
        self.place.stop();
        self.live.values().for_each(|live| live.control.stop());
        if let Some(merge) = &self.merging {
            merge.stop();
        }
    }

    /// After an error of our own: every agent is ended before this thread is.
    fn wait_for_all(&mut self) {
        while !self.live.is_empty() || self.merging.is_some() {
            let news = match self.d.news.pop_front() {
                Some(news) => news,
                None => match self.d.rx.recv() {
                    Ok(Message::Task(news)) => *news,
                    Ok(_) => continue,
                    Err(_) => return,
                },
            };
            match news {
                News::Opened { .. } | News::FileWritten => {}
                News::Attempt(news) => drop(self.live.remove(&news.slot)),
                News::Merged(..) | News::WaveCommitted(..) => self.merging = None,
            }
        }
    }

    fn close(&mut self) -> Result<HostEnd, HostError> {
        let Some(ended) = self.ended.take() else {
            return Err(HostError::Internal("the tasks never ended".to_owned()));
        };
        let stop = self.d.state.stop;
        let cancelled = matches!(
            &ended.outcome,
            Outcome::Stopped {
                why: StopReason::Cancelled
            }
        );
        if let (Some(by), true, None) = (stop, cancelled, &self.fatal)
            && !by.ends_loop()
        {
            self.d.append(Event::Interrupted { by })?;
            self.d.save_state()?;
            return Ok(self.d.end());
        }
        self.say_held(&ended.account)?;
        let mut done = launch::done_work(self, &ended.account);
        done.append(&mut self.grew);
        self.place.close(&done);
        let reason = match self.fatal.take() {
            Some(reason) => reason,
            None => self.reason(&ended),
        };
        self.d.finish(reason)?;
        Ok(self.d.end())
    }

    fn reason(&self, ended: &Ended) -> IterativeExitReason {
        use IterativeExitReason as R;
        let open = || {
            let account = &ended.account;
            let blocked = account.blocked.iter().map(|blocked| &blocked.task);
            let held = account.held.iter().map(|held| &held.task);
            let all = blocked.chain(held).chain(&account.open);
            all.map(ToString::to_string).collect()
        };
        match &ended.outcome {
            Outcome::Complete => match gates_of(self.d) {
                Gates::Some => R::GatesPassed,
                Gates::None => R::CompletionPromiseDetected,
            },
            Outcome::TasksBlocked => R::TasksBlocked { tasks: open() },
            Outcome::MaxIterations { .. } => R::MaxIterationsReached,
            Outcome::Stopped { why } => match why {
                StopReason::Cancelled => R::UserCancelled,
                StopReason::TaskFailed { .. } => R::TasksBlocked { tasks: open() },
                StopReason::CommitFailed { wave, message } => R::Error {
                    message: format!("wave {wave} could not be committed: {message}"),
                },
                StopReason::Budget {
                    budget,
                    limit,
                    used,
                } => R::BudgetExhausted {
                    budget: *budget,
                    limit: *limit,
                    used: *used,
                },
            },
        }
    }

    /// Which task blocks which.
    fn say_held(&mut self, account: &Account) -> Result<(), HostError> {
        for held in &account.held {
            let message = match held.status {
                Some(status) => format!("task {} was not started: it is {status}", held.task),
                None => {
                    let by: Vec<&str> = held.by.iter().map(|id| &**id).collect();
                    format!(
                        "task {} was not started: it waits for {}",
                        held.task,
                        by.join(", ")
                    )
                }
            };
            self.d.warn(message)?;
        }
        Ok(())
    }
}

pub(super) fn gates_of(d: &Driver) -> Gates {
    match d.state.config.verify.is_empty() {
        true => Gates::None,
        false => Gates::Some,
    }
}

fn planned(plan: &Plan) -> Vec<PlannedTask> {
    let waves = plan.waves().iter().enumerate();
    waves
        .flat_map(|(wave, tasks)| {
            tasks.iter().map(move |task| {
                let node = plan.graph().node(*task);
                PlannedTask {
                    id: node.id.clone(),
                    title: node.title.clone(),
                    wave: wave as u32 + 1,
                    complexity: node.weight,
                    after: work_before(plan, *task),
                }
            })
        })
        .collect()
}

/// What a task waits for; a group stands for the tasks in it.
fn work_before(plan: &Plan, task: TaskIx) -> Vec<TaskId> {
    let graph = plan.graph();
    let mut open = graph.all_dependencies(task);
    let mut ids = Vec::new();
    while let Some(before) = open.pop() {
        if graph.is_work(before) {
            ids.push(graph.node(before).id.clone());
        }
        open.extend(graph.subtasks(before));
    }
    ids.sort();
    ids.dedup();
    ids
}

/// Whether two plans hold the same tasks with the same ties; statuses aside.
fn same_shape(old: &Plan, new: &Plan) -> bool {
    let (old, new) = (old.graph().nodes(), new.graph().nodes());
    let ids = |node: &descartes_kernel::graph::TaskNode| -> Vec<TaskId> {
        node.dependencies.iter().map(|dep| dep.id.clone()).collect()
    };
    old.len() == new.len()
        && old.iter().zip(new).all(|(a, b)| {
            a.id == b.id && a.parent == b.parent && a.rules == b.rules && ids(a) == ids(b)
        })
}
