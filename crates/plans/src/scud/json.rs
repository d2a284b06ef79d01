//! Reads the older task files, which are JSON.

use serde_json::Value;
use serde_json::value::RawValue;

use super::json_span::{LineCounter, Members, span, string};
use super::model::{ScudDependency, ScudError, ScudFile, ScudTag, ScudTask};
use crate::graph::hash::{NameMap, NameSet};
use crate::graph::{Priority, TaskStatus, natural_cmp};
use descartes_text::finding::{self, Finding, Place};

/// Where the tasks of a tag stand in a JSON file.
pub(super) struct TagSpan<'a> {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) tasks: Vec<&'a RawValue>,
}

/// `tasks.json`: an object of tags, each an object with `tasks`.
pub(super) fn tags_of_map(text: &str) -> Result<Vec<TagSpan<'_>>, ScudError> {
    let Members(tags) = serde_json::from_str(text).map_err(|error| not_whole(&error))?;
    let tag = |(key, value): (&'_ RawValue, _)| {
        Ok(TagSpan {
            name: string(key).into_owned(),
            start: span(text, key).start,
            tasks: tasks_in(text, value)?,
        })
    };
    tags.into_iter().map(tag).collect()
}

/// `{tag}.json`: an object with `tasks`, or the list alone.
pub(super) fn tag_of_file<'a>(text: &'a str, tag: &str) -> Result<TagSpan<'a>, ScudError> {
    let whole = serde_json::from_str(text).map_err(|error| not_whole(&error))?;
    Ok(TagSpan {
        name: tag.to_owned(),
        start: span(text, whole).start,
        tasks: tasks_in(text, whole)?,
    })
}

/// The tasks in a value: it is their list, or an object that holds it.
fn tasks_in<'a>(text: &str, value: &'a RawValue) -> Result<Vec<&'a RawValue>, ScudError> {
    let list = match Members::of(value) {
        Some(members) => members.get("tasks"),
        None => Some(value),
    };
    let tasks = list.and_then(|list| serde_json::from_str(list.get()).ok());
    tasks.ok_or_else(|| ScudError {
        line: LineCounter::new(text).line_at(span(text, value).start),
        message: "expected a tag with a list `tasks`".to_owned(),
    })
}

fn not_whole(error: &serde_json::Error) -> ScudError {
    let message = "not valid JSON: the file is truncated or was edited by mistake".to_owned();
    ScudError {
        line: error.line().max(1) as u32,
        message,
    }
}

pub(super) fn parse_tag_map(text: &str) -> Result<ScudFile, ScudError> {
    if text.trim().is_empty() {
        return Ok(ScudFile::default());
    }
    Ok(read_file(text, tags_of_map(text)?))
}

pub(super) fn parse_one_tag(text: &str, tag: &str) -> Result<ScudFile, ScudError> {
    let span = tag_of_file(text, tag)?;
    let mut file = read_file(text, vec![span]);
    let has_waves =
        serde_json::from_str::<Value>(text).is_ok_and(|json| json.get("waves").is_some());
    if has_waves {
        let message = "the list `waves` is ignored: waves are computed from the dependencies";
        file.findings.push(Finding::note(Place::FILE, message));
    }
    Ok(file)
}

fn read_file(text: &str, spans: Vec<TagSpan<'_>>) -> ScudFile {
    let mut file = ScudFile::default();
    let mut counter = LineCounter::new(text);
    for tag in spans {
        let line = counter.line_at(tag.start);
        let mut tasks = Vec::with_capacity(tag.tasks.len());
        for task in tag.tasks {
            let line = counter.line_at(span(text, task).start);
            let json = serde_json::from_str(task.get()).unwrap_or(Value::Null);
            tasks.extend(read_task(&json, line, &mut file.findings));
        }
        link_families(&mut tasks);
        tasks.sort_by(|a, b| natural_cmp(&a.id, &b.id));
        file.tags.push(ScudTag {
            name: tag.name,
            line,
            tasks,
            is_pipeline: false,
        });
    }
    finding::sort(&mut file.findings);
    file
}

