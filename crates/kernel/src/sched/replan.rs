//! A task file that changed its shape while the loop runs: tasks added, taken out, tied otherwise.

use super::record::{Record, TaskState};
use super::state::Scheduler;
use super::{Effect, Event};
use descartes_plans::graph::{Plan, TaskId, TaskIx, TaskStatus};

impl Scheduler {
    /// Goes on with another plan of the same tag or roadmap. What is known about tasks that are
    /// still there stays; the agents of tasks that are gone are to be ended.
    pub fn replan(&mut self, plan: Plan) -> Vec<Effect> {
        let old = std::mem::replace(self, Self::new(plan, self.config));
        let statuses = self.plan.effective_statuses();
        let mut added = Vec::new();
        let mut told: Vec<(TaskId, TaskStatus)> = Vec::new();
        // New tasks that somebody wrote down as done or taken out: nobody has proven them.
        let mut marked: Vec<(TaskId, TaskStatus)> = Vec::new();
        let under_way = old.is_under_way();
        let mut states: Vec<(TaskIx, TaskState)> = Vec::new();
        for task in 0..self.records.len() as TaskIx {
            let id = self.id(task);
            let is_work = self.plan.graph().is_work(task);
            let before = old.plan.graph().find(&id);
            let kept = before.filter(|before| old.plan.graph().is_work(*before) == is_work);
            if let Some(before) = kept {
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
                continue;
            }
            let status = statuses[task as usize];
            // A group that is none any more, or became one, is another task than before.
            added.push(id.clone());
            if under_way && is_work && TaskState::by_others(status).is_marked() {
                marked.push((id, status));
                continue;
            }
            states.push((task, TaskState::of(status)));
            if status != TaskStatus::Pending {
                told.push((id, status));
            }
        }
        let gone = self.carry_over(&old);
        self.set_all(states.into_iter());
        let mut effects = Vec::new();
        let removed = old.still_open().filter(|_| under_way);
        let removed = removed.filter(|id| self.plan.graph().find(id).is_none());
        let replanned = Event::Replanned {
            added,
            removed: removed.collect(),
            statuses: told,
        };
        self.take(replanned, &mut effects);
        for (task, status) in marked {
            let seen = self.seen(&task, status);
            seen.into_iter()
                .for_each(|event| self.take(event, &mut effects));
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

    /// Everything that is known about the loop rather than about one task. What is under way stays under
    /// way until it ends, also for tasks that are gone, which are given.
    fn carry_over(&mut self, old: &Self) -> Vec<TaskId> {
        let find = |task: &TaskIx| self.work(&old.id(*task));
        let queue = old.queue.iter().filter_map(find).collect();
        let checks = old.checks.iter().filter_map(find).collect();
        (self.queue, self.checks) = (queue, checks);
        (self.merging, self.checking) = (old.merging.clone(), old.checking.clone());
        self.train.clone_from(&old.train);
        (self.trains, self.batch) = (old.trains, old.batch);
        self.removed = old.removed.clone();
        self.file_away = old.file_away;
        self.committing.clone_from(&old.committing);
        self.landed_gone.clone_from(&old.landed_gone);
        for task in old.landed.iter().flatten().map(|task| old.id(*task)) {
            let Some(task) = self.work(&task) else {
                self.landed_gone.push(task);
                continue;
            };
            let wave = self.wave(task);
            self.landed[wave as usize].push(task);
            self.landed_waves.insert(wave);
        }
        for lane in &mut self.lanes {
            let known = old.lanes.iter().find(|known| known.agent == lane.agent);
            lane.held_until = known.and_then(|known| known.held_until);
        }
        self.slots.clone_from(&old.slots);
        (self.running, self.iterations) = (old.running, old.iterations);
        self.strays.clone_from(&old.strays);
        self.abandoned.clone_from(&old.abandoned);
        (self.begun, self.live, self.paused) = (old.begun, old.live, old.paused);
        (self.stop, self.ended) = (old.stop.clone(), old.ended.clone());
        let mut gone = Vec::new();
        for (task, record) in old.records.iter().enumerate() {
            let id = old.id(task as TaskIx);
            if self.work(&id).is_some() {
                continue;
            }
            match record.state {
                TaskState::Running { slot } => drop(self.strays.insert(id.clone(), slot)),
                TaskState::Landing if old.is_being_merged(&id) => {}
                _ => continue,
            }
            self.abandoned.insert(id.clone());
            gone.push(id);
        }
        gone
    }
}
