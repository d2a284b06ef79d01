//! The waves of a task loop, as people see them.

use serde::Serialize;

use descartes_kernel::tasks::{TaskEntry, TasksState};
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_text::units::plural;

/// Where a wave stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaveStands {
    /// Nothing of it has been begun.
    Pending,
    /// Some of it is done or being done.
    InProgress,
    /// All of it is done.
    Complete,
    /// Nothing of it is open any more, and not all of it is done.
    Stuck,
}

/// One wave; its label and its bar come from the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaveRow {
    /// The wave, from 1.
    pub wave: u32,
    /// Where it stands.
    pub stands: WaveStands,
    /// Tasks that are done.
    pub done: usize,
    /// All its tasks.
    pub total: usize,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<TaskId>,
}

impl WaveRow {
    /// `Complete (3 tasks)`, `In Progress (2/4 tasks)`, `Pending (3 tasks)`.
    pub fn label(&self) -> String {
        let (done, tasks) = (self.done, plural(self.total as u64, "task"));
        match self.stands {
            WaveStands::Pending => format!("Pending ({tasks})"),
            WaveStands::InProgress => format!("In Progress ({done}/{tasks})"),
            WaveStands::Complete => format!("Complete ({tasks})"),
            WaveStands::Stuck => format!("Blocked ({done}/{tasks})"),
        }
    }

    /// How full its bar is, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        match self.total {
            0 => 0.0,
            total => self.done as f64 / total as f64,
        }
    }
}

/// All waves, first one first.
pub fn waves(tasks: &TasksState) -> Vec<WaveRow> {
    (1..=tasks.waves).map(|wave| row(tasks, wave)).collect()
}

fn row(tasks: &TasksState, wave: u32) -> WaveRow {
    let of_wave = |id: &&TaskId| tasks.tasks.get(*id).is_some_and(|task| task.wave == wave);
    let ids: Vec<TaskId> = tasks.order.iter().filter(of_wave).cloned().collect();
    let entries: Vec<&TaskEntry> = ids.iter().filter_map(|id| tasks.tasks.get(id)).collect();
    let count = |test: fn(TaskStatus) -> bool| {
        let found = entries.iter().filter(|entry| test(entry.status));
        found.count()
    };
    let done = entries.iter().filter(|entry| entry.is_done()).count();
    let open = count(|status| matches!(status, TaskStatus::Pending | TaskStatus::InProgress));
    let begun = entries.iter().any(|entry| entry.attempts > 0) || done > 0;
    let stands = match (open, begun) {
        (0, _) if done == entries.len() => WaveStands::Complete,
        (0, _) => WaveStands::Stuck,
        (_, false) => WaveStands::Pending,
        (_, true) => WaveStands::InProgress,
    };
    WaveRow {
        wave,
        stands,
        done,
        total: entries.len(),
        tasks: ids,
    }
}
