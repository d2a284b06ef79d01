//! `.taskmaster/tasks/tasks.json`: tasks with sub-tasks, under tags.

use std::collections::HashSet;

use super::format::ListFormat;
use super::json_list::{JsonEntry, whole_value};
use super::markdown::UniqueIds;
use super::model::{ListSection, ListTask, Mark, TaskList};
use super::order::ListOrder;
use crate::graph::{Priority, TaskStatus};
use crate::scud::json_span::LineCounter;
use descartes_text::finding::{Finding, Place};

/// Reads the tasks of a tag.
pub(super) fn read(text: &str, tag: &str) -> TaskList {
    let mut list = TaskList::new(ListFormat::TaskMaster);
    let Some(tasks) = tasks_of(text, tag) else {
        list.findings.push(no_tasks(text, tag));
        return list;
    };
    let mut reader = SubtaskReader {
        lines: LineCounter::new(text),
        ids: UniqueIds::default(),
        named: Vec::new(),
    };
    for (at, entry) in tasks.iter().enumerate() {
        let own = entry.word("id");
        let id = own.unwrap_or_else(|| (at + 1).to_string());
        let parts = entry.entries("subtasks").unwrap_or_default();
        let container = !parts.is_empty();
        let id = reader.take(entry, &id, None, container, &mut list);
        for (at, part) in parts.iter().enumerate() {
            let number = part.word("id").unwrap_or_else(|| (at + 1).to_string());
            let whole = format!("{id}.");
            let full = match number.starts_with(&whole) {
                true => number,
                false => format!("{id}.{number}"),
            };
            reader.take(part, &full, Some(&id), false, &mut list);
        }
    }
    let ids: HashSet<String> = list.tasks.iter().map(|task| task.id.clone()).collect();
    let named = reader.named.into_iter();
    let named = named.map(|(id, on)| {
        let on = on.into_iter().map(|wanted| full_id(&id, wanted, &ids));
        (id.clone(), on.collect())
    });
    let named = named.collect();
    let mut order = ListOrder::new(&list);
    order.add_unordered(&mut list, named);
    order.finish(&mut list);
    list
}

struct SubtaskReader<'a> {
    lines: LineCounter<'a>,
    ids: UniqueIds,
    named: Vec<(String, Vec<String>)>,
}

impl SubtaskReader<'_> {
    fn take(
        &mut self,
        entry: &JsonEntry<'_>,
        wanted: &str,
        parent: Option<&str>,
        container: bool,
        list: &mut TaskList,
    ) -> String {
        let line = self.lines.line_at(entry.start);
        let id = self.ids.take(wanted, line, list);
        let word = entry.word("status").unwrap_or_else(|| "pending".to_owned());
        let status = status_of(&word);
        if status.is_none() {
            list.warn(
                line,
                format!("task `{id}` has the unknown status `{word}`: it is held"),
            );
        }
        let title = entry.text("title").unwrap_or_else(|| format!("Task {id}"));
        let status = status.unwrap_or(TaskStatus::Blocked);
        self.named
            .push((id.clone(), entry.words(&["dependencies"])));
        let section = ListSection {
            id: parent.unwrap_or(&id).to_owned(),
            title: title.clone(),
        };
        list.tasks.push(ListTask {
            has_own_id: true,
            body: body_of(entry),
            marks: vec![mark_of(entry, status)],
            status,
            container,
            parent: parent.map(str::to_owned),
            section: Some(section),
            priority: entry
                .word("priority")
                .and_then(|word| Priority::from_word(&word))
                .unwrap_or_default(),
            line,
            title,
            id: id.clone(),
            ..ListTask::default()
        });
        id
    }
}

/// `1` in a sub-task is its sibling, where there is one.
fn full_id(of: &str, wanted: String, ids: &HashSet<String>) -> String {
    let Some((whole, _)) = of.rsplit_once('.') else {
        return wanted;
    };
    let sibling = format!("{whole}.{wanted}");
    match !wanted.contains('.') && ids.contains(&sibling) {
        true => sibling,
        false => wanted,
    }
}

/// Cancelled tasks hold nobody, as for Task Master itself.
fn status_of(word: &str) -> Option<TaskStatus> {
    match TaskStatus::from_word(word)? {
        TaskStatus::Cancelled => Some(TaskStatus::Done),
        other => Some(other),
    }
}

fn mark_of(entry: &JsonEntry<'_>, status: TaskStatus) -> Mark {
    let is_done = status == TaskStatus::Done;
    match entry.place("status") {
        Some(span) => Mark {
            file: 0,
            span,
            done: "\"done\"".into(),
            open: "\"pending\"".into(),
            doing: Some("\"in-progress\"".into()),
            is_done,
        },
        None => Mark {
            file: 0,
            span: entry.start + 1..entry.start + 1,
            done: "\"status\": \"done\", ".into(),
            open: "".into(),
            doing: None,
            is_done,
        },
    }
}

fn body_of(entry: &JsonEntry<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(entry.text("description"));
    parts.extend(entry.text("details"));
    if let Some(text) = entry.text("testStrategy") {
        parts.push(format!("How to test it: {text}"));
    }
    parts.join("\n\n")
}

/// The tasks of a tag: `{TAG: {tasks}}`, or of a file without tags.
fn tasks_of<'a>(text: &'a str, tag: &str) -> Option<Vec<JsonEntry<'a>>> {
    let whole = JsonEntry::whole(text)?;
    let untagged = whole.entries("tasks");
    untagged.or_else(|| whole.entry(tag)?.entries("tasks"))
}

/// The tags of a file.
pub fn tags(text: &str) -> Vec<String> {
    let whole = JsonEntry::whole(text);
    let tagged = whole.iter().flat_map(tagged);
    tagged.map(|(name, _)| name).collect()
}

/// The tags of a file with their tasks.
fn tagged<'a>(whole: &JsonEntry<'a>) -> impl Iterator<Item = (String, Vec<JsonEntry<'a>>)> {
    whole.names().into_iter().filter_map(|name| {
        let tasks = whole.entry(&name)?.entries("tasks")?;
        Some((name.into_owned(), tasks))
    })
}

/// Whether a text has Task Master's tasks, under tags or, where those are expected, without: each has an
/// id, and some have a status.
pub(super) fn looks_like(whole: &JsonEntry<'_>, may_be_untagged: bool) -> bool {
    let is_ours = |tasks: &[JsonEntry<'_>]| {
        let has = |task: &JsonEntry<'_>, name: &str| task.word(name).is_some();
        tasks.iter().all(|task| has(task, "id")) && tasks.iter().any(|task| has(task, "status"))
    };
    // Where there are tasks without a tag, these are those of every tag.
    let untagged = whole.entries("tasks");
    let of_tags = tagged(whole).any(|(_, tasks)| is_ours(untagged.as_ref().unwrap_or(&tasks)));
    of_tags || untagged.is_some_and(|tasks| may_be_untagged && is_ours(&tasks))
}

fn no_tasks(text: &str, tag: &str) -> Finding {
    if let Err(error) = whole_value(text) {
        return Finding::error(Place::FILE, format!("this is not valid JSON: {error}"));
    }
    let message = format!("there is no tag `{tag}` with tasks in it");
    let tags = tags(text);
    let hint = match tags.is_empty() {
        true => "Task Master writes {\"master\": {\"tasks\": […]}}".to_owned(),
        false => format!("switch with: task-master use-tag {}", tags[0]),
    };
    Finding::error(Place::FILE, message).hint(hint)
}
