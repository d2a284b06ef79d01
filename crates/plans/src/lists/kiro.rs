//! `tasks.md` of Kiro and cc-sdd: numbered boxes, parents by number, waves or order.

use serde_json::Value;

use super::blocks::RunPart;
use super::boxes::{Document, Item};
use super::file_order::FileOrder;
use super::format::ListFormat;
use super::id_ranges::NamedIds;
use super::markdown::{UniqueIds, note_marks, task_of};
use super::model::{ListSection, TaskList};
use super::openspec::number_length;
use super::order::ListOrder;
use super::sequence::PlacedTask;
use super::spec_kit;
use crate::graph::hash::{NameMap, NameSet};
use crate::roadmap::is_dependency_graph;
use crate::roadmap::lines::LineKind;

pub(super) fn read(text: &str) -> TaskList {
    // The folder decides the order, and what stands there the ids.
    let mut doc = Document::read(text, |text| name(text).or_else(|| spec_kit::name(text)));
    let mut list = TaskList::new(ListFormat::Kiro);
    list.findings.clone_from(&doc.findings);
    let gone = doc.leave_out_struck(&mut list);
    note_marks(&doc, &mut list);
    let mut ids = UniqueIds::default();
    let mut rows = Vec::new();
    let has_number = |item: &Item<'_>| item.id.is_some() || item.checkbox.number.is_some();
    let has_numbers = doc.items.iter().any(has_number);
    for (at, item) in doc.items.iter().enumerate() {
        let line = item.checkbox.line;
        let counted = item.checkbox.number.map(str::to_owned);
        // Where nobody gave numbers, the place is the number.
        let counted =
            counted.or((!has_numbers && !item.title.is_empty()).then(|| (at + 1).to_string()));
        let Some(wanted) = &item.id.clone().or(counted) else {
            list.leave_out(line, item.checkbox.text, "it has no number");
            continue;
        };
        let id = ids.take(wanted, line, &mut list);
        let mut task = task_of(item, id, None);
        let parallel = take_parallel(&mut task.title);
        task.refers_to = listed(&item.body, "Requirements");
        rows.push(TaskFlags {
            parallel,
            named: listed(&item.body, "Depends"),
        });
        list.tasks.push(task);
    }
    set_parents(&mut list);
    if let Some(first) = doc.items.first() {
        list.introduction = doc.text_before(first.checkbox.line);
    }
    let mut order = ListOrder::without(&list, gone.into_iter().map(NamedIds::One));
    let named = rows.iter_mut().map(|row| std::mem::take(&mut row.named));
    let named = named.map(|ids| ids.into_iter().map(NamedIds::One).collect());
    order.name(&mut list, named);
    match waves(&doc) {
        Some(waves) => order_by_waves(&mut list, &mut order, &waves),
        None => {
            let placed = order.sequence(&mut list);
            order_by_file(&list, &mut order, &rows, &placed);
        }
    }
    order.finish(&mut list);
    list
}

struct TaskFlags {
    parallel: bool,
    named: Vec<String>,
}

/// `2.1 text`, `2. text`, `2 text` or `Task 2: text`.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let bare = text.trim_start_matches(['*', '_']);
    let bare = bare.strip_prefix("Task ").unwrap_or(bare);
    let length = number_length(bare)?;
    let rest = bare[length..].trim_start_matches(['*', '_', '.', ')', ':']);
    let is_name = rest.is_empty() || rest.starts_with([' ', '\t', '(']);
    is_name.then(|| (bare[..length].to_owned(), rest.trim_start()))
}

/// `(P)` directly behind the number, or at the end.
fn take_parallel(title: &mut String) -> bool {
    let bare = title.trim();
    let rest = bare
        .strip_prefix("(P)")
        .or_else(|| bare.strip_suffix("(P)"));
    match rest.map(|rest| rest.trim().to_owned()) {
        Some(rest) => {
            *title = rest;
            true
        }
        None => false,
    }
}

