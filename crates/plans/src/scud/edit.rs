//! A change of status: one cell, the time of the change, and nothing else.

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use thiserror::Error;

use crate::graph::TaskStatus;
use descartes_text::finding::nearest;

/// A task file with a status changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScudEdit {
    /// The whole file; all bytes outside the changed cells and the time are those of the old one.
    pub new_text: String,
    /// The cells that were changed: the task's, then those of the parents that this completed.
    /// None where the file already says so; then it is not changed at all.
    pub changes: Vec<CellChange>,
}

/// One status that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellChange {
    pub id: String,
    /// The line that its status stands on.
    pub line: u32,
    /// What it was.
    pub from: TaskStatus,
    /// What it is now.
    pub to: TaskStatus,
}

/// Why a status was not changed; the file is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The file has no such tag.
    #[error("there is no tag `{tag}`; {}", known_tags(.known))]
    UnknownTag {
        /// The tag asked for.
        tag: String,
        /// The tags that there are.
        known: Vec<String>,
    },
    /// The tag has no such task.
    #[error("tag `{tag}` has no task `{id}`{}", did_you_mean(.near))]
    UnknownTask {
        tag: String,
        /// The task asked for.
        id: String,
        /// The nearest id that there is.
        near: Option<String>,
    },
    /// The id or tag stands in the file more than once.
    #[error("`{id}` appears twice in the file, on lines {first} and {second}; rename one of them")]
    Twice {
        /// The id or tag.
        id: String,
        /// Where it stands first.
        first: u32,
        /// Where it stands again.
        second: u32,
    },
    /// Somebody else changed the status.
    #[error("task `{id}` is {found}, not {expected}: someone else changed it")]
    Changed {
        id: String,
        /// What was expected.
        expected: TaskStatus,
        /// What the file says.
        found: TaskStatus,
    },
    /// The file cannot be read.
    #[error("line {line}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        message: String,
    },
}

fn known_tags(known: &[String]) -> String {
    match known {
        [] => "the file has no tags".to_owned(),
        known => format!("known tags: {}", known.join(", ")),
    }
}

fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

impl EditError {
    pub(super) fn unknown_task<'a>(
        tag: &str,
        id: &str,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let near = nearest(id, ids).map(str::to_owned);
        Self::UnknownTask {
            tag: tag.to_owned(),
            id: id.to_owned(),
            near,
        }
    }
}

/// What is to be changed.
pub(super) struct Wish<'a> {
    pub(super) tag: &'a str,
    pub(super) id: &'a str,
    pub(super) expected: Option<TaskStatus>,
    pub(super) new: TaskStatus,
    pub(super) now: Timestamp,
}

impl Wish<'_> {
    pub(super) fn check(&self, found: TaskStatus) -> Result<(), EditError> {
        match self.expected {
            Some(expected) if expected != found => Err(EditError::Changed {
                id: self.id.to_owned(),
                expected,
                found,
            }),
            _ => Ok(()),
        }
    }

    /// The time in the way SCUD writes it, or ending in `Z` where the old value did.
    pub(super) fn time_like(&self, old: &str) -> String {
        let zone = if old.trim_end().ends_with('Z') {
            "Z"
        } else {
            "+00:00"
        };
        format!("{}{zone}", self.now.strftime("%Y-%m-%dT%H:%M:%S%.9f"))
    }
}

/// A row of the file as far as an edit needs it.
pub(super) struct Cell<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) line: u32,
    pub(super) status: TaskStatus,
    pub(super) parent: Option<usize>,
}

/// The task that is to be changed.
pub(super) fn find_task(cells: &[Cell<'_>], wish: &Wish<'_>) -> Result<usize, EditError> {
    let mut all = (0..cells.len()).filter(|slot| cells[*slot].id == wish.id);
    match (all.next(), all.next()) {
        (Some(task), None) => Ok(task),
        (Some(one), Some(two)) => {
            let (first, second) = (cells[one].line, cells[two].line);
            Err(EditError::Twice {
                id: wish.id.to_owned(),
                first,
                second,
            })
        }
        (None, _) => {
            let ids = cells.iter().map(|cell| &*cell.id);
            Err(EditError::unknown_task(wish.tag, wish.id, ids))
        }
    }
}

/// Changes the task, and the parents that it completes, innermost first; answers with what differs.
pub(super) fn cascade(
    cells: &mut [Cell<'_>],
    task: usize,
    new: TaskStatus,
) -> Vec<(usize, CellChange)> {
    let mut changes = Vec::new();
    let mut next = Some(task);
    while let Some(slot) = next {
        let from = std::mem::replace(&mut cells[slot].status, new);
        if from != new {
            let (id, line) = (cells[slot].id.clone().into_owned(), cells[slot].line);
            changes.push((
                slot,
                CellChange {
                    id,
                    line,
                    from,
                    to: new,
                },
            ));
        }
        next = cells[slot]
            .parent
            .filter(|parent| new == TaskStatus::Done && completes(cells, *parent));
    }
    changes
}

/// Whether an open task has nothing left but done subtasks.
fn completes(cells: &[Cell<'_>], parent: usize) -> bool {
    let open = matches!(
        cells[parent].status,
        TaskStatus::Expanded | TaskStatus::Pending | TaskStatus::InProgress
    );
    let mut parts = cells.iter().filter(|cell| cell.parent == Some(parent));
    open && parts.all(|part| part.status == TaskStatus::Done)
}

/// The text with each range replaced; ranges do not overlap.
pub(super) fn splice(text: &str, mut patches: Vec<(Range<usize>, String)>) -> String {
    patches.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (range, new) in patches {
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}
