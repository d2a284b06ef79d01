//! What can be wrong with a graph, in words.

use thiserror::Error;

use super::TaskId;
use descartes_text::finding::{Place, Severity};

/// One thing that is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Tasks that wait for each other: each for the next, the last for the first.
    #[error("dependency cycle: {}", cycle(.path, *.tangled))]
    Cycle {
        /// The shortest ring through its first task.
        path: Vec<TaskId>,
        /// How many tasks are tangled up with it, those of the path included.
        tangled: usize,
        /// Where the first task of the path was written.
        place: Place,
    },
    /// A task that depends on one that is not there.
    #[error("task `{task}` depends on `{dependency}`, which does not exist")]
    UnknownDependency {
        /// The task that waits.
        task: TaskId,
        /// The name that means nothing.
        dependency: TaskId,
        /// Where the dependency was written.
        place: Place,
    },
    /// A task that depends on itself.
    #[error("task `{task}` depends on itself")]
    SelfDependency {
        task: TaskId,
        /// Where the dependency was written.
        place: Place,
    },
    /// Two tasks of one name.
    #[error("the id `{task}` is already used on line {}", .first.line)]
    DuplicateId {
        task: TaskId,
        /// Where it was written first.
        first: Place,
        /// Where it was written again.
        place: Place,
    },
    /// A subtask of a task that is not there.
    #[error("task `{task}` is a subtask of `{parent}`, which does not exist")]
    UnknownParent {
        task: TaskId,
        /// The name that means nothing.
        parent: TaskId,
        /// Where the subtask was written.
        place: Place,
    },
    /// A task said to be done by its subtasks, of which there are none.
    #[error("task `{task}` is expanded but has no subtasks, so it would never be worked on")]
    ExpandedWithoutSubtasks {
        task: TaskId,
        /// Where it was written.
        place: Place,
    },
}

impl Problem {
    /// Where it is.
    pub fn place(&self) -> Place {
        match self {
            Self::Cycle { place, .. }
            | Self::UnknownDependency { place, .. }
            | Self::SelfDependency { place, .. }
            | Self::DuplicateId { place, .. }
            | Self::UnknownParent { place, .. }
            | Self::ExpandedWithoutSubtasks { place, .. } => *place,
        }
    }

    /// Whether work may start in spite of it.
    pub fn severity(&self) -> Severity {
        match self {
            Self::ExpandedWithoutSubtasks { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

fn cycle(path: &[TaskId], tangled: usize) -> String {
    let ring: Vec<&str> = path
        .iter()
        .chain(path.first())
        .map(TaskId::as_str)
        .collect();
    match tangled - path.len() {
        0 => ring.join(" → "),
        more => format!(
            "{} ({more} more tasks in overlapping cycles)",
            ring.join(" → ")
        ),
    }
}