/// `_Requirements: 1.1, 1.2_`.
fn listed(body: &str, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in body.lines() {
        let line = line.trim().trim_start_matches(['-', '*', ' ']).trim();
        let inner = line.trim_matches('_');
        let Some(list) = inner
            .strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(':'))
        else {
            continue;
        };
        // `none (independent of 1.1)` names nothing.
        if list.trim_start().starts_with("none") {
            continue;
        }
        let ids = list.split([',', ' ', ';']).map(str::trim);
        let ids = ids.filter(|id| number_length(id) == Some(id.len()));
        found.extend(ids.map(str::to_owned));
    }
    found
}

/// A task whose number begins with another's is a part of it.
fn set_parents(list: &mut TaskList) {
    let places: NameMap<String, usize> = {
        let all = list.tasks.iter().enumerate();
        all.map(|(at, task)| (task.id.clone(), at)).collect()
    };
    for at in 0..list.tasks.len() {
        let id = list.tasks[at].id.clone();
        let Some(parent) = parent_of(&id, &places) else {
            continue;
        };
        let section = ListSection {
            id: list.tasks[parent].id.clone(),
            title: list.tasks[parent].title.clone(),
        };
        list.tasks[at].optional |= list.tasks[parent].optional;
        // A parent whose parts may all be left out is work itself, unless it may be left out with them.
        let is_left_out_with = list.tasks[parent].optional;
        list.tasks[parent].container |= is_left_out_with || !list.tasks[at].optional;
        let parent = list.tasks[parent].id.clone();
        let task = &mut list.tasks[at];
        task.parent = Some(parent);
        task.section = Some(section);
    }
    for task in &mut list.tasks {
        if task.section.is_none() {
            task.section = Some(ListSection {
                id: task.id.clone(),
                title: task.title.clone(),
            });
        }
    }
    // Only what is never run itself can hold parts.
    let real: NameSet<String> = {
        let containers = list.tasks.iter().filter(|task| task.container);
        containers.map(|task| task.id.clone()).collect()
    };
    for task in &mut list.tasks {
        task.parent = task.parent.take().filter(|parent| real.contains(parent));
        if task.container {
            task.human = None;
        }
    }
}

fn parent_of(id: &str, places: &NameMap<String, usize>) -> Option<usize> {
    let mut prefix = id;
    while let Some((shorter, _)) = prefix.rsplit_once('.') {
        if let Some(at) = places.get(shorter) {
            return Some(*at);
        }
        prefix = shorter;
    }
    None
}

/// The waves under `## Task Dependency Graph`, where they are JSON.
fn waves(doc: &Document<'_>) -> Option<Vec<Vec<String>>> {
    let at = doc
        .headings
        .iter()
        .position(|heading| is_dependency_graph(heading.text))?;
    let from = doc.headings[at];
    let mut next = doc.headings[at + 1..].iter();
    let next = next.find(|next| next.level <= from.level);
    let to = next.map_or(u32::MAX, |next| next.line);
    let inside = doc.lines.iter();
    let inside: Vec<_> = inside
        .filter(|line| line.number > from.line && line.number < to)
        .collect();
    let mut blocks = inside.split(|line| {
        let text = line.text.trim_start();
        line.kind != LineKind::Code || text.starts_with("```") || text.starts_with("~~~")
    });
    blocks.find_map(|block| {
        let json: Vec<&str> = block.iter().map(|line| line.text).collect();
        waves_in(&json.join("\n"))
    })
}

fn waves_in(json: &str) -> Option<Vec<Vec<String>>> {
    let value: Value = serde_json::from_str(json).ok()?;
    let waves = value.get("waves").unwrap_or(&value).as_array()?;
    let wave = |wave: &Value| {
        let tasks = wave.get("tasks").unwrap_or(wave).as_array()?;
        Some(tasks.iter().filter_map(id_of).collect())
    };
    waves.iter().map(wave).collect()
}

