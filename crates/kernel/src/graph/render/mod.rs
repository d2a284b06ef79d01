//! Pictures of a plan: text, Mermaid, SVG.
//!
//! Each takes the status of every task (by position in the graph), so that the same picture
//! serves a file at rest ([`Plan::effective_statuses`](super::Plan::effective_statuses)) and a
//! loop at work.

mod mermaid;
mod text;

pub(crate) use mermaid::arrows;
pub use mermaid::mermaid;
pub use text::text;

use super::{Plan, TaskIx, TaskStatus};
use crate::picture::{self, Frame, GraphTask};

/// An image that needs nothing from outside; titles are escaped.
pub fn svg(plan: &Plan, statuses: &[TaskStatus]) -> String {
    let tasks = GraphTask::of_plan(plan, statuses);
    picture::svg(&picture::graph(&tasks), Frame::Document)
}

/// The status of a task; one that was not given is the file's.
pub(crate) fn status_of(plan: &Plan, statuses: &[TaskStatus], task: TaskIx) -> TaskStatus {
    statuses
        .get(task as usize)
        .copied()
        .unwrap_or(plan.graph().node(task).status)
}

/// At most `max` characters of a text, with an ellipsis where it was cut.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(max) {
        None => flat,
        Some(_) => {
            let keep: String = flat.chars().take(max.saturating_sub(1)).collect();
            format!("{}…", keep.trim_end())
        }
    }
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
