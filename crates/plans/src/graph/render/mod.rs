//! Pictures of a plan: text, Mermaid, SVG.
//!
//! Each takes the status of every task (by position in the graph), so that the same picture
//! serves a file at rest ([`Plan::effective_statuses`](super::Plan::effective_statuses)) and a
//! loop at work.

mod mermaid;
mod text;

pub use mermaid::{arrows, drawn_joints, mermaid};
pub use text::text;

use super::{Plan, TaskIx, TaskStatus};

/// The status of a task; one that was not given is the file's.
pub fn status_of(plan: &Plan, statuses: &[TaskStatus], task: TaskIx) -> TaskStatus {
    statuses
        .get(task as usize)
        .copied()
        .unwrap_or(plan.graph().node(task).status)
}

/// Fill colours by status, readable under black text.
fn colour(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "#e8eaed",
        TaskStatus::InProgress => "#a8c7fa",
        TaskStatus::Done => "#a8dab5",
        TaskStatus::Review => "#fde293",
        TaskStatus::Blocked => "#f6aea9",
        TaskStatus::Deferred => "#d7ccc8",
        TaskStatus::Cancelled => "#cfd8dc",
        TaskStatus::Expanded => "#d7aefb",
        TaskStatus::Failed => "#ee675c",
    }
}
