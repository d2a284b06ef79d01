//! What is to be done next.

use super::config::{Barrier, Grouping};
use super::{Account, Outcome, Scheduler, StopKind, StopReason};
use descartes_plans::graph::TaskIx;

/// The next thing to do.
pub(super) enum Decision {
    Start { slot: u32, tasks: Vec<TaskIx> },
    Merge(TaskIx),
    Train(Vec<TaskIx>),
    CheckMark(TaskIx),
    Commit(u32),
    Finish(Outcome, Account),
}

impl Scheduler {
    /// What is to be done next, if anything.
    pub(super) fn decide(&self) -> Option<Decision> {
        if !self.live || self.ended.is_some() {
            return None;
        }
        let killed = self
            .stop
            .as_ref()
            .is_some_and(|stop| stop.how == StopKind::Kill);
        if !killed {
            // Merges, commits of waves and checks of marks move the same refs and use the same
            // tree: one at a time.
            if let Some(merge) = self.next_merge() {
                return Some(merge);
            }
            if let Some(wave) = self.wave_to_commit() {
                return Some(Decision::Commit(wave));
            }
            if let Some(task) = self.mark_to_check() {
                return Some(Decision::CheckMark(task));
            }
        }
        self.next_start().or_else(|| self.end())
    }

    /// What is merged next: everything that waits, or as much of it as a train may hold.
    fn next_merge(&self) -> Option<Decision> {
        let first = *self.queue.front().filter(|_| !self.is_integrating())?;
        let alone = self.config.shared_tree
            || self.config.grouping == Grouping::Wave
            || self.record(first).failed_merge;
        let length = if alone { 1 } else { self.batch as usize };
        let tasks = self.queue.iter().copied().take(length);
        let tasks: Vec<TaskIx> = tasks
            .take_while(|task| *task == first || !self.record(*task).failed_merge)
            .collect();
        Some(match tasks.len() {
            1 => Decision::Merge(first),
            _ => Decision::Train(tasks),
        })
    }

    /// The first wave with work in no commit, once neither it nor one before it has open tasks.
    fn wave_to_commit(&self) -> Option<u32> {
        let wave = self
            .landed_waves
            .first()
            .copied()
            .or_else(|| self.wave_for_gone())
            .filter(|_| !self.is_integrating())?;
        let commit_failed = matches!(
            self.stop.as_ref().map(|stop| &stop.why),
            Some(StopReason::CommitFailed { .. })
        );
        let is_over = self.open_waves.first().is_none_or(|open| *open > wave);
        (is_over && !commit_failed).then_some(wave)
    }

    /// What is merged of tasks that left the file since goes along with any wave, or else with the last.
    fn wave_for_gone(&self) -> Option<u32> {
        let last = (self.plan.waves().len() as u32).saturating_sub(1);
        (!self.landed_gone.is_empty()).then_some(last)
    }

    /// Whether something uses the tree in which work comes together.
    fn is_integrating(&self) -> bool {
        self.merging.is_some()
            || self.train.is_some()
            || self.committing.is_some()
            || self.checking.is_some()
    }

    /// The next task whose mark the gates are asked about. They run on the merged tree, so nothing
    /// else may happen in it meanwhile.
    fn mark_to_check(&self) -> Option<TaskIx> {
        let quiet = !self.is_integrating() && (!self.config.shared_tree || self.running == 0);
        let task = self.checks.front().copied();
        task.filter(|_| quiet && self.stop.is_none())
    }

    fn next_start(&self) -> Option<Decision> {
        let limit = self.config.max_iterations;
        let may_start = !self.paused
            && !self.file_away
            && !(self.config.shared_tree && (self.checking.is_some() || !self.checks.is_empty()))
            && self.stop.is_none()
            && limit.is_none_or(|limit| self.iterations < limit)
            && (self.config.barrier == Barrier::Off || self.committing.is_none())
            && !self.waits_for_merge();
        let free = (0..self.config.slots).find(|slot| self.is_free(*slot));
        let free = free.filter(|_| may_start)?;
        match self.config.grouping {
            Grouping::Task => {
                let task = self
                    .first_ready()
                    .filter(|task| !self.is_worth_waiting(*task))?;
                let last = self
                    .record(task)
                    .last_slot
                    .filter(|slot| self.is_free(*slot));
                Some(Decision::Start {
                    slot: last.unwrap_or(free),
                    tasks: vec![task],
                })
            }
            Grouping::Wave if self.running == 0 => {
                let wave = self.wave(self.first_ready()?);
                let ready = self.lanes.iter().filter(|lane| lane.held_until.is_none());
                let mut ranks: Vec<u32> =
                    ready.flat_map(|lane| lane.ready.iter().copied()).collect();
                ranks.sort_unstable();
                let tasks = ranks.into_iter().map(|rank| self.by_rank[rank as usize]);
                Some(Decision::Start {
                    slot: 0,
                    tasks: tasks.filter(|task| self.wave(*task) == wave).collect(),
                })
            }
            Grouping::Wave => None,
        }
    }

