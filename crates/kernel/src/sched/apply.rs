//! The only way the scheduler's state changes, live and in recovery.

use super::record::{Slot, Stop, TaskState};
use super::state::Scheduler;
use super::train::Train;
use super::{
    AttemptEnd, CommitEnd, Event, Evidence, EvidenceKind, IllegalEvent, MarkCheck, MarkEnd,
    MergeEnd, Next, Seen, TrainEnd,
};
use descartes_plans::graph::hash::NameSet;
use descartes_plans::graph::{Mark, TaskId, TaskIx, TaskStatus};

type Applied = Result<(), IllegalEvent>;

/// Whether what ran in a slot counts against the attempts over all tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    Attempt,
    Nothing,
}

impl Scheduler {
    /// Changes the state as an event tells. Events about tasks that are not in the plan (any
    /// more) change nothing.
    pub fn apply(&mut self, event: &Event) -> Applied {
        match event {
            Event::Began { statuses } => {
                self.begun = true;
                self.take_statuses(statuses);
                Ok(())
            }
            Event::Replanned { statuses, removed } => {
                self.take_statuses(statuses);
                self.removed.extend(removed.iter().cloned());
                Ok(())
            }
            Event::MarkCheckStarted { task } => self.with(task, Self::mark_check_started),
            Event::MarkChecked {
                task,
                end,
                set_back,
            } => self.with(task, |this, ix| {
                this.mark_checked(ix, end, *set_back);
                Ok(())
            }),
            Event::Retried { tasks } => {
                tasks
                    .iter()
                    .filter_map(|id| self.plan.graph().find(id))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|task| self.retried(task));
                Ok(())
            }
            Event::AttemptStarted { task, .. } if self.plan.graph().find(task).is_none() => {
                // The task was taken out of the file; what it cost was spent all the same.
                self.iterations += 1;
                Ok(())
            }
            Event::AttemptStarted { task, slot, .. } => {
                self.with(task, |this, ix| this.attempt_started(ix, *slot))
            }
            Event::ClaimRefused { task, found } => {
                self.with(task, |this, ix| this.claim_refused(ix, *found))
            }
            Event::AttemptEnded { task, end, next } => {
                self.with(task, |this, ix| this.attempt_ended(ix, end, next))
            }
            Event::MergeStarted { task } => self.with(task, Self::merge_started),
            Event::MergeEnded { task, end, next } => {
                self.with(task, |this, ix| this.merge_ended(ix, end, next))
            }
            Event::StatusSeen { task, status, seen } => {
                self.with(task, |this, ix| this.status_seen(ix, *status, *seen))
            }
            other => {
                self.apply_to_loop(other);
                Ok(())
            }
        }
    }

    fn apply_to_loop(&mut self, event: &Event) {
        match event {
            Event::WaveCommitStarted { wave, tasks } => {
                let tasks = tasks
                    .iter()
                    .filter_map(|id| self.plan.graph().find(id))
                    .collect();
                self.committing = wave.checked_sub(1).map(|wave| (wave, tasks));
            }
            Event::WaveCommitEnded { wave, end } => self.wave_committed(*wave, end),
            Event::TrainStarted { train, tasks } => self.train_started(*train, tasks),
            Event::TrainStacked { tasks, held, .. } => self.train_stacked(tasks, held),
            Event::TrainGated { members, end, .. } => self.train_gated(*members, end),
            Event::TrainEnded { back, .. } => self.train_ended(back),
            Event::LimitOver { agent } => {
                let lanes = self.lanes.iter_mut().filter(|lane| lane.agent == *agent);
                lanes.for_each(|lane| lane.held_until = None);
            }
            Event::Resumed => (self.stop, self.ended) = (None, None),
            Event::Paused => self.paused = true,
            Event::Unpaused => self.paused = false,
            Event::Stopping { how, why } => {
                self.stop = Some(Stop {
                    how: *how,
                    why: why.clone(),
                })
            }
            Event::Finished { outcome } => self.ended = Some(outcome.clone()),
            _ => {}
        }
    }

    fn with(&mut self, id: &TaskId, change: impl FnOnce(&mut Self, TaskIx) -> Applied) -> Applied {
        match self.plan.graph().find(id) {
            Some(task) => change(self, task),
            None => Ok(()),
        }
    }

    fn illegal(&self, task: TaskIx, event: &'static str) -> IllegalEvent {
        let state = format!("{:?}", self.record(task).state);
        IllegalEvent {
            task: self.id(task),
            event,
            state,
        }
    }

    fn take_statuses(&mut self, statuses: &[(TaskId, TaskStatus)]) {
        let found: Vec<(TaskIx, TaskState)> = statuses
            .iter()
            .filter_map(|(id, status)| Some((self.plan.graph().find(id)?, TaskState::of(*status))))
            .collect();
        self.set_all(found.into_iter());
    }

    fn attempt_started(&mut self, task: TaskIx, slot: u32) -> Applied {
        if self.record(task).state != TaskState::Pending {
            return Err(self.illegal(task, "attempt_started"));
        }
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, Slot::default());
        }
        let room = &mut self.slots[slot as usize];
        // An agent with a whole wave in its hands makes one attempt.
        self.iterations += u32::from(room.tasks == 0);
        room.tasks += 1;
        self.running += 1;
        let record = self.record_mut(task);
        record.failed_merge = false;
        record.last_slot = Some(slot);
        record.claimed = true;
        self.set_state(task, TaskState::Running { slot });
        Ok(())
    }

    /// Frees the slot of a running task.
    fn leave_slot(&mut self, task: TaskIx, event: &'static str, cost: Cost) -> Applied {
        let TaskState::Running { slot } = self.record(task).state else {
            return Err(self.illegal(task, event));
        };
        let room = &mut self.slots[slot as usize];
        room.tasks -= 1;
        room.counts |= cost == Cost::Attempt;
        if room.tasks == 0 && !std::mem::take(&mut room.counts) {
            self.iterations -= 1;
        }
        self.running -= 1;
        Ok(())
    }

    fn claim_refused(&mut self, task: TaskIx, found: TaskStatus) -> Applied {
        self.leave_slot(task, "claim_refused", Cost::Nothing)?;
        self.record_mut(task).claimed = false;
        let state = match found {
            TaskStatus::InProgress => TaskState::Held { status: found },
            found => TaskState::by_others(found),
        };
        self.settle(task, state);
        Ok(())
    }

    fn attempt_ended(&mut self, task: TaskIx, end: &AttemptEnd, next: &Next) -> Applied {
        let cost = match end {
            AttemptEnd::Limited { .. } => Cost::Nothing,
            _ => Cost::Attempt,
        };
        self.leave_slot(task, "attempt_ended", cost)?;
        if let AttemptEnd::Limited { until, login: None } = end {
            let lane = self.lane_mut(task);
            lane.held_until = lane.held_until.max(Some(*until));
        }
        self.record_mut(task).interrupted += u32::from(*end == AttemptEnd::Interrupted);
        self.take_next(task, next);
        Ok(())
    }

    fn merge_started(&mut self, task: TaskIx) -> Applied {
        if self.record(task).state != TaskState::Landing || self.queue.front() != Some(&task) {
            return Err(self.illegal(task, "merge_started"));
        }
        self.queue.pop_front();
        self.merging = Some(task);
        Ok(())
    }

    fn merge_ended(&mut self, task: TaskIx, end: &MergeEnd, next: &Next) -> Applied {
        let alone = self.merging == Some(task);
        let together = self.record(task).state == TaskState::Landing;
        if !alone && !together {
            return Err(self.illegal(task, "merge_ended"));
        }
        let failed = matches!(end, MergeEnd::Red { .. });
        if alone {
            self.merging = None;
            self.record_mut(task).failed_merge = failed && *next == Next::Land;
            match end {
                MergeEnd::Merged => self.lengthen(),
                MergeEnd::Red { .. } if *next != Next::Land => self.shorten(self.batch),
                _ => {}
            }
        }
        self.queue.retain(|waiting| *waiting != task);
        if *next == Next::Land {
            // Its turn comes before that of work which was proven later.
            self.queue.push_front(task);
            self.set_state(task, TaskState::Landing);
            return Ok(());
        }
        self.take_next(task, next);
        Ok(())
    }

    /// The next train may be longer.
    fn lengthen(&mut self) {
        let most = self.config.merge_batch.max(1);
        self.batch = self.batch.saturating_mul(2).min(most);
    }

    /// The next train is half as long as this one.
    fn shorten(&mut self, length: u32) {
        self.batch = (length / 2).max(1);
    }

    fn train_started(&mut self, train: u32, tasks: &[TaskId]) {
        let members = self.known(tasks);
        self.trains = train;
        // Where one is no longer in the file, the others wait as they did before.
        if members.len() == tasks.len() {
            self.queue.retain(|task| !members.contains(task));
            self.train = Some(Train::new(train, members));
        }
    }

    fn train_stacked(&mut self, tasks: &[TaskId], held: &[TaskId]) {
        let (members, held) = (self.known(tasks), self.known(held));
        held.into_iter()
            .rev()
            .for_each(|task| self.queue.push_front(task));
        match &mut self.train {
            Some(train) if members.len() == tasks.len() => train.stacked(members),
            _ => self.train_ended(tasks),
        }
    }

    fn train_gated(&mut self, members: u32, end: &TrainEnd) {
        if *end == TrainEnd::Interrupted {
            return;
        }
        let Some(mut train) = self.train.take() else {
            return;
        };
        match self.gated_as(&train, end) {
            Some(gated) => train.gated(members as usize, gated),
            // What is wrong with one of them shows when each is merged alone.
            None => self.batch = 1,
        }
        self.train = Some(train);
    }

    fn train_ended(&mut self, back: &[TaskId]) {
        let Some(train) = self.train.take() else {
            return;
        };
        let back = self.known(back);
        match (train.has_failed(), back.is_empty()) {
            (true, _) => self.shorten(train.members.len() as u32),
            (false, true) => self.lengthen(),
            (false, false) => {}
        }
        back.into_iter()
            .rev()
            .for_each(|task| self.queue.push_front(task));
    }

    fn known(&self, ids: &[TaskId]) -> Vec<TaskIx> {
        let known = ids.iter().filter_map(|id| self.plan.graph().find(id));
        known.collect()
    }

    fn take_next(&mut self, task: TaskIx, next: &Next) {
        match next {
            Next::Land => {
                self.queue.push_back(task);
                self.set_state(task, TaskState::Landing);
            }
            Next::Done => {
                let wave = self.wave(task);
                self.landed[wave as usize].push(task);
                self.landed_waves.insert(wave);
                self.settle(task, TaskState::Done);
            }
            Next::Retry { evidence } => {
                let record = self.record_mut(task);
                record.failed += 1;
                record.evidence = Some(evidence.clone());
                self.set_state(task, TaskState::Pending);
            }
            Next::Again => self.set_state(task, TaskState::Pending),
            Next::Block { reason } => {
                self.record_mut(task).failed += 1;
                self.settle(
                    task,
                    TaskState::Blocked {
                        reason: reason.clone(),
                    },
                );
            }
            Next::Pass { reason } => {
                self.record_mut(task).failed += 1;
                self.settle(
                    task,
                    TaskState::Passed {
                        reason: reason.clone(),
                    },
                );
            }
            Next::Yield { status } => self.settle(task, TaskState::by_others(*status)),
        }
    }

    /// Ends our work on a task.
    fn settle(&mut self, task: TaskIx, state: TaskState) {
        let record = self.record_mut(task);
        record.wish = None;
        record.claimed = false;
        self.checks.retain(|waiting| *waiting != task);
        let check = MarkCheck::Waiting;
        if state == (TaskState::MarkedDone { check }) {
            self.checks.push_back(task);
        }
        self.set_state(task, state);
    }

    fn mark_check_started(&mut self, task: TaskIx) -> Applied {
        if self.checks.front() != Some(&task) || self.checking.is_some() {
            return Err(self.illegal(task, "mark_check_started"));
        }
        self.checks.pop_front();
        self.checking = Some(task);
        Ok(())
    }

    fn mark_checked(&mut self, task: TaskIx, end: &MarkEnd, set_back: bool) {
        self.checking = self.checking.filter(|checking| *checking != task);
        let waiting = TaskState::MarkedDone {
            check: MarkCheck::Waiting,
        };
        if self.record(task).state != waiting {
            // Somebody gave it another status meanwhile.
            return;
        }
        let check = match end {
            MarkEnd::Interrupted => MarkCheck::Waiting,
            MarkEnd::Green => MarkCheck::Green,
            MarkEnd::NoGate => MarkCheck::NoGate,
            MarkEnd::Red { .. } => MarkCheck::Red,
        };
        let state = match set_back {
            true => TaskState::Pending,
            false => TaskState::MarkedDone { check },
        };
        if let (MarkEnd::Red { tail }, true) = (end, set_back) {
            let record = self.record_mut(task);
            record.set_back = true;
            record.evidence = Some(Evidence {
                kind: EvidenceKind::MarkedRed,
                text: tail.clone(),
            });
        }
        self.settle(task, state);
    }

    fn retried(&mut self, task: TaskIx) {
        if !self.record(task).state.is_retried() {
            return;
        }
        let record = self.record_mut(task);
        record.earlier += std::mem::take(&mut record.failed);
        self.settle(task, TaskState::Pending);
    }

    fn status_seen(&mut self, task: TaskIx, status: TaskStatus, seen: Seen) -> Applied {
        if seen == Seen::Note {
            let wish = Some(status).filter(|status| status.is_held() || status.is_left_out());
            self.record_mut(task).wish = wish;
            return Ok(());
        }
        if matches!(
            self.record(task).state,
            TaskState::Running { .. } | TaskState::Landing
        ) {
            return Err(self.illegal(task, "status_seen"));
        }
        let state = match seen {
            Seen::Elsewhere => TaskState::Held { status },
            Seen::Mark => TaskState::by_others(status),
            Seen::Take | Seen::Note => TaskState::of(status),
        };
        if state == TaskState::Pending {
            // A person opens it again: it gets all its attempts.
            let record = self.record_mut(task);
            record.earlier += std::mem::take(&mut record.failed);
            record.evidence = None;
        }
        // What others mark stays merged, and is committed with its wave.
        let leaves = !state.is_marked() && state.mark(false) != Mark::Done;
        if leaves && self.plan.graph().is_work(task) {
            self.forget_landed(self.wave(task), |landed| landed == task);
        }
        self.settle(task, state);
        Ok(())
    }

    fn wave_committed(&mut self, wave: u32, end: &CommitEnd) {
        let Some((_, tasks)) = self.committing.take().filter(|(open, _)| open + 1 == wave) else {
            return;
        };
        if matches!(end, CommitEnd::Committed { .. }) {
            let tasks: NameSet<TaskIx> = tasks.into_iter().collect();
            let waves: NameSet<u32> = tasks.iter().map(|task| self.wave(*task)).collect();
            for wave in waves {
                self.forget_landed(wave, |landed| tasks.contains(&landed));
            }
        }
    }

    fn forget_landed(&mut self, wave: u32, which: impl Fn(TaskIx) -> bool) {
        let Some(landed) = self.landed.get_mut(wave as usize) else {
            return;
        };
        landed.retain(|task| !which(*task));
        if landed.is_empty() {
            self.landed_waves.remove(&wave);
        }
    }
}
