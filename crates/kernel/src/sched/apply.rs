//! The only way the scheduler's state changes, live and in recovery.

use super::record::{Record, Slot, Stop, TaskState};
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

fn cost_of(end: &AttemptEnd) -> Cost {
    match end {
        AttemptEnd::Limited { .. } => Cost::Nothing,
        _ => Cost::Attempt,
    }
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
            Event::Replanned {
                added,
                statuses,
                removed,
            } => {
                removed.iter().for_each(|task| self.left_file(task));
                added.iter().for_each(|task| self.came_into_file(task));
                self.take_statuses(statuses);
                Ok(())
            }
            Event::MarkCheckStarted { task } => {
                self.checking = Some(task.clone());
                self.with(task, Self::mark_check_started)
            }
            Event::MarkChecked {
                task,
                end,
                set_back,
            } => {
                self.checking.take_if(|checking| checking == task);
                self.with(task, |this, ix| {
                    this.mark_checked(ix, end, *set_back);
                    Ok(())
                })
            }
            Event::Retried { tasks } => {
                tasks
                    .iter()
                    .filter_map(|id| self.plan.graph().find(id))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|task| self.retried(task));
                Ok(())
            }
            Event::AttemptStarted { task, slot, .. } => match self.work(task) {
                Some(ix) => self.attempt_started(ix, *slot),
                None => {
                    self.stray_ended(task, Cost::Attempt);
                    self.enter_slot(*slot);
                    self.strays.insert(task.clone(), *slot);
                    Ok(())
                }
            },
            Event::ClaimRefused { task, found } => {
                self.abandoned.remove(task);
                match self.work(task) {
                    Some(ix) => self.claim_refused(ix, *found),
                    None => {
                        self.stray_ended(task, Cost::Nothing);
                        Ok(())
                    }
                }
            }
            Event::AttemptEnded { task, end, next } => {
                self.abandoned.remove(task);
                match self.work(task) {
                    Some(ix) => self.attempt_ended(ix, end, next),
                    None => {
                        self.stray_ended(task, cost_of(end));
                        Ok(())
                    }
                }
            }
            Event::MergeStarted { task } => match self.work(task) {
                Some(ix) => self.merge_started(ix),
                None => {
                    self.merging = Some(task.clone());
                    Ok(())
                }
            },
            Event::MergeEnded { task, end, next } => {
                self.abandoned.remove(task);
                match self.work(task) {
                    Some(ix) => self.merge_ended(ix, end, next),
                    None => {
                        self.gone_merged(task, next);
                        Ok(())
                    }
                }
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
                self.committing = wave.checked_sub(1).map(|wave| (wave, tasks.clone()));
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
        let is_busy = |task: TaskIx| {
            let state = &self.record(task).state;
            matches!(state, TaskState::Running { .. } | TaskState::Landing)
        };
        let found: Vec<(TaskIx, TaskState)> = statuses
            .iter()
            .filter_map(|(id, status)| Some((self.plan.graph().find(id)?, TaskState::of(*status))))
            .filter(|(task, _)| !is_busy(*task))
            .collect();
        self.set_all(found.into_iter());
    }

    /// A task that was still to be done is no longer in the file.
    fn left_file(&mut self, id: &TaskId) {
        self.removed.insert(id.clone());
        let is_running = match self.work(id) {
            None => self.strays.contains_key(id),
            Some(task) => matches!(self.record(task).state, TaskState::Running { .. }),
        };
        if is_running || self.is_being_merged(id) {
            self.abandoned.insert(id.clone());
        } else if let Some(task) = self.work(id) {
            // A host that takes the loop up folds this over a file that has it again.
            self.forget(task);
        }
    }

    /// A task came into the file, or back into it.
    fn came_into_file(&mut self, id: &TaskId) {
        self.removed.remove(id);
        let Some(task) = self.plan.graph().find(id) else {
            return;
        };
        let slot = match self.record(task).state {
            TaskState::Running { slot } => Some(slot),
            _ if self.work(id).is_some() => self.strays.remove(id),
            _ => None,
        };
        self.forget(task);
        if let Some(slot) = slot {
            self.set_state(task, TaskState::Running { slot });
        } else if self.work(id).is_some() && self.is_being_merged(id) {
            // It has run, in a slot that is of no use any more.
            self.record_mut(task).last_slot = Some(0);
            self.set_state(task, TaskState::Landing);
        }
    }

    /// Nothing is known about a task any more.
    fn forget(&mut self, task: TaskIx) {
        self.queue.retain(|waiting| *waiting != task);
        self.checks.retain(|waiting| *waiting != task);
        let wave = self.wave(task);
        let landed = self.landed.get(wave as usize);
        if landed.is_some_and(|landed| landed.contains(&task)) {
            // Its merged work is still in no commit of a wave.
            self.forget_landed(wave, |landed| landed == task);
            self.landed_gone.push(self.id(task));
        }
        let record = self.record_mut(task);
        *record = Record {
            is_ready: record.is_ready,
            is_open: record.is_open,
            ..Record::new(TaskState::Pending)
        };
        self.set_state(task, TaskState::Pending);
    }

    /// Takes a place in a slot.
    fn enter_slot(&mut self, slot: u32) {
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, Slot::default());
        }
        let room = &mut self.slots[slot as usize];
        // An agent with a whole wave in its hands makes one attempt.
        self.iterations += u32::from(room.tasks == 0);
        room.tasks += 1;
        self.running += 1;
    }

    /// Frees the slot of an attempt at a task that is no longer in the file.
    fn stray_ended(&mut self, id: &TaskId, cost: Cost) {
        if let Some(slot) = self.strays.remove(id) {
            self.leave_slot(slot, cost);
        }
    }

    /// The merge of a task that is no longer in the file is over.
    fn gone_merged(&mut self, id: &TaskId, next: &Next) {
        self.merging.take_if(|merging| merging == id);
        if *next == Next::Done {
            // It was in before anybody could keep it out: it lands with what lands next.
            self.removed.remove(id);
            self.landed_gone.push(id.clone());
        }
    }

    fn attempt_started(&mut self, task: TaskIx, slot: u32) -> Applied {
        if self.record(task).state != TaskState::Pending {
            return Err(self.illegal(task, "attempt_started"));
        }
        self.enter_slot(slot);
        let record = self.record_mut(task);
        record.failed_merge = false;
        record.last_slot = Some(slot);
        record.claimed = true;
        self.set_state(task, TaskState::Running { slot });
        Ok(())
    }

    /// Frees the slot of a running task.
    fn leave_slot_of(&mut self, task: TaskIx, event: &'static str, cost: Cost) -> Applied {
        let TaskState::Running { slot } = self.record(task).state else {
            return Err(self.illegal(task, event));
        };
        self.leave_slot(slot, cost);
        Ok(())
    }

    fn leave_slot(&mut self, slot: u32, cost: Cost) {
        let room = &mut self.slots[slot as usize];
        room.tasks -= 1;
        room.counts |= cost == Cost::Attempt;
        if room.tasks == 0 && !std::mem::take(&mut room.counts) {
            self.iterations -= 1;
        }
        self.running -= 1;
    }

    fn claim_refused(&mut self, task: TaskIx, found: TaskStatus) -> Applied {
        self.leave_slot_of(task, "claim_refused", Cost::Nothing)?;
        self.record_mut(task).claimed = false;
        let state = match found {
            TaskStatus::InProgress => TaskState::Held { status: found },
            found => TaskState::by_others(found),
        };
        self.settle(task, state);
        Ok(())
    }

    fn attempt_ended(&mut self, task: TaskIx, end: &AttemptEnd, next: &Next) -> Applied {
        self.leave_slot_of(task, "attempt_ended", cost_of(end))?;
        if let AttemptEnd::Limited { until, login: None } = end {
            let lane = self.lane_mut(task);
            lane.held_until = lane.held_until.max(Some(*until));
        }
        self.record_mut(task).interrupted += u32::from(*end == AttemptEnd::Interrupted);
        self.take_next(task, next);
        Ok(())
    }

    fn merge_started(&mut self, task: TaskIx) -> Applied {
        self.close_given_up_train();
        if self.record(task).state != TaskState::Landing || self.queue.front() != Some(&task) {
            return Err(self.illegal(task, "merge_started"));
        }
        self.queue.pop_front();
        self.merging = Some(self.id(task));
        Ok(())
    }

    fn merge_ended(&mut self, task: TaskIx, end: &MergeEnd, next: &Next) -> Applied {
        let alone = self.merging.as_ref() == Some(&self.id(task));
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
        self.close_given_up_train();
        let members = self.known(tasks);
        self.trains = train;
        self.queue.retain(|task| !members.contains(task));
        self.train = Some(Train::new(train, tasks.to_vec()));
    }

    /// Older versions wrote no end of a train that lost a member to an edit of the file.
    fn close_given_up_train(&mut self) {
        if let Some(train) = self.train.as_ref().filter(|train| self.is_given_up(train)) {
            let back: Vec<TaskId> = train.left().cloned().collect();
            let wanted = back.into_iter().filter(|id| !self.abandoned.contains(id));
            let wanted: Vec<TaskId> = wanted.collect();
            self.train_ended(&wanted);
        }
    }

    fn train_stacked(&mut self, tasks: &[TaskId], held: &[TaskId]) {
        let held = self.known(held);
        let Some(train) = &mut self.train else {
            return;
        };
        train.stacked(tasks.to_vec());
        held.into_iter()
            .rev()
            .for_each(|task| self.queue.push_front(task));
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
        // One that left the file meanwhile and is back begins anew.
        for id in train.left() {
            let came_back = self.abandoned.remove(id).then(|| self.work(id)).flatten();
            if let Some(task) = came_back {
                self.set_state(task, TaskState::Pending);
            }
        }
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
        ids.iter().filter_map(|id| self.work(id)).collect()
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
        if self.checks.front() != Some(&task) {
            return Err(self.illegal(task, "mark_check_started"));
        }
        self.checks.pop_front();
        Ok(())
    }

    fn mark_checked(&mut self, task: TaskIx, end: &MarkEnd, set_back: bool) {
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
            self.landed_gone.retain(|task| !tasks.contains(task));
            let tasks: NameSet<TaskIx> = self.known(&tasks).into_iter().collect();
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
