//! Rows of a graph file: edges, families, texts, and the cells of a task.

use std::cell::Cell;

use super::model::{ScudDependency, ScudTask};
use super::scan::{cells, split_parent};
use super::scg_text::ScgText;
use crate::graph::hash::NameMap;
use crate::graph::{Priority, TaskStatus};
use descartes_text::finding::{Finding, Place};

/// Where each task of the tag stands in the list; of two with one id, any.
#[derive(Default)]
pub(super) struct Index<'a> {
    ids: Vec<&'a str>,
    slots: NameMap<&'a str, usize>,
    /// What was found last: edges and texts mostly come in the order of the tasks, and a long
    /// list is quicker to follow than a large table.
    last: Cell<usize>,
}

impl<'a> Index<'a> {
    pub(super) fn push(&mut self, id: &'a str) {
        self.slots.insert(id, self.ids.len());
        self.ids.push(id);
    }

    fn get(&self, id: &str) -> Option<usize> {
        let last = self.last.get();
        let near = [last, last + 1];
        let near = near
            .into_iter()
            .find(|slot| self.ids.get(*slot) == Some(&id));
        let found = near.or_else(|| self.slots.get(id).copied())?;
        self.last.set(found);
        Some(found)
    }
}

pub(super) fn take_edge(
    row: &str,
    line: u32,
    index: &Index<'_>,
    tasks: &mut [ScudTask],
    findings: &mut Vec<Finding>,
) {
    let place = Place::line(line);
    let Some((dependent, dependency)) = row.split_once("->") else {
        let behaviour = ["~~", ">>", "!="].iter().any(|mark| row.contains(mark));
        findings.push(match behaviour {
            true => Finding::note(
                place,
                "SCUD drops this edge when it writes the file, and it does not affect the order",
            ),
            false => Finding::warning(
                place,
                format!("SCUD drops this row: `{row}` is not an edge"),
            )
            .hint("write dependent -> dependency"),
        });
        return;
    };
    match index.get(dependent.trim()) {
        Some(task) => {
            let id = dependency.trim().to_owned();
            tasks[task].dependencies.push(ScudDependency { id, line });
        }
        None => findings.push(Finding::warning(
            place,
            format!(
                "SCUD drops this edge: there is no task `{}`",
                dependent.trim()
            ),
        )),
    }
}

pub(super) fn take_parent(
    row: &str,
    line: u32,
    index: &Index<'_>,
    tasks: &mut [ScudTask],
    findings: &mut Vec<Finding>,
) {
    let place = Place::line(line);
    let Some((parent, children)) = split_parent(row, |id| index.get(id).is_some()) else {
        findings.push(
            Finding::warning(
                place,
                format!("SCUD drops this row: `{row}` does not name a parent"),
            )
            .hint("write parent: subtask, subtask"),
        );
        return;
    };
    let Some(whole) = index.get(parent) else {
        findings.push(Finding::warning(
            place,
            format!("SCUD drops this row: there is no task `{parent}`"),
        ));
        return;
    };
    if parent.contains(':') {
        findings.push(Finding::warning(
            place,
            format!(
                "SCUD loses these subtasks: it cuts off the parent `{parent}` at its first colon"
            ),
        ));
    }
    for child in children
        .split(',')
        .map(str::trim)
        .filter(|child| !child.is_empty())
    {
        let Some(part) = index.get(child) else {
            findings.push(Finding::warning(
                place,
                format!("there is no subtask `{child}`"),
            ));
            continue;
        };
        match &tasks[part].parent {
            Some(other) if other != parent => {
                findings.push(Finding::error(
                    place,
                    format!("`{child}` is already a subtask of `{other}`"),
                ));
            }
            _ => {
                tasks[part].parent = Some(parent.to_owned());
                tasks[whole].subtasks.push(child.to_owned());
            }
        }
    }
}

pub(super) fn take_text(
    text: ScgText<'_>,
    index: &Index<'_>,
    tasks: &mut [ScudTask],
    findings: &mut Vec<Finding>,
) {
    let place = Place::line(text.line);
    let Some(task) = index.get(text.id) else {
        findings.push(Finding::warning(
            place,
            format!("SCUD drops this text: there is no task `{}`", text.id),
        ));
        return;
    };
    let task = &mut tasks[task];
    let whole = text.lines.join("\n");
    match text.field {
        "description" => task.description = whole,
        "details" => task.details = Some(whole),
        "test_strategy" => task.test_strategy = Some(whole),
        other => {
            findings.push(Finding::warning(
                place,
                format!("SCUD drops the text `{other}` when it writes the file"),
            ));
            task.notes.push((other.to_owned(), whole));
        }
    }
}

pub(super) fn take_name(
    row: &str,
    line: u32,
    index: &Index<'_>,
    tasks: &mut [ScudTask],
    findings: &mut Vec<Finding>,
    set: impl Fn(&mut ScudTask, String),
) {
    let mut found = cells(row).map(|(cell, _)| cell);
    let (id, name) = (
        found.next().unwrap_or_default(),
        found.next().unwrap_or_default(),
    );
    match index.get(id) {
        Some(task) if !name.is_empty() => set(&mut tasks[task], name.to_owned()),
        Some(_) => {}
        None => findings.push(Finding::warning(
            Place::line(line),
            format!("SCUD drops this row: there is no task `{id}`"),
        )),
    }
}

/// The letter of a status.
pub(super) const fn status_letter(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "P",
        TaskStatus::InProgress => "I",
        TaskStatus::Done => "D",
        TaskStatus::Review => "R",
        TaskStatus::Blocked => "B",
        TaskStatus::Deferred => "F",
        TaskStatus::Cancelled => "C",
        TaskStatus::Expanded => "X",
        TaskStatus::Failed => "!",
    }
}

/// The status of a cell, which SCUD reads by its first letter; anything else is pending.
pub(super) fn status_of_cell(cell: &str) -> Option<TaskStatus> {
    let letter = cell.get(..1)?;
    TaskStatus::ALL
        .into_iter()
        .find(|status| status_letter(*status) == letter)
}

pub(super) fn read_status(cell: &str, line: u32, findings: &mut Vec<Finding>) -> TaskStatus {
    status_of_cell(cell).unwrap_or_else(|| {
        let message = format!("`{cell}` is not a status: SCUD reads it as pending");
        findings.push(
            Finding::warning(Place::line(line), message).hint("write one of P I D R B F C X !"),
        );
        TaskStatus::Pending
    })
}

pub(super) fn read_complexity(cell: &str, line: u32, findings: &mut Vec<Finding>) -> u32 {
    cell.parse().unwrap_or_else(|_| {
        let message = format!("`{cell}` is not a complexity: SCUD reads it as 0");
        findings.push(Finding::warning(Place::line(line), message));
        0
    })
}

pub(super) fn read_priority(cell: &str, line: u32, findings: &mut Vec<Finding>) -> Priority {
    match cell.get(..1) {
        Some("C") => Priority::Critical,
        Some("H") => Priority::High,
        Some("M") => Priority::Medium,
        Some("L") => Priority::Low,
        _ => {
            let message = format!("`{cell}` is not a priority: SCUD reads it as medium");
            findings
                .push(Finding::warning(Place::line(line), message).hint("write one of C H M L"));
            Priority::Medium
        }
    }
}