fn id_of(value: &Value) -> Option<String> {
    let id = match value {
        Value::String(id) => id.trim().trim_end_matches('.').to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(id)
}

/// Tasks of a wave wait for the wave before; a task outside the graph for all before it in the file.
fn order_by_waves(list: &mut TaskList, order: &mut ListOrder, waves: &[Vec<String>]) {
    let leaves = leaves(list);
    let mut placed = vec![false; list.tasks.len()];
    let mut before = RunPart::default();
    for wave in waves {
        let mut here: Vec<u32> = Vec::new();
        for id in wave {
            let Some(leaves) = leaves.get(id.as_str()) else {
                if order.is_gone(id) {
                    continue;
                }
                let message =
                    format!("the dependency graph names `{id}`, which is not in the list");
                list.warn(0, message);
                continue;
            };
            // The parts of a parent one after the other.
            let mut inside = FileOrder::after(before.clone());
            let mut last = None;
            for at in leaves.iter().copied() {
                if std::mem::replace(&mut placed[at], true) {
                    continue;
                }
                order.set(at, inside.entrance(false));
                if !list.tasks[at].optional {
                    inside.next(at, false);
                    last = Some(at as u32);
                }
            }
            here.extend(last);
        }
        if !here.is_empty() {
            here.sort_unstable();
            before = RunPart::of(here);
        }
    }
    order_the_rest(list, order, &placed);
}

fn order_the_rest(list: &TaskList, order: &mut ListOrder, placed: &[bool]) {
    let mut seen = RunPart::default();
    for (at, task) in list.tasks.iter().enumerate() {
        if task.container {
            continue;
        }
        if !placed[at] {
            order.set(at, seen.clone());
            if !task.optional {
                // It waits for all before it, so whoever waits for it does too.
                seen = RunPart::default();
            }
        }
        if !task.optional {
            seen.extend([at as u32]);
        }
    }
}

/// The tasks that each number stands for: itself, or the parts of a parent.
fn leaves(list: &TaskList) -> NameMap<String, Vec<usize>> {
    let mut leaves: NameMap<String, Vec<usize>> = NameMap::default();
    let all = list.tasks.iter().enumerate();
    for (at, task) in all.filter(|(_, task)| !task.container) {
        let mut number = Some(task.id.as_str());
        while let Some(id) = number {
            leaves.entry(id.to_owned()).or_default().push(at);
            number = id.rsplit_once('.').map(|(above, _)| above);
        }
    }
    leaves
}

/// Parents one after the other, unless they say `(P)`; in a parent its parts likewise.
fn order_by_file(
    list: &TaskList,
    order: &mut ListOrder,
    rows: &[TaskFlags],
    placed: &[PlacedTask],
) {
    let major = |placed: &PlacedTask| {
        let id = list.tasks[placed.beside].id.as_str();
        id.split('.').next().unwrap_or(id)
    };
    let mut outer = FileOrder::default();
    for group in placed.chunk_by(|one, next| major(one) == major(next)) {
        let first = group[0].at;
        let is_whole = list.tasks[first].id == major(&group[0]) && list.tasks[first].container;
        // A task without parts is a group of its own.
        let alone = group.len() == 1;
        let is_parallel = (is_whole || alone) && rows[first].parallel;
        let mut inner = FileOrder::after(outer.entrance(is_parallel));
        let parts = group.iter().map(|placed| placed.at);
        for at in parts.filter(|at| !list.tasks[*at].container) {
            let beside = rows[at].parallel && !alone;
            let before = match list.tasks[at].optional {
                true => inner.entrance(beside),
                false => inner.next(at, beside),
            };
            order.set(at, before);
        }
        outer.next_as(inner.end(), is_parallel);
    }
}

/// The acceptance criteria that a task names: `1.2` is item 2 of `### Requirement 1`.
pub fn criteria(requirements: &str, wanted: &[String]) -> Vec<String> {
    let doc = Document::read(requirements, |_| None);
    let mut found = Vec::new();
    let mut number: Option<String> = None;
    for line in &doc.lines {
        if let Some((_, heading)) = line.heading() {
            if let Some(read) = requirement_number(heading) {
                number = Some(read);
            }
            continue;
        }
        let text = line.text.trim_start();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let Some(rest) = text[digits..].strip_prefix(['.', ')']) else {
            continue;
        };
        let Some(of) = number.as_ref().filter(|_| digits > 0) else {
            continue;
        };
        let id = format!("{of}.{}", &text[..digits]);
        if wanted.iter().any(|wanted| *wanted == id || wanted == of) {
            found.push(format!("{id} {}", rest.trim()));
        }
    }
    found
}

fn requirement_number(heading: &str) -> Option<String> {
    let rest = heading.strip_prefix("Requirement").map(str::trim_start)?;
    let length = number_length(rest)?;
    Some(rest[..length].to_owned())
}
