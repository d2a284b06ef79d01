//! What an input means: the events that follow from it, with nothing changed yet.

use super::record::TaskState;
use super::state::Scheduler;
use super::train::{Gated, Step, Train};
use super::{
    AttemptEnd, BlockReason, CommitEnd, Event, Evidence, EvidenceKind, Gates, Input, MarkEnd,
    MergeEnd, Next, Seen, StopKind, StopReason, TrainEnd,
};
use descartes_plans::graph::{OnFail, Proof, TaskId, TaskIx, TaskStatus};

impl Scheduler {
    /// The events that follow from an input. An input that does not fit, such as the end of an
    /// attempt that is not running, has none.
    pub(super) fn judge(&self, input: &Input) -> Vec<Event> {
        if self.live && self.ended.is_some() {
            return Vec::new();
        }
        match input {
            Input::Begin => self.begin(),
            Input::Finished { task, end } => self.finished(task, end),
            Input::Merged { task, end } => self.merged(task, end),
            Input::TrainStacked { train, out, held } => self.stacked(*train, out, held),
            Input::TrainGated {
                train,
                members,
                end,
                gate_ms,
            } => self.gated(*train, *members, end, *gate_ms),
            Input::WaveCommitted { wave, end } => self.committed(*wave, end),
            Input::ClaimRefused { task, found } => match self.state(task) {
                Some(TaskState::Running { .. }) => {
                    vec![Event::ClaimRefused {
                        task: task.clone(),
                        found: *found,
                    }]
                }
                _ => Vec::new(),
            },
            Input::StatusSeen { task, status } => self.seen(task, *status).into_iter().collect(),
            Input::MarkChecked { task, end } => self.mark_answered(task, end),
            Input::Removed { tasks } => self.removed(tasks),
            Input::RetryBlocked => self.to_retry(),
            Input::FileAway | Input::FileBack => Vec::new(),
            Input::Wake { now } => self.limits_over(|until| until <= *now),
            Input::RetryNow => self.limits_over(|_| true),
            Input::Pause if !self.paused => vec![Event::Paused],
            Input::Unpause if self.paused => vec![Event::Unpaused],
            Input::Pause | Input::Unpause => Vec::new(),
            Input::Drain => self.stop(StopKind::Drain, StopReason::Cancelled),
            Input::Cancel => self.stop(StopKind::Kill, StopReason::Cancelled),
            Input::BudgetReached {
                budget,
                limit,
                used,
            } => {
                let (budget, limit, used) = (*budget, *limit, *used);
                // What is at work is ended by its effect, and judged; nothing new starts.
                self.stop(
                    StopKind::Drain,
                    StopReason::Budget {
                        budget,
                        limit,
                        used,
                    },
                )
            }
        }
    }

    /// The first begin takes the file's statuses; a later one closes what a dead host left open. Attempts that
    /// go on without their host stay open, unless a person does not want them any more.
    fn begin(&self) -> Vec<Event> {
        if !self.begun {
            let statuses = self.plan.effective_statuses();
            let told = statuses
                .iter()
                .enumerate()
                .filter(|(_, status)| **status != TaskStatus::Pending);
            let statuses = told
                .map(|(task, status)| (self.id(task as TaskIx), *status))
                .collect();
            return vec![Event::Began { statuses }];
        }
        if self.live {
            return Vec::new();
        }
        let cut_short = |task: TaskIx| Event::AttemptEnded {
            task: self.id(task),
            end: AttemptEnd::Interrupted,
            next: self.unless_wished(task, Next::Again),
        };
        let tasks = self.by_rank.iter().copied();
        let running = tasks.filter(|task| {
            let record = self.record(*task);
            let goes_on = self.config.outlive_host && record.wish.is_none();
            matches!(record.state, TaskState::Running { .. }) && !goes_on
        });
        std::iter::once(Event::Resumed)
            .chain(running.map(cut_short))
            .chain(self.rest_of_train())
            .collect()
    }

