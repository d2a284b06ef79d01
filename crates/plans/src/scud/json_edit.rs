//! Changes a status in an older task file, in the spelling that the file itself uses.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Form;
use super::edit::{Cell, EditError, ScudEdit, Wish, cascade, find_task, splice};
use super::json::{TagSpan, id_of, tag_of_file, tags_of_map};
use super::json_span::{LineCounter, Members, span};
use super::model::ScudError;
use crate::graph::TaskStatus;
use crate::graph::hash::NameMap;

/// Where a task's status and time stand.
struct StatusPlaces {
    status: ValuePlace,
    updated: Option<Range<usize>>,
}

/// The place of a value, or the place where it can be added.
enum ValuePlace {
    Value(Range<usize>),
    /// Just behind the brace that opens the task.
    Missing(usize),
}

pub(super) fn set_status(text: &str, form: &Form, wish: &Wish<'_>) -> Result<ScudEdit, EditError> {
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
            ValuePlace::Value(span) => (span.clone(), format!("\"{word}\"")),
            ValuePlace::Missing(at) => (*at..*at, format!("\"status\": \"{word}\", ")),
        });
        if let Some(span) = &places[*slot].updated {
            let old = text[span.clone()].trim_matches('"');
            patches.push((span.clone(), format!("\"{}\"", wish.time_like(old))));
        }
    }
    let changes = changes.into_iter().map(|(_, change)| change).collect();
    Ok(ScudEdit {
        new_text: splice(text, patches),
        changes,
    })
}

fn find_tag<'a>(text: &'a str, form: &Form, tag: &str) -> Result<TagSpan<'a>, EditError> {
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

type Cells<'a> = (Vec<Cell<'a>>, Vec<StatusPlaces>);

fn read_cells<'a>(text: &'a str, tag: &TagSpan<'a>) -> Result<Cells<'a>, EditError> {
    let mut cells = Vec::with_capacity(tag.tasks.len());
    let mut places = Vec::with_capacity(tag.tasks.len());
    let mut family = Vec::new();
    let mut counter = LineCounter::new(text);
    for task in &tag.tasks {
        let start = span(text, task).start;
        let line = counter.line_at(start);
        let members = Members::of(task).ok_or_else(|| EditError::Unreadable {
            line,
            message: "expected a task".to_owned(),
        })?;
        let plain = |name| members.get(name).and_then(plain);
        let Some(id) = plain("id") else {
            continue;
        };
        let whole = plain("parent_id");
        family.extend(whole.map(|whole| (id.to_string(), whole.into_owned())));
        let parts: Vec<Value> = members
            .get("subtasks")
            .and_then(|list| serde_json::from_str(list.get()).ok())
            .unwrap_or_default();
        let parts = parts.iter().filter_map(id_of);
        family.extend(parts.map(|part| (part, id.to_string())));
        let status = plain("status").and_then(|word| TaskStatus::from_word(&word));
        cells.push(Cell {
            id,
            line,
            status: status.unwrap_or_default(),
            parent: None,
        });
        let place = |name| members.get(name).map(|value| span(text, value));
        places.push(StatusPlaces {
            status: place("status").map_or(ValuePlace::Missing(start + 1), ValuePlace::Value),
            updated: place("updated_at").filter(|place| text[place.start..].starts_with('"')),
        });
    }
    if !family.is_empty() {
        link(&mut cells, &family);
    }
    Ok((cells, places))
}

/// A string or number as text; most are as they stand in the file.
fn plain(value: &RawValue) -> Option<Cow<'_, str>> {
    let raw = value.get();
    let inner = raw
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'));
    match inner {
        Some("") => None,
        Some(inner) if !inner.contains('\\') => Some(Cow::Borrowed(inner)),
        None if raw.starts_with(|c: char| c.is_ascii_digit()) => Some(Cow::Borrowed(raw)),
        _ => serde_json::from_str(raw)
            .ok()
            .as_ref()
            .and_then(id_of)
            .map(Cow::Owned),
    }
}

fn link(cells: &mut [Cell<'_>], family: &[(String, String)]) {
    let slots: NameMap<String, usize> = cells
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

/// How a file spells its statuses: older ones wrote `completed` and `in_progress`.
#[derive(Default)]
struct Spelling {
    completed: bool,
    underscore: bool,
}

impl Spelling {
    fn of(text: &str, places: &[StatusPlaces]) -> Self {
        let mut spelling = Self::default();
        for place in places {
            if let ValuePlace::Value(span) = &place.status {
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
            other => other.as_str(),
        }
    }
}
