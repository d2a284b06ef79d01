//! A plan as lines of text, understandable without colour.

use std::fmt::Write;

use super::status_of;
use crate::graph::{Plan, TaskIx, TaskStatus};
use descartes_text::units::{plural, shorten};

/// Waves with their tasks, one a line.
pub fn text(plan: &Plan, statuses: &[TaskStatus]) -> String {
    let mut out = String::new();
    let waves = plan.waves();
    let graph = plan.graph();
    let width = graph
        .nodes()
        .iter()
        .map(|node| node.id.chars().count())
        .max()
        .unwrap_or(0);
    for (number, wave) in waves.iter().enumerate() {
        let done = wave
            .iter()
            .filter(|task| status_of(plan, statuses, **task) == TaskStatus::Done);
        let (done, total) = (done.count(), wave.len());
        let head = format!(
            "wave {} of {}: {done} of {} done",
            number + 1,
            waves.len(),
            plural(total as u64, "task")
        );
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{head}");
        for task in wave {
            let _ = writeln!(out, "{}", line(plan, statuses, *task, width.min(24)));
        }
    }
    if waves.is_empty() {
        out.push_str("no tasks\n");
    }
    out
}

fn line(plan: &Plan, statuses: &[TaskStatus], task: TaskIx, width: usize) -> String {
    let graph = plan.graph();
    let node = graph.node(task);
    let status = status_of(plan, statuses, task);
    let before: Vec<&str> = graph
        .all_dependencies(task)
        .iter()
        .map(|dep| graph.node(*dep).id.as_str())
        .collect();
    let after = match before.len() {
        0 => String::new(),
        1..=6 => format!("  after {}", before.join(", ")),
        more => format!("  after {} and {} more", before[..5].join(", "), more - 5),
    };
    let mark = mark(status);
    format!(
        "  {mark} {:<width$}  {}  [{status}]{after}",
        node.id.as_str(),
        shorten(&node.title, 60)
    )
}

fn mark(status: TaskStatus) -> char {
    match status {
        TaskStatus::Pending => '·',
        TaskStatus::InProgress => '▶',
        TaskStatus::Done => '✓',
        TaskStatus::Review => '?',
        TaskStatus::Blocked | TaskStatus::Failed => '✗',
        TaskStatus::Deferred | TaskStatus::Cancelled => '-',
        TaskStatus::Expanded => '+',
    }
}