    /// What a dead host did not write down any more of a train: one answer of the gates is several
    /// records, and it may have died between any two of them.
    fn rest_of_train(&self) -> Vec<Event> {
        let Some(train) = &self.train else {
            return Vec::new();
        };
        let waits = |task: &TaskIx| self.record(*task).state == TaskState::Landing;
        let merged = train.merged().iter().copied().filter(waits);
        let mut events: Vec<Event> = merged
            .flat_map(|task| self.merge_over(task, &MergeEnd::Merged))
            .collect();
        // Left out of the stack, and the reason is not on record: it is found again.
        let is_left_out = |task: &TaskIx| {
            let is_known = self.queue.contains(task) || train.members.contains(task);
            waits(task) && self.merging != Some(*task) && !is_known
        };
        let left_out: Vec<TaskIx> = self.by_rank.iter().copied().filter(is_left_out).collect();
        if !left_out.is_empty() || matches!(train.step(), Step::Over | Step::Culprit(_)) {
            let unproven = train.members[train.merged().len()..].iter().copied();
            let back = unproven.filter(waits).chain(left_out);
            events.push(Event::TrainEnded {
                train: train.number,
                back: back.map(|task| self.id(task)).collect(),
            });
        }
        events
    }

    fn finished(&self, id: &TaskId, end: &AttemptEnd) -> Vec<Event> {
        let Some(task) = self.plan.graph().find(id) else {
            return Vec::new();
        };
        if !matches!(self.record(task).state, TaskState::Running { .. }) {
            return Vec::new();
        }
        let next = match end {
            AttemptEnd::Green { changed, claimed } => {
                let work = Work {
                    changed: *changed,
                    claimed: *claimed,
                };
                match self.lacking(task, work) {
                    None => Next::Land,
                    Some(kind) => self.failed(task, evidence(kind, "")),
                }
            }
            AttemptEnd::Red { tail } => self.failed(task, evidence(EvidenceKind::RedGate, tail)),
            AttemptEnd::Failed { message } => {
                self.failed(task, evidence(EvidenceKind::AgentFailed, message))
            }
            AttemptEnd::NothingDone => self.failed(task, evidence(EvidenceKind::NothingDone, "")),
            AttemptEnd::NoPromise => self.failed(task, evidence(EvidenceKind::NoPromise, "")),
            AttemptEnd::OutOfScope { tail } => {
                self.failed(task, evidence(EvidenceKind::OutOfScope, tail))
            }
            AttemptEnd::Uncarried { tail } => {
                self.failed(task, evidence(EvidenceKind::Uncarried, tail))
            }
            AttemptEnd::AtLimit { message } => {
                let message = message.clone();
                self.given_up(task, BlockReason::Limit { message })
            }
            AttemptEnd::Cancelled => {
                let message = "it was cancelled".to_owned();
                self.given_up(task, BlockReason::Limit { message })
            }
            AttemptEnd::NotTakenIn { message } => {
                let message = message.clone();
                self.given_up(task, BlockReason::Commit { message })
            }
            AttemptEnd::BlockedByAgent { message } => self.given_up(
                task,
                BlockReason::Agent {
                    message: message.clone(),
                },
            ),
            AttemptEnd::Limited { .. } | AttemptEnd::Interrupted => Next::Again,
        };
        let next = self.unless_wished(task, next);
        let stop = self.stop_after(task, &next);
        let ended = Event::AttemptEnded {
            task: id.clone(),
            end: end.clone(),
            next,
        };
        std::iter::once(ended).chain(stop).collect()
    }

    fn merged(&self, id: &TaskId, end: &MergeEnd) -> Vec<Event> {
        let Some(task) = self
            .plan
            .graph()
            .find(id)
            .filter(|task| self.merging == Some(*task))
        else {
            return Vec::new();
        };
        let flaky = *end == MergeEnd::Merged && self.record(task).failed_merge;
        let flaky = flaky.then(|| Event::FlakyGate { task: id.clone() });
        flaky
            .into_iter()
            .chain(self.merge_over(task, end))
            .collect()
    }

