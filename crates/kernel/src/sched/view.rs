//! What views need to know of a task loop.

use super::Input;
use super::record::{MarkCheck, TaskState};
use super::state::Scheduler;
use descartes_plans::graph::{TaskId, TaskIx, TaskStatus};

/// Where a wave stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveState {
    /// Nothing of it has been started.
    Pending,
    /// Some of it is done or being done.
    InProgress,
    /// Nothing of it is open any more.
    Over,
}

/// A wave as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveProgress {
    /// The wave, from 1.
    pub wave: u32,
    /// Where it stands.
    pub state: WaveState,
    /// All its tasks.
    pub total: usize,
    /// Those that are done.
    pub done: usize,
    /// Those that an agent works on or that are being merged.
    pub running: usize,
    /// Those that are blocked, held or out of reach.
    pub stuck: usize,
}

impl Scheduler {
    /// All waves, first one first.
    pub fn wave_progress(&self) -> Vec<WaveProgress> {
        let waves = self.plan.waves().iter().enumerate();
        waves
            .map(|(wave, tasks)| self.progress_of(wave as u32 + 1, tasks))
            .collect()
    }

    fn progress_of(&self, wave: u32, tasks: &[TaskIx]) -> WaveProgress {
        let count = |test: &dyn Fn(&TaskState) -> bool| {
            tasks
                .iter()
                .filter(|task| test(&self.record(**task).state))
                .count()
        };
        let done = count(&|state| *state == TaskState::Done);
        let running =
            count(&|state| matches!(state, TaskState::Running { .. } | TaskState::Landing));
        let open = tasks
            .iter()
            .filter(|task| self.record(**task).is_open)
            .count();
        let stuck = tasks.len()
            - open
            - count(&|state| {
                matches!(
                    state,
                    TaskState::Done
                        | TaskState::Passed { .. }
                        | TaskState::LeftOut { .. }
                        | TaskState::MarkedOut { .. }
                        | TaskState::MarkedDone {
                            check: MarkCheck::Green | MarkCheck::NoGate,
                        }
                )
            });
        let state = match (open, done + running) {
            (0, _) => WaveState::Over,
            (_, 0) => WaveState::Pending,
            _ => WaveState::InProgress,
        };
        WaveProgress {
            wave,
            state,
            total: tasks.len(),
            done,
            running,
            stuck,
        }
    }

    /// The wave that is worked on, from 1; `None` when all are over.
    pub fn current_wave(&self) -> Option<u32> {
        self.open_waves.first().map(|wave| wave + 1)
    }

    /// Tasks that an agent works on, with their slots.
    pub fn running(&self) -> Vec<(TaskId, u32)> {
        let slot = |task: &TaskIx| match self.record(*task).state {
            TaskState::Running { slot } => Some((self.id(*task), slot)),
            _ => None,
        };
        let strays = self.strays.iter().map(|(task, slot)| (task.clone(), *slot));
        self.by_rank.iter().filter_map(slot).chain(strays).collect()
    }

    /// The status of every task, by position in the graph, as the file ought to say.
    pub fn statuses(&self) -> Vec<TaskStatus> {
        (0..self.records.len() as TaskIx)
            .map(|task| self.status_of(task))
            .collect()
    }

    fn status_of(&self, task: TaskIx) -> TaskStatus {
        match &self.record(task).state {
            TaskState::Pending if !self.plan.graph().is_work(task) => {
                self.plan.graph().node(task).status
            }
            TaskState::Pending | TaskState::Passed { .. } => TaskStatus::Pending,
            TaskState::Running { .. } | TaskState::Landing => TaskStatus::InProgress,
            TaskState::Done | TaskState::MarkedDone { .. } => TaskStatus::Done,
            TaskState::Blocked { .. } => TaskStatus::Blocked,
            TaskState::Held { status }
            | TaskState::LeftOut { status }
            | TaskState::MarkedOut { status } => *status,
        }
    }

    /// The inputs that tell of every difference between the statuses of a file that was read
    /// again (by position in the same graph) and those that it ought to have.
    pub fn differences(&self, statuses: &[TaskStatus]) -> Vec<Input> {
        let ours = self.statuses();
        let differ = ours
            .iter()
            .zip(statuses)
            .enumerate()
            .filter(|(_, (ours, file))| ours != file);
        differ
            .map(|(task, (_, status))| Input::StatusSeen {
                task: self.id(task as TaskIx),
                status: *status,
            })
            .collect()
    }
}
