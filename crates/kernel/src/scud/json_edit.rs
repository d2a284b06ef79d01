//! Changes a status in an older task file, in the spelling that the file itself uses.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::Form;
use super::edit::{Cell, Edit, EditError, Wish, cascade, splice};
use super::json::{TagSpan, id_of, tag_of_file, tags_of_map};
use super::json_span::{Span, member, members};
use super::model::ScudError;
use crate::graph::TaskStatus;

/// Where a task's status and time stand.
struct Places {
    status: Slot,
    updated: Option<Span>,
}

/// The place of a value, or the place where it can be added.
enum Slot {
    Value(Span),
    /// Just behind the brace that opens the task.
    Missing(usize),
}

pub(super) fn set_status(text: &str, form: &Form, wish: &Wish<'_>) -> Result<Edit, EditError> {
    let tag = find_tag(text, form, wish.tag)?;
    let (mut cells, places) = read_cells(text, &tag)?;
    let task = find_task(&cells, wish)?;
    wish.check(cells[task].status)?;
    let spelling = Spelling::of(text, &places);
    let changes = cascade(&mut cells, task, wish.new);
    let mut patches: Vec<(Range<usize>, String)> = Vec::new();
    for (slot, change) in &changes {
        let word = spelling.word(change.to);
        patches.push(match &places[*slot].status {
            Slot::Value(span) => (span.clone(), format!("\"{word}\"")),
            Slot::Missing(at) => (*at..*at, format!("\"status\": \"{word}\", ")),
        });
        if let Some(span) = &places[*slot].updated {
            let old = text[span.clone()].trim_matches('"');
            patches.push((span.clone(), format!("\"{}\"", wish.time_like(old))));
        }
    }
    let changes = changes.into_iter().map(|(_, change)| change).collect();
    Ok(Edit {
        new_text: splice(text, patches),
        changes,
    })
}

fn find_tag(text: &str, form: &Form, tag: &str) -> Result<TagSpan, EditError> {
    let unreadable = |ScudError { line, message }| EditError::Unreadable { line, message };
    let tags = match form {
        Form::OneTag { tag } => vec![tag_of_file(text, tag).map_err(unreadable)?],
        _ => tags_of_map(text).map_err(unreadable)?,
    };
    let known = tags.iter().map(|span| span.name.clone()).collect();
    let found = tags.into_iter().rev().find(|span| span.name == tag);
    found.ok_or_else(|| EditError::UnknownTag {
        tag: tag.to_owned(),
        known,
    })
}

type Cells<'a> = (Vec<Cell<'a>>, Vec<Places>);

fn read_cells<'a>(text: &'a str, tag: &TagSpan) -> Result<Cells<'a>, EditError> {
    let mut cells = Vec::with_capacity(tag.tasks.len());
    let mut places = Vec::with_capacity(tag.tasks.len());
    let mut family = Vec::new();
    let mut lines = (0_usize, 1_u32);
    for span in &tag.tasks {
        let between = &text.as_bytes()[lines.0..span.start];
        let line = lines.1 + memchr::memchr_iter(b'\n', between).count() as u32;
        lines = (span.start, line);
        let broken = |_| EditError::Unreadable {
            line,
            message: "expected a task".to_owned(),
        };
        let entries = members(text, span.clone()).map_err(broken)?;
        let value = |name: &str| -> Option<Value> {
            serde_json::from_str(&text[member(text, &entries, name)?]).ok()
        };
        let Some(id) = value("id").as_ref().and_then(id_of) else {
            continue;
        };
        let word = value("status");
        let status = word
            .as_ref()
            .and_then(Value::as_str)
            .and_then(TaskStatus::from_word);
        let whole = value("parent_id").as_ref().and_then(id_of);
        family.extend(whole.map(|whole| (id.clone(), whole)));
        let parts = value("subtasks").and_then(|list| Some(list.as_array()?.clone()));
        let parts = parts.unwrap_or_default();
        family.extend(
            parts
                .iter()
                .filter_map(id_of)
                .map(|part| (part, id.clone())),
        );
        cells.push(Cell {
            id: id.into(),
            line,
            status: status.unwrap_or_default(),
            parent: None,
        });
        let slot = member(text, &entries, "status");
        places.push(Places {
            status: slot.map_or(Slot::Missing(span.start + 1), Slot::Value),
            updated: member(text, &entries, "updated_at")
                .filter(|span| text.as_bytes()[span.start] == b'"'),
        });
    }
    link(&mut cells, &family);
    Ok((cells, places))
}

fn link(cells: &mut [Cell<'_>], family: &[(String, String)]) {
    let slots: HashMap<String, usize> = cells
        .iter()
        .enumerate()
        .map(|(slot, cell)| (cell.id.to_string(), slot))
        .collect();
    for (part, whole) in family {
        if let (Some(part), Some(whole)) = (slots.get(part), slots.get(whole)) {
            cells[*part].parent.get_or_insert(*whole);
        }
    }
}

fn find_task(cells: &[Cell<'_>], wish: &Wish<'_>) -> Result<usize, EditError> {
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

/// How a file spells its statuses: older ones wrote `completed` and `in_progress`.
#[derive(Default)]
struct Spelling {
    completed: bool,
    underscore: bool,
}

impl Spelling {
    fn of(text: &str, places: &[Places]) -> Self {
        let mut spelling = Self::default();
        for place in places {
            if let Slot::Value(span) = &place.status {
                let word = &text[span.clone()];
                spelling.completed |= word == "\"completed\"";
                spelling.underscore |= word == "\"in_progress\"";
            }
        }
        spelling
    }

    fn word(&self, status: TaskStatus) -> &'static str {
        match status {
            TaskStatus::Done if self.completed => "completed",
            TaskStatus::InProgress if self.underscore => "in_progress",
            other => other.word(),
        }
    }
}