    /// What a merge means for its task.
    fn merge_over(&self, task: TaskIx, end: &MergeEnd) -> Vec<Event> {
        let next = match end {
            // What is merged is merged, whatever a person wished meanwhile.
            MergeEnd::Merged => Next::Done,
            // Gates may be flaky: alone on merged work it is asked once more.
            MergeEnd::Red { .. } if self.is_asked_again(task) => {
                self.unless_wished(task, Next::Land)
            }
            MergeEnd::Conflict { tail } => self.unless_wished(
                task,
                self.failed(task, evidence(EvidenceKind::Conflict, tail)),
            ),
            MergeEnd::Red { tail } => self.unless_wished(
                task,
                self.failed(task, evidence(EvidenceKind::RedMerge, tail)),
            ),
            MergeEnd::Interrupted => self.unless_wished(task, Next::Land),
            MergeEnd::Failed { message } => self.given_up(
                task,
                BlockReason::Commit {
                    message: message.clone(),
                },
            ),
        };
        let stop = self.stop_after(task, &next);
        let ended = Event::MergeEnded {
            task: self.id(task),
            end: end.clone(),
            next,
        };
        std::iter::once(ended).chain(stop).collect()
    }

    /// Whether a failed gate on the merged work of this task alone is run again before it counts.
    fn is_asked_again(&self, task: TaskIx) -> bool {
        let batched = self.config.merge_batch > 1 && !self.config.shared_tree;
        batched && self.merging == Some(task) && !self.record(task).failed_merge
    }

    fn stacked(&self, number: u32, out: &[(TaskId, MergeEnd)], held: &[TaskId]) -> Vec<Event> {
        let Some(train) = self.train_of(number).filter(|t| t.step() == Step::Stack) else {
            return Vec::new();
        };
        let is_out = |id: &TaskId| held.contains(id) || out.iter().any(|(task, _)| task == id);
        let tasks = train.members.iter().map(|task| self.id(*task));
        let tasks: Vec<TaskId> = tasks.filter(|id| !is_out(id)).collect();
        let is_empty = tasks.is_empty();
        let mut events = vec![Event::TrainStacked {
            train: number,
            tasks,
            held: held.to_vec(),
        }];
        let member = |id: &TaskId| {
            let task = self.plan.graph().find(id)?;
            train.members.contains(&task).then_some(task)
        };
        for (id, end) in out {
            events.extend(
                member(id)
                    .into_iter()
                    .flat_map(|task| self.merge_over(task, end)),
            );
        }
        events.extend(is_empty.then(|| Event::TrainEnded {
            train: number,
            back: Vec::new(),
        }));
        events
    }

    fn gated(&self, number: u32, members: u32, end: &TrainEnd, gate_ms: u64) -> Vec<Event> {
        let step = Step::Gate(members as usize);
        let Some(train) = self.train_of(number).filter(|t| t.step() == step) else {
            return Vec::new();
        };
        let mut after = train.clone();
        let gated = self.gated_as(train, end);
        let mut events = vec![Event::TrainGated {
            train: number,
            members,
            end: end.clone(),
            gate_ms,
        }];
        if let Some(gated) = gated {
            let last = after.members[members as usize - 1];
            let is_flaky = after.is_flaky(members as usize, gated);
            events.extend(is_flaky.then(|| Event::FlakyGate {
                task: self.id(last),
            }));
            after.gated(members as usize, gated);
        }
        for task in after.merged().iter().skip(train.merged().len()) {
            events.extend(self.merge_over(*task, &MergeEnd::Merged));
        }
        let step = after.step();
        if let (Step::Culprit(at), TrainEnd::Red { tail, .. }) = (step, end) {
            let end = MergeEnd::Red { tail: tail.clone() };
            events.extend(self.merge_over(after.members[at], &end));
        }
        if gated.is_none() || matches!(step, Step::Culprit(_) | Step::Over) {
            events.push(Event::TrainEnded {
                train: number,
                back: after.left().map(|task| self.id(task)).collect(),
            });
        }
        events
    }

    fn train_of(&self, number: u32) -> Option<&Train> {
        self.train.as_ref().filter(|train| train.number == number)
    }

