//! `tasks.md` of Kiro and cc-sdd: numbered boxes, parents by number, waves or order.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::boxes::Document;
use super::format::ListFormat;
use super::markdown::{UniqueIds, note_marks, task_of};
use super::model::{ListSection, ListTask, TaskList};
use super::openspec::number_length;
use super::order::{FileOrder, add_named};
use super::spec_kit;
use crate::roadmap::lines::LineKind;

pub(super) fn read(text: &str) -> TaskList {
    // The folder decides the order, and what stands there the ids.
    let doc = Document::read(text, |text| name(text).or_else(|| spec_kit::name(text)));
    let mut list = TaskList::new(ListFormat::Kiro);
    list.findings.clone_from(&doc.findings);
    note_marks(&doc, &mut list);
    let mut ids = UniqueIds::default();
    let mut rows = Vec::new();
    for item in &doc.items {
        let line = item.checkbox.line;
        let Some(wanted) = &item.id else {
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
    match waves(&doc) {
        Some(waves) => order_by_waves(&mut list, &waves),
        None => order_by_file(&mut list, &rows),
    }
    let named = list.tasks.iter().zip(rows);
    let named = named
        .map(|(task, row)| (task.id.clone(), row.named))
        .collect();
    add_named(&mut list, named);
    list
}

struct TaskFlags {
    parallel: bool,
    named: Vec<String>,
}

/// `2.1 text`, `2. text` or `2 text`.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let bare = text.trim_start_matches(['*', '_']);
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
        let ids = list.split([',', ' ', ';']).map(str::trim);
        let ids = ids.filter(|id| number_length(id) == Some(id.len()));
        found.extend(ids.map(str::to_owned));
    }
    found
}

/// A task whose number begins with another's is a part of it.
fn set_parents(list: &mut TaskList) {
    let places: HashMap<String, usize> = {
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
        // A parent whose parts may all be left out is work itself.
        list.tasks[parent].container |= !list.tasks[at].optional;
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
    let real: HashSet<String> = {
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

fn parent_of(id: &str, places: &HashMap<String, usize>) -> Option<usize> {
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
    let is_graph = |text: &str| text.eq_ignore_ascii_case("task dependency graph");
    let at = doc
        .headings
        .iter()
        .position(|heading| is_graph(heading.text))?;
    let from = doc.headings[at].line;
    let to = doc.headings.get(at + 1).map_or(u32::MAX, |next| next.line);
    let code = doc.lines.iter().filter(|line| line.kind == LineKind::Code);
    let code = code.filter(|line| line.number > from && line.number < to);
    let code: Vec<&str> = code.map(|line| line.text).collect();
    let json = code.get(1..code.len().checked_sub(1)?)?.join("\n");
    let value: Value = serde_json::from_str(&json).ok()?;
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
fn order_by_waves(list: &mut TaskList, waves: &[Vec<String>]) {
    let mut placed: HashSet<String> = HashSet::new();
    let mut before: Vec<String> = Vec::new();
    let mut unknown: Vec<String> = Vec::new();
    for wave in waves {
        let mut here: Vec<String> = Vec::new();
        for id in wave {
            let leaves = leaves_of(list, id);
            if leaves.is_empty() {
                unknown.push(id.clone());
            }
            let mut order = FileOrder::after(before.clone());
            for at in leaves {
                let task = &mut list.tasks[at];
                if placed.contains(&task.id) {
                    continue;
                }
                task.depends = order.entrance(false);
                placed.insert(task.id.clone());
                if !task.optional {
                    order.next(&task.id, false);
                }
            }
            let end = order.end();
            here.extend(end.into_iter().filter(|id| !before.contains(id)));
        }
        if !here.is_empty() {
            before = here;
        }
    }
    for id in unknown {
        list.warn(
            0,
            format!("the dependency graph names `{id}`, which is not in the list"),
        );
    }
    order_the_rest(list, &placed);
}

fn order_the_rest(list: &mut TaskList, placed: &HashSet<String>) {
    let mut seen: Vec<String> = Vec::new();
    for task in list.tasks.iter_mut().filter(|task| !task.container) {
        if !placed.contains(&task.id) {
            task.depends.clone_from(&seen);
            if !task.optional {
                // It waits for all before it, so whoever waits for it does too.
                seen.clear();
            }
        }
        if !task.optional {
            seen.push(task.id.clone());
        }
    }
}

/// The tasks that a number stands for: itself, or the parts of a parent.
fn leaves_of(list: &TaskList, id: &str) -> Vec<usize> {
    let is_part = |task: &ListTask| {
        task.id == id
            || task
                .id
                .strip_prefix(id)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    let all = list.tasks.iter().enumerate();
    all.filter(|(_, task)| !task.container && is_part(task))
        .map(|(at, _)| at)
        .collect()
}

/// Parents one after the other, unless they say `(P)`; in a parent its parts likewise.
fn order_by_file(list: &mut TaskList, rows: &[TaskFlags]) {
    let major = |id: &str| id.split('.').next().unwrap_or(id).to_owned();
    let mut outer = FileOrder::default();
    let mut at = 0;
    while at < list.tasks.len() {
        let group = major(&list.tasks[at].id);
        let end = (at..list.tasks.len()).find(|next| major(&list.tasks[*next].id) != group);
        let end = end.unwrap_or(list.tasks.len());
        let parallel = list.tasks[at].id == group && list.tasks[at].container && rows[at].parallel;
        // A task without parts is a group of its own.
        let alone = end == at + 1;
        let is_parallel = parallel || (alone && rows[at].parallel);
        let mut inner = FileOrder::after(outer.entrance(is_parallel));
        let group = list.tasks[at..end].iter_mut().zip(&rows[at..end]);
        for (task, flags) in group.filter(|(task, _)| !task.container) {
            let beside = flags.parallel && !alone;
            task.depends = match task.optional {
                true => inner.entrance(beside),
                false => inner.next(&task.id, beside),
            };
        }
        outer.next_as(inner.end(), is_parallel);
        at = end;
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
