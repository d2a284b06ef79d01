//! One task for a whole phase, group or parent.

use std::collections::{HashMap, HashSet};

use super::model::{ListOptions, ListTask, TaskList};
use super::order::break_cycles;
use crate::graph::TaskStatus;

/// The same list with one task for each section.
pub(super) fn by_section(list: TaskList, options: ListOptions) -> TaskList {
    let mut merged = TaskList {
        tasks: Vec::new(),
        ..list.clone()
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut section_of: HashMap<String, String> = HashMap::new();
    let skipped = |task: &ListTask| {
        (task.optional && !options.optional) || (task.human.is_some() && options.skip_human)
    };
    for task in &list.tasks {
        if skipped(task) {
            merged.tasks.push(task.clone());
            continue;
        }
        let section = task.section.clone().unwrap_or_default();
        let (id, title) = match section.id.is_empty() {
            true => (task.id.clone(), task.title.clone()),
            false => (section.id, section.title),
        };
        section_of.insert(task.id.clone(), id.clone());
        let at = *places.entry(id.clone()).or_insert_with(|| {
            merged.tasks.push(ListTask {
                id,
                has_own_id: true,
                title,
                status: TaskStatus::Done,
                file: task.file,
                line: task.line,
                ..ListTask::default()
            });
            merged.tasks.len() - 1
        });
        add(&mut merged.tasks[at], task);
    }
    for task in &mut merged.tasks {
        let id = task.id.clone();
        let mut seen = HashSet::new();
        let depends = std::mem::take(&mut task.depends).into_iter();
        let depends = depends.map(|on| section_of.get(&on).cloned().unwrap_or(on));
        task.depends = depends
            .filter(|on| *on != id && seen.insert(on.clone()))
            .collect();
    }
    break_cycles(&mut merged);
    merged
}

fn add(section: &mut ListTask, task: &ListTask) {
    section.marks.extend(task.marks.iter().cloned());
    if task.container {
        return;
    }
    section.depends.extend(task.depends.iter().cloned());
    section.unknown.extend(task.unknown.iter().cloned());
    section.refers_to.extend(task.refers_to.iter().cloned());
    section.gates.extend(task.gates.iter().cloned());
    section.priority = section.priority.min(task.priority);
    if section.human.is_none() && !task.is_done() {
        section.human.clone_from(&task.human);
    }
    if task.is_done() {
        section
            .body
            .push_str(&format!("- {} {} (done)\n", task.id, task.title));
        return;
    }
    section.status = match task.status {
        TaskStatus::InProgress => TaskStatus::Pending,
        other => other,
    };
    section
        .body
        .push_str(&format!("- {} {}\n", task.id, task.title));
    for line in task.body.lines() {
        section.body.push_str(&format!("  {line}\n"));
    }
}