    /// What the gates said, where they said anything.
    pub(super) fn gated_as(&self, train: &Train, end: &TrainEnd) -> Option<Gated> {
        match end {
            TrainEnd::Green => Some(Gated::Green),
            TrainEnd::Red { check_of, .. } => {
                let task = check_of.as_ref().and_then(|id| self.plan.graph().find(id));
                let suspect = train
                    .members
                    .iter()
                    .position(|member| Some(*member) == task);
                Some(Gated::Red { suspect })
            }
            TrainEnd::Interrupted | TrainEnd::Failed { .. } => None,
        }
    }

    /// A mark that the gates contradict is taken back, once.
    fn mark_answered(&self, id: &TaskId, end: &MarkEnd) -> Vec<Event> {
        let checking = self
            .plan
            .graph()
            .find(id)
            .filter(|task| self.checking == Some(*task));
        let Some(task) = checking else {
            return Vec::new();
        };
        let record = self.record(task);
        let red = matches!(end, MarkEnd::Red { .. });
        let is_marked = matches!(record.state, TaskState::MarkedDone { .. });
        vec![Event::MarkChecked {
            task: id.clone(),
            end: end.clone(),
            set_back: red && is_marked && !record.set_back,
        }]
    }

    fn removed(&self, tasks: &[TaskId]) -> Vec<Event> {
        let is_gone = |id: &&TaskId| self.plan.graph().find(id).is_none();
        let removed: Vec<TaskId> = tasks.iter().filter(is_gone).cloned().collect();
        match removed.iter().all(|id| self.removed.contains(id)) || !self.is_under_way() {
            true => Vec::new(),
            false => vec![Event::Replanned {
                statuses: Vec::new(),
                removed,
            }],
        }
    }

    fn to_retry(&self) -> Vec<Event> {
        let blocked = self.by_rank.iter().copied();
        let blocked = blocked.filter(|task| self.record(*task).state.is_retried());
        let tasks: Vec<TaskId> = blocked.map(|task| self.id(task)).collect();
        match tasks.is_empty() {
            true => Vec::new(),
            false => vec![Event::Retried { tasks }],
        }
    }

