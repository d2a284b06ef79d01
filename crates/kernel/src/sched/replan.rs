//! A task file that changed its shape while the loop runs: tasks added, taken out, tied otherwise.

use super::record::{Record, Slot, TaskState};
use super::state::Scheduler;
use super::{Effect, Event, Seen};
use descartes_plans::graph::{Plan, TaskId, TaskIx, TaskStatus};

impl Scheduler {
    /// Goes on with another plan of the same tag or roadmap. What is known about tasks that are
    /// still there stays; the agents of tasks that are gone are to be ended.
    pub fn replan(&mut self, plan: Plan) -> Vec<Effect> {
        let old = std::mem::replace(self, Self::new(plan, self.config));
        let statuses = self.plan.effective_statuses();
        let mut told: Vec<(TaskId, TaskStatus)> = Vec::new();
        // New tasks that somebody wrote down as done or taken out: nobody has proven them.
        let mut marked: Vec<(TaskId, TaskStatus)> = Vec::new();
        let under_way = old.is_under_way();
        let mut states: Vec<(TaskIx, TaskState)> = Vec::new();
        for task in 0..self.records.len() as TaskIx {
            let before = old.plan.graph().find(&self.id(task));
            let kept = before.filter(|_| self.plan.graph().is_work(task));
            match kept {
                Some(before) if old.plan.graph().is_work(before) => {
                    let record = old.record(before).clone();
                    states.push((task, record.state.clone()));
                    // Which sets the task is in is known here, and mended below.
                    let Record {
                        is_ready, is_open, ..
                    } = *self.record(task);
                    *self.record_mut(task) = Record {
                        is_ready,
                        is_open,
                        ..record
                    };
                }
                _ => {
                    let status = statuses[task as usize];
                    let is_work = self.plan.graph().is_work(task);
                    if under_way && is_work && TaskState::by_others(status).is_marked() {
                        marked.push((self.id(task), status));
                        states.push((task, TaskState::Pending));
                        continue;
                    }
                    states.push((task, TaskState::of(status)));
                    if status != TaskStatus::Pending {
                        told.push((self.id(task), status));
                    }
                }
            }
        }
        self.carry_over(&old);
        self.set_all(states.into_iter());
        let gone = (0..old.records.len() as TaskIx).filter(|task| {
            let busy = matches!(old.record(*task).state, TaskState::Running { .. });
            busy && self.plan.graph().find(&old.id(*task)).is_none()
        });
        let gone: Vec<TaskId> = gone.map(|task| old.id(task)).collect();
        let mut effects = Vec::new();
        let removed = old.still_open().filter(|_| under_way);
        let removed = removed.filter(|id| self.plan.graph().find(id).is_none());
        let replanned = Event::Replanned {
            statuses: told,
            removed: removed.collect(),
        };
        self.take(replanned, &mut effects);
        for (task, status) in marked {
            let seen = Seen::Mark;
            self.take(Event::StatusSeen { task, status, seen }, &mut effects);
        }
        effects.extend(gone.into_iter().map(|task| Effect::Abandon { task }));
        self.go_on(&mut effects);
        effects
    }

    /// Tasks that nobody has done or taken out, from the old plan.
    fn still_open(&self) -> impl Iterator<Item = TaskId> {
        let tasks = (0..self.records.len() as TaskIx).filter(|task| {
            let state = &self.record(*task).state;
            let settled = matches!(state, TaskState::Done | TaskState::LeftOut { .. });
            self.plan.graph().is_work(*task) && !settled
        });
        tasks.map(|task| self.id(task))
    }

    /// Everything that is known about the loop rather than about one task.
    fn carry_over(&mut self, old: &Self) {
        let find = |task: &TaskIx| self.plan.graph().find(&old.id(*task));
        self.queue = old.queue.iter().filter_map(find).collect();
        self.merging = old.merging.as_ref().and_then(find);
        (self.trains, self.batch) = (old.trains, old.batch);
        if let Some(train) = &old.train {
            let members: Vec<TaskIx> = train.members.iter().filter_map(find).collect();
            match members.len() == train.members.len() {
                true => self.train = Some(train.with_members(members)),
                // One was taken out of the file: what is left is stacked anew.
                false => train
                    .left()
                    .filter_map(|task| find(&task))
                    .rev()
                    .for_each(|task| self.queue.push_front(task)),
            }
        }
        self.checks = old.checks.iter().filter_map(find).collect();
        self.checking = old.checking.as_ref().and_then(find);
        self.removed = old.removed.clone();
        self.file_away = old.file_away;
        let committing = old.committing.as_ref();
        self.committing =
            committing.map(|(wave, tasks)| (*wave, tasks.iter().filter_map(find).collect()));
        let landed: Vec<TaskIx> = old.landed.iter().flatten().filter_map(find).collect();
        for task in landed {
            let wave = self.wave(task);
            self.landed[wave as usize].push(task);
            self.landed_waves.insert(wave);
        }
        for lane in &mut self.lanes {
            let known = old.lanes.iter().find(|known| known.agent == lane.agent);
            lane.held_until = known.and_then(|known| known.held_until);
        }
        self.slots = vec![Slot::default(); old.slots.len()];
        for record in &self.records {
            if let TaskState::Running { slot } = record.state {
                let room = &mut self.slots[slot as usize];
                room.tasks += 1;
                room.counts = old.slots[slot as usize].counts;
                self.running += 1;
            }
        }
        self.iterations = old.iterations;
        (self.begun, self.live, self.paused) = (old.begun, old.live, old.paused);
        (self.stop, self.ended) = (old.stop.clone(), old.ended.clone());
    }
}
