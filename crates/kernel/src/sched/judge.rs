//! What an input means: the events that follow from it, with nothing changed yet.

use super::record::TaskState;
use super::state::Scheduler;
use super::train::{Gated, Step, Train};
use super::{
    AttemptEnd, BlockReason, CommitEnd, Event, Evidence, EvidenceKind, Input, MarkEnd, MergeEnd,
    Next, Seen, StopKind, StopReason, TrainEnd,
};
use descartes_plans::graph::{OnFail, TaskId, TaskIx, TaskStatus};

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
            Input::ClaimRefused { task, found } => match self.runs(task) {
                true => vec![Event::ClaimRefused {
                    task: task.clone(),
                    found: *found,
                }],
                false => Vec::new(),
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
        let cut_short = |task: TaskId, next: Next| Event::AttemptEnded {
            task,
            end: AttemptEnd::Interrupted,
            next,
        };
        let tasks = self.by_rank.iter().copied();
        let running = tasks.filter(|task| {
            let record = self.record(*task);
            let is_wanted = record.wish.is_none() && !self.abandoned.contains(&self.id(*task));
            let goes_on = self.config.outlive_host && is_wanted;
            matches!(record.state, TaskState::Running { .. }) && !goes_on
        });
        let running =
            running.map(|task| cut_short(self.id(task), self.unless_wished(task, Next::Again)));
        let strays = self.strays.keys();
        let strays = strays.map(|task| cut_short(task.clone(), Next::Again));
        std::iter::once(Event::Resumed)
            .chain(running)
            .chain(strays)
            .chain(self.rest_of_merge())
            .chain(self.rest_of_train())
            .collect()
    }

    /// What was begun on the merged tree for a task that is no longer in the file is not done again.
    fn rest_of_merge(&self) -> Vec<Event> {
        let merging = self.merging.iter();
        let unwanted = merging.filter(|id| self.work(id).is_none() || self.abandoned.contains(*id));
        let merges = unwanted.flat_map(|id| self.merge_over(id, &MergeEnd::Interrupted));
        let checking = self.checking.iter().filter(|id| self.work(id).is_none());
        let checks = checking.map(|id| Event::MarkChecked {
            task: id.clone(),
            end: MarkEnd::Interrupted,
            set_back: false,
        });
        merges.chain(checks).collect()
    }

    /// What a dead host did not write down any more of a train: one answer of the gates is several
    /// records, and it may have died between any two of them.
    fn rest_of_train(&self) -> Vec<Event> {
        let Some(train) = &self.train else {
            return Vec::new();
        };
        let waits = |id: &&TaskId| self.state(id) == Some(&TaskState::Landing);
        let merged = train.merged().iter().filter(waits);
        let mut events: Vec<Event> = merged
            .flat_map(|task| self.merge_over(task, &MergeEnd::Merged))
            .collect();
        // Left out of the stack, and the reason is not on record: it is found again.
        let is_left_out = |task: &TaskIx| {
            let id = self.id(*task);
            let is_known = self.queue.contains(task) || train.members.contains(&id);
            waits(&&id) && self.merging.as_ref() != Some(&id) && !is_known
        };
        let left_out = self.by_rank.iter().copied().filter(is_left_out);
        let left_out: Vec<TaskId> = left_out.map(|task| self.id(task)).collect();
        let is_over = matches!(train.step(), Step::Over | Step::Culprit(_));
        if !left_out.is_empty() || is_over || self.is_given_up(train) {
            let unproven = train.members[train.merged().len()..].iter().filter(waits);
            let back = unproven.filter(|id| !self.abandoned.contains(*id)).cloned();
            events.push(Event::TrainEnded {
                train: train.number,
                back: back.chain(left_out).collect(),
            });
        }
        events
    }

    /// Whether a task of it left the file: what is left of it is stacked anew.
    pub(super) fn is_given_up(&self, train: &Train) -> bool {
        let is_gone = |id: &TaskId| self.abandoned.contains(id) || self.work(id).is_none();
        train.left().any(is_gone)
    }

    /// Whether an attempt at the task is under way.
    fn runs(&self, id: &TaskId) -> bool {
        let runs = |state: &TaskState| matches!(state, TaskState::Running { .. });
        self.strays.contains_key(id) || self.state(id).is_some_and(runs)
    }

    fn finished(&self, id: &TaskId, end: &AttemptEnd) -> Vec<Event> {
        if !self.runs(id) {
            return Vec::new();
        }
        // An attempt at a task that left the file ends itself, and nothing else.
        let Some(task) = self.work(id).filter(|_| !self.abandoned.contains(id)) else {
            return vec![Event::AttemptEnded {
                task: id.clone(),
                end: end.clone(),
                next: self.again(id),
            }];
        };
        let next = match end {
            // Whether that is enough to be done was judged where its gates are known.
            AttemptEnd::Green { .. } => Next::Land,
            AttemptEnd::Red { tail } => self.failed(task, evidence(EvidenceKind::RedGate, tail)),
            AttemptEnd::Failed { message } => {
                self.failed(task, evidence(EvidenceKind::AgentFailed, message))
            }
            AttemptEnd::CutOff { message, .. } => {
                self.failed(task, evidence(EvidenceKind::CutOff, message))
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
        if self.merging.as_ref() != Some(id) {
            return Vec::new();
        }
        let task = self.work(id);
        let has_failed = task.is_some_and(|task| self.record(task).failed_merge);
        let flaky = *end == MergeEnd::Merged && has_failed;
        let flaky = flaky.then(|| Event::FlakyGate { task: id.clone() });
        flaky.into_iter().chain(self.merge_over(id, end)).collect()
    }

    /// What becomes of a task that left the file while it was at work: where it is back, it begins anew.
    fn again(&self, id: &TaskId) -> Next {
        self.work(id)
            .map_or(Next::Again, |task| self.unless_wished(task, Next::Again))
    }

    /// What a merge means for its task.
    fn merge_over(&self, id: &TaskId, end: &MergeEnd) -> Vec<Event> {
        let Some(task) = self.work(id).filter(|_| !self.abandoned.contains(id)) else {
            return vec![Event::MergeEnded {
                task: id.clone(),
                end: end.clone(),
                next: match end {
                    MergeEnd::Merged => Next::Done,
                    _ => self.again(id),
                },
            }];
        };
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
            task: id.clone(),
            end: end.clone(),
            next,
        };
        std::iter::once(ended).chain(stop).collect()
    }

    /// Whether a failed gate on the merged work of this task alone is run again before it counts.
    fn is_asked_again(&self, task: TaskIx) -> bool {
        let batched = self.config.merge_batch > 1 && !self.config.shared_tree;
        let alone = self.merging.as_ref() == Some(&self.id(task));
        batched && alone && !self.record(task).failed_merge
    }

    fn stacked(&self, number: u32, out: &[(TaskId, MergeEnd)], held: &[TaskId]) -> Vec<Event> {
        let Some(train) = self.train_of(number).filter(|t| t.step() == Step::Stack) else {
            return Vec::new();
        };
        let is_out = |id: &TaskId| held.contains(id) || out.iter().any(|(task, _)| task == id);
        let is_member = |id: &&TaskId| train.members.contains(id);
        let is_gone = |id: &&TaskId| self.abandoned.contains(*id);
        let tasks = train.members.iter().filter(|id| !is_out(id)).cloned();
        let tasks: Vec<TaskId> = tasks.collect();
        let mut back = Vec::new();
        let is_over = tasks.is_empty() || tasks.iter().any(|id| is_gone(&id));
        if is_over {
            back.extend(tasks.iter().filter(|id| !is_gone(id)).cloned());
        }
        let (unwanted, held): (Vec<&TaskId>, Vec<&TaskId>) = held.iter().partition(is_gone);
        let mut events = vec![Event::TrainStacked {
            train: number,
            tasks,
            held: held.into_iter().cloned().collect(),
        }];
        for (id, end) in out.iter().filter(|(id, _)| is_member(&id)) {
            events.extend(self.merge_over(id, end));
        }
        for id in unwanted {
            events.extend(self.merge_over(id, &MergeEnd::Interrupted));
        }
        events.extend(is_over.then_some(Event::TrainEnded {
            train: number,
            back,
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
            let last = after.members[members as usize - 1].clone();
            let is_flaky = after.is_flaky(members as usize, gated);
            events.extend(is_flaky.then_some(Event::FlakyGate { task: last }));
            after.gated(members as usize, gated);
        }
        for task in after.merged().iter().skip(train.merged().len()) {
            events.extend(self.merge_over(task, &MergeEnd::Merged));
        }
        let step = after.step();
        if let (Step::Culprit(at), TrainEnd::Red { tail, .. }) = (step, end) {
            let end = MergeEnd::Red { tail: tail.clone() };
            events.extend(self.merge_over(&after.members[at], &end));
        }
        let is_over = matches!(step, Step::Culprit(_) | Step::Over);
        if gated.is_none() || is_over || self.is_given_up(&after) {
            let back = after.left().filter(|id| !self.abandoned.contains(*id));
            events.push(Event::TrainEnded {
                train: number,
                back: back.cloned().collect(),
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
                let mut members = train.members.iter();
                let suspect = members.position(|member| Some(member) == check_of.as_ref());
                Some(Gated::Red { suspect })
            }
            TrainEnd::Interrupted | TrainEnd::Failed { .. } => None,
        }
    }

    /// A mark that the gates contradict is taken back, once.
    fn mark_answered(&self, id: &TaskId, end: &MarkEnd) -> Vec<Event> {
        if self.checking.as_ref() != Some(id) {
            return Vec::new();
        }
        let red = matches!(end, MarkEnd::Red { .. });
        let record = self.work(id).map(|task| self.record(task));
        let set_back = record.is_some_and(|record| {
            let is_marked = matches!(record.state, TaskState::MarkedDone { .. });
            red && is_marked && !record.set_back
        });
        vec![Event::MarkChecked {
            task: id.clone(),
            end: end.clone(),
            set_back,
        }]
    }

    fn removed(&self, tasks: &[TaskId]) -> Vec<Event> {
        let is_gone = |id: &&TaskId| self.plan.graph().find(id).is_none();
        let removed: Vec<TaskId> = tasks.iter().filter(is_gone).cloned().collect();
        match removed.iter().all(|id| self.removed.contains(id)) || !self.is_under_way() {
            true => Vec::new(),
            false => vec![Event::Replanned {
                added: Vec::new(),
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
    pub(super) fn seen(&self, id: &TaskId, status: TaskStatus) -> Option<Event> {
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

fn evidence(kind: EvidenceKind, text: &str) -> Evidence {
    Evidence {
        kind,
        text: text.to_owned(),
    }
}