    /// Whether the loop has begun and not ended: also where its host died, and nobody can tell
    /// who wrote what since. What people write before it begins, and after it has ended, is theirs.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun && (self.live || self.ended.is_none())
    }

    fn committed(&self, wave: u32, end: &CommitEnd) -> Vec<Event> {
        if self.committing.as_ref().map(|(wave, _)| wave + 1) != Some(wave) {
            return Vec::new();
        }
        let mut events = vec![Event::WaveCommitEnded {
            wave,
            end: end.clone(),
        }];
        if let CommitEnd::Failed { message } = end {
            let why = StopReason::CommitFailed {
                wave,
                message: message.clone(),
            };
            events.extend(self.stop(StopKind::Drain, why));
        }
        events
    }

    /// What a green attempt lacks to be done.
    fn lacking(&self, task: TaskIx, work: Work) -> Option<EvidenceKind> {
        let enough = match (self.plan.graph().node(task).rules.proof, self.config.gates) {
            (Proof::Exit, _) => true,
            (Proof::Promise, _) | (Proof::Work, Gates::None) => work.claimed,
            (Proof::Work, Gates::Some) => work.changed || work.claimed,
        };
        match (enough, work.changed) {
            (true, _) => None,
            (false, true) => Some(EvidenceKind::NoPromise),
            (false, false) => Some(EvidenceKind::NothingDone),
        }
    }

    /// One more failed attempt.
    fn failed(&self, task: TaskIx, evidence: Evidence) -> Next {
        let rules = self.plan.graph().node(task).rules;
        let limit = rules
            .max_attempts
            .unwrap_or(self.config.max_attempts)
            .max(1);
        let made = self.record(task).failed + 1;
        if made < limit {
            return Next::Retry { evidence };
        }
        let last = evidence;
        self.given_up(task, BlockReason::Attempts { last, made, limit })
    }

    fn given_up(&self, task: TaskIx, reason: BlockReason) -> Next {
        match self.plan.graph().node(task).rules.on_fail {
            OnFail::Skip => Next::Pass { reason },
            OnFail::Block | OnFail::Stop => Next::Block { reason },
        }
    }

    /// A person who took the task out meanwhile is heard before anything else.
    fn unless_wished(&self, task: TaskIx, next: Next) -> Next {
        self.record(task)
            .wish
            .map_or(next, |status| Next::Yield { status })
    }

    fn stop_after(&self, task: TaskIx, next: &Next) -> Vec<Event> {
        let stops = self.plan.graph().node(task).rules.on_fail == OnFail::Stop;
        match next {
            Next::Block { .. } if stops => self.stop(
                StopKind::Drain,
                StopReason::TaskFailed {
                    task: self.id(task),
                },
            ),
            _ => Vec::new(),
        }
    }

    /// A stop may become harder, never softer; the first reason stays.
    fn stop(&self, how: StopKind, why: StopReason) -> Vec<Event> {
        match &self.stop {
            Some(stop) if stop.how >= how => Vec::new(),
            Some(stop) => vec![Event::Stopping {
                how,
                why: stop.why.clone(),
            }],
            None => vec![Event::Stopping { how, why }],
        }
    }

    fn limits_over(&self, over: impl Fn(jiff::Timestamp) -> bool) -> Vec<Event> {
        let lanes = self
            .lanes
            .iter()
            .filter(|lane| lane.held_until.is_some_and(&over));
        lanes
            .map(|lane| Event::LimitOver {
                agent: lane.agent.clone(),
            })
            .collect()
    }

    fn has_run(&self, task: TaskIx) -> bool {
        self.record(task).last_slot.is_some()
    }

    /// What a status in the file means for a task.
    ///
    /// Before the loop has begun, and after it has ended, every difference is a person's wish. While
    /// it is under way, a value that this loop itself wrote earlier may be the stale write of
    /// another tool, which reads the file, and writes all of it back: then it is no wish, and the
    /// right one is written again. A task that is marked done or taken out then is not run, and its
    /// mark proves nothing: an agent may have made it.
    fn seen(&self, id: &TaskId, status: TaskStatus) -> Option<Event> {
        use TaskStatus::{Blocked, Cancelled, Deferred, Done, Expanded, InProgress, Pending};
        let task = self.plan.graph().find(id)?;
        let seen = |seen| Event::StatusSeen {
            task: id.clone(),
            status,
            seen,
        };
        let take = || match status {
            Cancelled | Deferred | Done if self.is_under_way() => seen(Seen::Mark),
            _ => seen(Seen::Take),
        };
        let state = &self.record(task).state;
        if !self.plan.graph().is_work(task) {
            return (*state != TaskState::of(status)).then(|| seen(Seen::Take));
        }
        match state {
            TaskState::Running { .. } | TaskState::Landing => {
                let wish = Some(status).filter(|status| status.is_held() || status.is_left_out());
                let is_new = self.record(task).wish != wish;
                is_new.then(|| seen(Seen::Note))
            }
            TaskState::Pending => match status {
                InProgress if self.live && !self.record(task).claimed => {
                    Some(seen(Seen::Elsewhere))
                }
                Pending | InProgress | Expanded => None,
                _ => Some(take()),
            },
            TaskState::Done if status == InProgress => None,
            // One that was done before the loop began has never been open to it: a person opened it.
            TaskState::Done if status == Pending && self.live && self.has_run(task) => None,
            TaskState::Blocked { .. } if matches!(status, Blocked | InProgress) => None,
            TaskState::Passed { .. } if matches!(status, Pending | InProgress) => None,
            TaskState::Held { status: known }
            | TaskState::LeftOut { status: known }
            | TaskState::MarkedOut { status: known } => (*known != status).then(take),
            TaskState::MarkedDone { .. } => (status != Done).then(take),
            state => (*state != TaskState::of(status)).then(take),
        }
    }
}

/// What a green attempt came with.
struct Work {
    changed: bool,
    claimed: bool,
}

fn evidence(kind: EvidenceKind, text: &str) -> Evidence {
    Evidence {
        kind,
        text: text.to_owned(),
    }
}