    /// With one slot tasks build on each other: the next starts from a tree that holds the one
    /// before, or after that was sent back.
    fn waits_for_merge(&self) -> bool {
        let waits = self.merging.is_some() || self.train.is_some() || !self.queue.is_empty();
        self.config.slots == 1 && waits
    }

    /// Whether all free slots are better kept for tasks that a merge is about to set free: those
    /// that are more urgent, or have more work hanging on them. A merge is short beside an attempt,
    /// and an attempt that took the slot would keep the longest chain waiting to its end.
    fn is_worth_waiting(&self, task: TaskIx) -> bool {
        if self.config.barrier == Barrier::On || self.landing().next().is_none() {
            return false;
        }
        // What is far behind in the queue is not worth a free slot.
        let next = self.config.slots.max(self.batch) as usize;
        let landing = self.landing().take(next);
        let key = |task: TaskIx| {
            let priority = self.plan.graph().node(task).priority;
            (priority, std::cmp::Reverse(self.plan.tail(task)))
        };
        let better = |landing: &TaskIx| {
            let next = self.frontier.released_by(&self.plan, *landing);
            next.into_iter().any(|next| key(next) < key(task))
        };
        let kept = landing.filter(better).count();
        let free = (0..self.config.slots)
            .filter(|slot| self.is_free(*slot))
            .count();
        kept >= free
    }

    /// Tasks that are being merged or wait for it.
    fn landing(&self) -> impl Iterator<Item = TaskIx> {
        let train = self.train.iter().flat_map(|train| train.left());
        let merging = train.chain(&self.merging).filter_map(|id| self.work(id));
        merging.chain(self.queue.iter().copied())
    }

    fn is_free(&self, slot: u32) -> bool {
        slot < self.config.slots && self.slots[slot as usize].tasks == 0
    }

    /// The ready task that comes first, of an agent that is not limited.
    fn first_ready(&self) -> Option<TaskIx> {
        let lanes = self.lanes.iter().filter(|lane| lane.held_until.is_none());
        let rank = lanes.filter_map(|lane| lane.ready.first()).min()?;
        let task = self.by_rank[*rank as usize];
        let its_turn = self
            .open_waves
            .first()
            .is_none_or(|open| self.wave(task) <= *open);
        (self.config.barrier == Barrier::Off || its_turn).then_some(task)
    }

    /// The end, once nothing runs and nothing more can.
    fn end(&self) -> Option<Decision> {
        let killed = self
            .stop
            .as_ref()
            .is_some_and(|stop| stop.how == StopKind::Kill);
        let busy = self.running > 0
            || self.merging.is_some()
            || self.train.is_some()
            || self.committing.is_some()
            || self.checking.is_some()
            || (self.file_away && self.stop.is_none())
            || (!killed && !self.queue.is_empty());
        if busy {
            return None;
        }
        let used_up = self
            .config
            .max_iterations
            .filter(|limit| self.iterations >= *limit);
        let landed = self.landed_waves.is_empty() && self.landed_gone.is_empty();
        let all_in = self.open_waves.is_empty() && landed;
        let outcome = match (&self.stop, all_in, used_up) {
            // What stopped because of a failure has failed, even where nothing was left to stop.
            (Some(stop), all_in, _) if !all_in || stop.why.is_failure() => Outcome::Stopped {
                why: stop.why.clone(),
            },
            (_, true, _) => match self.account().is_complete() {
                true => Outcome::Complete,
                false => Outcome::TasksBlocked,
            },
            (_, false, Some(limit)) => Outcome::MaxIterations { limit },
            (_, false, None) => return None,
        };
        Some(Decision::Finish(outcome, self.account()))
    }
}
