//! Changes a status in a graph file.

use std::ops::Range;

use super::edit::{Cell, EditError, ScudEdit, Wish, cascade, find_task, splice};
use super::rows::{status_letter, status_of_cell};
use super::scan::{Scanner, ScgItem, Section, cells, split_parent};
use crate::graph::hash::NameMap;

/// What an edit needs to know of one tag's part.
#[derive(Default)]
struct TagPart<'a> {
    tag: &'a str,
    line: u32,
    cells: Vec<Cell<'a>>,
    places: Vec<Range<usize>>,
    parents: Vec<&'a str>,
    updated: Option<(Range<usize>, &'a str)>,
}

pub(super) fn set_status(text: &str, wish: &Wish<'_>) -> Result<ScudEdit, EditError> {
    let mut part = find_tag(text, wish.tag)?;
    let task = find_task(&part.cells, wish)?;
    wish.check(part.cells[task].status)?;
    let family = std::mem::take(&mut part.parents);
    if !family.is_empty() {
        link(&mut part.cells, &family);
    }
    let changes = cascade(&mut part.cells, task, wish.new);
    let mut patches: Vec<(Range<usize>, String)> = changes
        .iter()
        .map(|(slot, change)| {
            (
                part.places[*slot].clone(),
                status_letter(change.to).to_owned(),
            )
        })
        .collect();
    if let Some((place, old)) = part.updated.filter(|_| !changes.is_empty()) {
        patches.push((place, wish.time_like(old)));
    }
    let changes = changes.into_iter().map(|(_, change)| change).collect();
    Ok(ScudEdit {
        new_text: splice(text, patches),
        changes,
    })
}

fn find_tag<'a>(text: &'a str, tag: &str) -> Result<TagPart<'a>, EditError> {
    let mut known = Vec::new();
    let mut found: Option<TagPart<'a>> = None;
    for part in parts(text)? {
        if part.tag != tag {
            known.push(part.tag.to_owned());
        } else if let Some(first) = &found {
            let (first, second) = (first.line, part.line);
            return Err(EditError::Twice {
                id: tag.to_owned(),
                first,
                second,
            });
        } else {
            found = Some(part);
        }
    }
    found.ok_or_else(|| EditError::UnknownTag {
        tag: tag.to_owned(),
        known,
    })
}

fn parts(text: &str) -> Result<Vec<TagPart<'_>>, EditError> {
    let mut parts: Vec<TagPart<'_>> = Vec::new();
    for line in Scanner::new(text) {
        match (line.item, parts.last_mut()) {
            (ScgItem::Phase, _) => parts.push(TagPart::default()),
            (ScgItem::Stray(_), _) | (_, None) => {
                let message = "this is not a SCUD graph, or its beginning is missing".to_owned();
                return Err(EditError::Unreadable {
                    line: line.number,
                    message,
                });
            }
            (ScgItem::Tag(tag), Some(part)) => (part.tag, part.line) = (tag, line.number),
            (ScgItem::Row(Section::Meta, row), Some(part)) => part.meta(row, line.start),
            (ScgItem::Row(Section::Nodes, row), Some(part)) => {
                part.node(row, line.start, line.number)
            }
            (ScgItem::Row(Section::Parents, row), Some(part)) => part.parents.push(row),
            _ => {}
        }
    }
    Ok(parts)
}

impl<'a> TagPart<'a> {
    fn meta(&mut self, row: &'a str, start: usize) {
        let Some((key, value)) = row.split_once(char::is_whitespace) else {
            return;
        };
        let value = value.trim_start();
        match key {
            "name" => self.tag = value,
            "updated" => {
                let begin = start + row.len() - value.len();
                self.updated = Some((begin..begin + value.len(), value));
            }
            _ => {}
        }
    }

    fn node(&mut self, row: &'a str, start: usize, line: u32) {
        let mut found = cells(row);
        let (id, _, status) = (found.next(), found.next(), found.next());
        // A row without all five cells is no task for SCUD, and none for the reader here.
        let (Some((id, _)), Some((status, place)), Some(_)) = (id, status, found.nth(1)) else {
            return;
        };
        let status = status_of_cell(status).unwrap_or_default();
        self.cells.push(Cell {
            id: id.into(),
            line,
            status,
            parent: None,
        });
        self.places.push(start + place.start..start + place.end);
    }
}

fn link(cells: &mut [Cell<'_>], parents: &[&str]) {
    let slots: NameMap<&str, usize> = cells
        .iter()
        .enumerate()
        .map(|(slot, cell)| (&*cell.id, slot))
        .collect();
    let mut family = Vec::new();
    for row in parents {
        let Some((parent, children)) = split_parent(row, |id| slots.contains_key(id)) else {
            continue;
        };
        let Some(whole) = slots.get(parent) else {
            continue;
        };
        let parts = children
            .split(',')
            .filter_map(|child| slots.get(child.trim()));
        family.extend(parts.map(|part| (*part, *whole)));
    }
    for (part, whole) in family {
        cells[part].parent.get_or_insert(whole);
    }
}
