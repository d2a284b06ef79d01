//! How a task is marked by its status.

use descartes_plans::graph::TaskStatus;

use crate::style::Tone;
use crate::watch::theme::Theme;

/// The mark and the tone of a task.
pub fn mark(status: TaskStatus, theme: &Theme) -> (Tone, &'static str) {
    match status {
        TaskStatus::Done => (Tone::Good, theme.marks.done),
        TaskStatus::InProgress => (Tone::Strong, theme.marks.running),
        TaskStatus::Blocked | TaskStatus::Failed => (Tone::Bad, theme.marks.failed),
        TaskStatus::Review => (Tone::Warn, "?"),
        TaskStatus::Pending => (Tone::Normal, theme.marks.pending),
        TaskStatus::Deferred | TaskStatus::Cancelled => (Tone::Dim, "-"),
        TaskStatus::Expanded => (Tone::Dim, "+"),
    }
}
