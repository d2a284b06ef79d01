//! What an event asks of the world.

use super::train::Step;
use super::{
    Attempt, AttemptEnd, Effect, Event, Input, MarkEnd, Next, Scheduler, StopKind, StopReason,
    TaskState, TrainEnd,
};
use descartes_plans::graph::{TaskId, TaskIx, TaskStatus};

impl Scheduler {
    /// What an event asks of the world; starts and the end are asked for where they are decided.
    pub(super) fn acts_of(&self, event: &Event) -> Vec<Effect> {
        match event {
            Event::MergeStarted { task } => vec![Effect::Merge { task: task.clone() }],
            // Where the gates said nothing the train ends, and its members are merged alone.
            Event::TrainGated {
                end: TrainEnd::Interrupted | TrainEnd::Failed { .. },
                ..
            } => Vec::new(),
            Event::TrainStarted { .. } | Event::TrainStacked { .. } | Event::TrainGated { .. } => {
                self.train_step().into_iter().collect()
            }
            Event::MarkCheckStarted { task } => vec![Effect::CheckMark { task: task.clone() }],
            Event::MarkChecked {
                task,
                end: MarkEnd::Red { tail },
                set_back: true,
            } => vec![Effect::SetBack {
                task: task.clone(),
                tail: tail.clone(),
            }],
            Event::Retried { tasks } => tasks
                .iter()
                .map(|task| Effect::Release { task: task.clone() })
                .collect(),
            Event::WaveCommitStarted { wave, tasks } => {
                vec![Effect::CommitWave {
                    wave: *wave,
                    tasks: tasks.clone(),
                }]
            }
            Event::Stopping {
                how: StopKind::Kill,
                ..
            } if self.running > 0 => {
                vec![Effect::StopAttempts]
            }
            Event::Stopping {
                how: StopKind::Drain,
                why: StopReason::Budget { budget, .. },
            } if self.running > 0 => {
                vec![Effect::EndRuns { budget: *budget }]
            }
            Event::AttemptEnded { task, end, next } => {
                let mut acts = self.acts_of_next(task, next);
                if let AttemptEnd::Limited { .. } = end {
                    acts.extend(self.wait());
                }
                acts
            }
            Event::MergeEnded { task, next, .. } => self.acts_of_next(task, next),
            _ => Vec::new(),
        }
    }

    fn acts_of_next(&self, task: &TaskId, next: &Next) -> Vec<Effect> {
        let task = task.clone();
        match next {
            // One that left the file has no mark.
            Next::Done if self.work(&task).is_none() => Vec::new(),
            Next::Done => vec![Effect::MarkDone { task }],
            Next::Block { reason } => vec![Effect::MarkBlocked {
                task,
                reason: reason.clone(),
            }],
            Next::Pass { .. } => vec![Effect::Release { task }],
            Next::Land | Next::Retry { .. } | Next::Again | Next::Yield { .. } => Vec::new(),
        }
    }

    /// The next step of the train.
    fn train_step(&self) -> Option<Effect> {
        let train = self.train.as_ref()?;
        let number = train.number;
        if self.is_given_up(train) {
            return None;
        }
        let tasks = || train.members.clone();
        match train.step() {
            Step::Stack => Some(Effect::StackTrain {
                train: number,
                tasks: tasks(),
            }),
            Step::Gate(members) => Some(Effect::GateTrain {
                train: number,
                tasks: tasks(),
                members: members as u32,
            }),
            Step::Culprit(_) | Step::Over => None,
        }
    }

    /// Until the first limit is over.
    pub(super) fn wait(&self) -> Option<Effect> {
        let until = self.lanes.iter().filter_map(|lane| lane.held_until).min()?;
        Some(Effect::Wait { until })
    }

    /// What an input without consequences still asks for: a status that another tool put back is
    /// set right.
    pub(super) fn said_again(&self, input: &Input) -> Option<Effect> {
        match input {
            Input::StatusSeen { task, status } if self.live && self.ended.is_none() => {
                self.set_right(task, *status)
            }
            _ => None,
        }
    }

    fn set_right(&self, id: &TaskId, seen: TaskStatus) -> Option<Effect> {
        let task = self
            .plan
            .graph()
            .find(id)
            .filter(|task| self.plan.graph().is_work(*task))?;
        let record = self.record(task);
        let id = id.clone();
        match &record.state {
            TaskState::Done if seen != TaskStatus::Done => Some(Effect::MarkDone { task: id }),
            TaskState::Running { .. } | TaskState::Landing
                if record.wish.is_none() && seen != TaskStatus::InProgress =>
            {
                Some(Effect::Claim { task: id })
            }
            TaskState::Blocked { reason } if seen != TaskStatus::Blocked => {
                Some(Effect::MarkBlocked {
                    task: id,
                    reason: reason.clone(),
                })
            }
            _ => None,
        }
    }

    /// After recovery: attempts that go on without their host, a merge or commit that a dead host began
    /// are asked for again, and so is a wait.
    pub(super) fn taken_up_again(&self) -> Vec<Effect> {
        let attempts = self.attempts_under_way();
        let merge = self.merging.clone().map(|task| Effect::Merge { task });
        let checking = self.checking.clone();
        let check = checking.map(|task| Effect::CheckMark { task });
        let commit = self
            .committing
            .as_ref()
            .map(|(wave, tasks)| Effect::CommitWave {
                wave: wave + 1,
                tasks: tasks.clone(),
            });
        let train = self.train_step();
        let work = attempts.into_iter().chain(merge).chain(train);
        let work = work.chain(check).chain(commit);
        work.chain(self.wait()).collect()
    }

    /// What was asked for when the attempts under way were started.
    fn attempts_under_way(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for slot in 0..self.slots.len() as u32 {
            let state = TaskState::Running { slot };
            let tasks = self.by_rank.iter().copied();
            let tasks = tasks.filter(|task| self.record(*task).state == state);
            let tasks: Vec<Attempt> = tasks.map(|task| self.attempt_at(task)).collect();
            let claims = tasks.iter().map(|attempt| Effect::Claim {
                task: attempt.task.clone(),
            });
            effects.extend(claims);
            if !tasks.is_empty() {
                effects.push(Effect::StartAttempt { slot, tasks });
            }
        }
        effects
    }

    /// The next attempt at a task, or the one that is under way.
    pub(super) fn attempt_at(&self, task: TaskIx) -> Attempt {
        let record = self.record(task);
        Attempt {
            task: self.id(task),
            attempt: record.next_attempt(),
            evidence: record.evidence.clone(),
        }
    }
}
