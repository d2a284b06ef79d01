//! One task for a whole phase, group or parent.

use super::blocks::{TaskBlock, TaskWaits};
use super::merged_blocks::MergedBlocks;
use super::model::{ListOptions, ListTask, TaskList};
use super::order::ListOrder;
use crate::graph::TaskStatus;
use crate::graph::hash::{NameMap, NameSet};

/// The same list with one task for each section.
pub(super) fn by_section(list: TaskList, options: ListOptions) -> TaskList {
    let mut merged = TaskList {
        tasks: Vec::new(),
        ..list.clone()
    };
    let mut places: NameMap<String, usize> = NameMap::default();
    let mut parts: Vec<Vec<&ListTask>> = Vec::new();
    // By position in the list.
    let mut section_of: Vec<u32> = Vec::new();
    let skipped = |task: &ListTask| {
        (task.optional && !options.optional) || (task.human.is_some() && options.skip_human)
    };
    for task in &list.tasks {
        if skipped(task) {
            section_of.push(merged.tasks.len() as u32);
            merged.tasks.push(task.clone());
            parts.push(vec![task]);
            continue;
        }
        let section = task.section.clone().unwrap_or_default();
        let (id, title) = match section.id.is_empty() {
            true => (task.id.clone(), task.title.clone()),
            false => (section.id, section.title),
        };
        let at = *places.entry(id.clone()).or_insert_with(|| {
            merged.tasks.push(empty_section(id, title, task));
            parts.push(Vec::new());
            merged.tasks.len() - 1
        });
        section_of.push(at as u32);
        add(&mut merged.tasks[at], task);
        if !task.container {
            parts[at].push(task);
        }
    }
    let places: NameMap<&str, usize> = {
        let all = list.tasks.iter().enumerate();
        all.map(|(at, task)| (task.id.as_str(), at)).collect()
    };
    let mut order = ListOrder::new(&merged);
    let mut blocks = MergedBlocks::new(&section_of);
    for (at, parts) in parts.iter().enumerate() {
        let at = at as u32;
        let own = parts.iter().flat_map(|task| &task.blocks);
        let own: Vec<&TaskBlock> = own.collect();
        let mut waits = TaskWaits::default();
        let mut seen = NameSet::default();
        for block in own.into_iter().filter(|block| seen.insert(block.key())) {
            let merged = blocks.block(block);
            for part in merged.without(at) {
                waits.add_block(part);
            }
        }
        let named = parts.iter().flat_map(|task| &task.depends);
        let named = named.filter_map(|on| places.get(on.as_str()));
        let named = named.map(|before| section_of[*before]);
        let mut seen = NameSet::from_iter([at]);
        for before in named.filter(|before| seen.insert(*before)) {
            waits.add(before);
        }
        order.set_waits(at as usize, waits);
    }
    order.finish(&mut merged);
    merged
}

fn empty_section(id: String, title: String, first: &ListTask) -> ListTask {
    ListTask {
        id,
        has_own_id: true,
        title,
        status: TaskStatus::Done,
        file: first.file,
        line: first.line,
        ..ListTask::default()
    }
}

fn add(section: &mut ListTask, task: &ListTask) {
    section.marks.extend(task.marks.iter().cloned());
    if task.container {
        return;
    }
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
