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

/// The tasks of a tag, while the rows that say more about them are read.
pub(super) struct Rows<'r, 'a> {
    pub(super) index: &'r Index<'a>,
    pub(super) tasks: &'r mut [ScudTask],
    pub(super) findings: &'r mut Vec<Finding>,
}

impl Rows<'_, '_> {
    fn warn(&mut self, line: u32, message: String) {
        let finding = Finding::warning(Place::line(line), message);
        self.findings.push(finding);
    }

    /// The task of that id, or a warning that SCUD drops what is said about it.
    fn find(&mut self, id: &str, what: &str, line: u32) -> Option<usize> {
        let found = self.index.get(id);
        if found.is_none() {
            let message = format!("SCUD drops this {what}: there is no task `{id}`");
            self.warn(line, message);
        }
        found
    }

    pub(super) fn take_edge(&mut self, row: &str, line: u32) {
        let Some((dependent, dependency)) = row.split_once("->") else {
            return self.no_edge(row, Place::line(line));
        };
        if let Some(task) = self.find(dependent.trim(), "edge", line) {
            let id = dependency.trim().to_owned();
            let dependencies = &mut self.tasks[task].dependencies;
            dependencies.push(ScudDependency { id, line });
        }
    }

    fn no_edge(&mut self, row: &str, place: Place) {
        let behaviour = ["~~", ">>", "!="].iter().any(|mark| row.contains(mark));
        self.findings.push(match behaviour {
            true => Finding::note(
                place,
                "SCUD drops this edge when it writes the file, and it does not affect the order",
            ),
            false => {
                let message = format!("SCUD drops this row: `{row}` is not an edge");
                Finding::warning(place, message).hint("write dependent -> dependency")
            }
        });
    }

    pub(super) fn take_parent(&mut self, row: &str, line: u32) {
        let index = self.index;
        let Some((parent, children)) = split_parent(row, |id| index.get(id).is_some()) else {
            let message = format!("SCUD drops this row: `{row}` does not name a parent");
            let finding = Finding::warning(Place::line(line), message);
            return self
                .findings
                .push(finding.hint("write parent: subtask, subtask"));
        };
        let Some(whole) = self.find(parent, "row", line) else {
            return;
        };
        if parent.contains(':') {
            let message = format!(
                "SCUD loses these subtasks: it cuts off the parent `{parent}` at its first colon"
            );
            self.warn(line, message);
        }
        let children = children.split(',').map(str::trim);
        for child in children.filter(|child| !child.is_empty()) {
            self.take_child((parent, whole), child, line);
        }
    }

    fn take_child(&mut self, (parent, whole): (&str, usize), child: &str, line: u32) {
        let Some(part) = self.index.get(child) else {
            return self.warn(line, format!("there is no subtask `{child}`"));
        };
        match &self.tasks[part].parent {
            Some(other) if other != parent => {
                let message = format!("`{child}` is already a subtask of `{other}`");
                self.findings
                    .push(Finding::error(Place::line(line), message));
            }
            _ => {
                self.tasks[part].parent = Some(parent.to_owned());
                self.tasks[whole].subtasks.push(child.to_owned());
            }
        }
    }

    pub(super) fn take_text(&mut self, text: ScgText<'_>) {
        let Some(task) = self.find(text.id, "text", text.line) else {
            return;
        };
        let whole = text.lines.join("\n");
        let task = &mut self.tasks[task];
        match text.field {
            "description" => task.description = whole,
            "details" => task.details = Some(whole),
            "test_strategy" => task.test_strategy = Some(whole),
            other => {
                task.notes.push((other.to_owned(), whole));
                let message = format!("SCUD drops the text `{other}` when it writes the file");
                self.warn(text.line, message);
            }
        }
    }

    pub(super) fn take_name(&mut self, row: &str, line: u32, set: fn(&mut ScudTask, String)) {
        let mut found = cells(row).map(|(cell, _)| cell);
        let (id, name) = (found.next().unwrap_or_default(), found.next());
        if let Some(task) = self.find(id, "row", line)
            && let Some(name) = name.filter(|name| !name.is_empty())
        {
            set(&mut self.tasks[task], name.to_owned());
        }
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