fn read_task(json: &Value, line: u32, findings: &mut Vec<Finding>) -> Option<ScudTask> {
    let place = Place::line(line);
    let Some(id) = json.get("id").and_then(id_of) else {
        findings.push(Finding::error(place, "a task without an id"));
        return None;
    };
    let mut bad = |message: String| findings.push(Finding::warning(place, message));
    let status = text_of(json, "status").map_or(TaskStatus::Pending, |word| {
        TaskStatus::from_word(&word).unwrap_or_else(|| {
            bad(format!(
                "`{word}` is not a status: task `{id}` is read as pending"
            ));
            TaskStatus::Pending
        })
    });
    let priority = text_of(json, "priority").map_or(Priority::Medium, |word| {
        Priority::from_word(&word).unwrap_or_else(|| {
            bad(format!(
                "`{word}` is not a priority: task `{id}` is read as medium"
            ));
            Priority::Medium
        })
    });
    let nested = json
        .get("subtasks")
        .and_then(Value::as_array)
        .is_some_and(|subtasks| subtasks.iter().any(|subtask| id_of(subtask).is_none()));
    if nested {
        let message = format!("the subtasks of `{id}` are nested inside it and would not run");
        findings.push(
            Finding::error(place, message).hint("list them as separate tasks with a parent_id"),
        );
    }
    let dependencies = ids(json, "dependencies")
        .into_iter()
        .chain(ids(json, "depends_on"));
    Some(ScudTask {
        title: text_of(json, "title")
            .or_else(|| text_of(json, "name"))
            .unwrap_or_default(),
        description: text_of(json, "description").unwrap_or_default(),
        details: text_of(json, "details").filter(|text| !text.is_empty()),
        test_strategy: text_of(json, "test_strategy")
            .or_else(|| text_of(json, "testStrategy"))
            .filter(|text| !text.is_empty()),
        status,
        complexity: json.get("complexity").and_then(Value::as_u64).unwrap_or(0) as u32,
        priority,
        dependencies: dependencies.map(|id| ScudDependency { id, line }).collect(),
        parent: json.get("parent_id").and_then(id_of),
        subtasks: ids(json, "subtasks"),
        assigned_to: text_of(json, "assigned_to"),
        agent_type: text_of(json, "agent_type"),
        notes: Vec::new(),
        line,
        id,
    })
}

/// Parents may be told by the whole, by the part, or by both; afterwards both tell.
fn link_families(tasks: &mut [ScudTask]) {
    let slots: NameMap<String, usize> = tasks
        .iter()
        .enumerate()
        .map(|(slot, task)| (task.id.clone(), slot))
        .collect();
    let mut told: Vec<(usize, usize)> = Vec::new();
    for (slot, task) in tasks.iter().enumerate() {
        told.extend(
            task.subtasks
                .iter()
                .filter_map(|part| Some((*slots.get(part)?, slot))),
        );
        told.extend(
            task.parent
                .as_ref()
                .and_then(|whole| Some((slot, *slots.get(whole)?))),
        );
    }
    let mut listed: NameSet<(usize, usize)> = NameSet::default();
    for task in tasks.iter_mut() {
        task.subtasks.clear();
    }
    for (part, whole) in told {
        let parent = tasks[whole].id.clone();
        let parent = tasks[part].parent.get_or_insert(parent).clone();
        if slots.get(&parent) == Some(&whole) && listed.insert((part, whole)) {
            let part = tasks[part].id.clone();
            tasks[whole].subtasks.push(part);
        }
    }
}

/// An id is a string, or a number in older files.
pub(super) fn id_of(json: &Value) -> Option<String> {
    match json {
        Value::String(id) => Some(id.clone()).filter(|id| !id.is_empty()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn ids(json: &Value, name: &str) -> Vec<String> {
    let list = json.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(id_of).collect()
}

fn text_of(json: &Value, name: &str) -> Option<String> {
    json.get(name).and_then(Value::as_str).map(str::to_owned)
}
