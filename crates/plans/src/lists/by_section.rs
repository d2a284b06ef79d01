//! One task for a whole phase, group or parent.

use std::fmt::Write;

use super::blocks::TaskWaits;
use super::merged_blocks::MergedBlocks;
use super::model::{ListOptions, ListTask, TaskList};
use super::order::ListOrder;
use crate::graph::TaskStatus;
use crate::graph::edges::Edges;
use crate::graph::hash::{NameMap, NameSet};

/// The same list with one task for each section.
pub(super) fn by_section(mut list: TaskList, options: ListOptions) -> TaskList {
    let tasks = std::mem::take(&mut list.tasks);
    let skipped = |task: &ListTask| {
        (task.optional && !options.optional) || (task.human.is_some() && options.skip_human)
    };
    let mut places: NameMap<&str, u32> = NameMap::default();
    // By position in the list.
    let mut section_of: Vec<u32> = Vec::with_capacity(tasks.len());
    // Sections with the tasks whose dependencies are theirs.
    let mut parts: Vec<(u32, u32)> = Vec::with_capacity(tasks.len());
    for (task, at) in tasks.iter().zip(0..) {
        let next = list.tasks.len() as u32;
        if skipped(task) {
            section_of.push(next);
            parts.push((next, at));
            list.tasks.push(task.clone());
            continue;
        }
        let named = task.section.as_ref().filter(|named| !named.id.is_empty());
        let (id, title) = match named {
            Some(named) => (&named.id, &named.title),
            None => (&task.id, &task.title),
        };
        let section = *places.entry(id).or_insert(next);
        if section == next {
            list.tasks.push(empty_section(id, title, task));
        }
        section_of.push(section);
        add(&mut list.tasks[section as usize], task);
        if !task.container {
            parts.push((section, at));
        }
    }
    let parts = Edges::group(list.tasks.len(), &parts);
    let mut order = ListOrder::by_position(list.tasks.len());
    let mut merging = Merging::of(&tasks, &section_of);
    for at in 0..list.tasks.len() as u32 {
        order.set_waits(at as usize, merging.waits(at, parts.of(at)));
    }
    order.finish(&mut list);
    list
}

/// What sections wait for, while that is found out.
struct Merging<'a> {
    tasks: &'a [ListTask],
    section_of: &'a [u32],
    /// Positions of tasks, by id.
    places: NameMap<&'a str, u32>,
    blocks: MergedBlocks<'a>,
    /// The last section that was found to wait for each one.
    named_by: Vec<u32>,
}

impl<'a> Merging<'a> {
    fn of(tasks: &'a [ListTask], section_of: &'a [u32]) -> Self {
        let all = tasks.iter().zip(0..);
        Self {
            places: all.map(|(task, at)| (task.id.as_str(), at)).collect(),
            blocks: MergedBlocks::new(section_of),
            named_by: vec![u32::MAX; section_of.len()],
            tasks,
            section_of,
        }
    }

    /// What the section at a position waits for, by position; it has these parts.
    fn waits(&mut self, at: u32, parts: &[u32]) -> TaskWaits {
        let mut waits = TaskWaits::default();
        let tasks = self.tasks;
        let parts = parts.iter().map(|part| &tasks[*part as usize]);
        let mut seen = NameSet::default();
        let blocks = parts.clone().flat_map(|task| &task.blocks);
        for block in blocks.filter(|block| seen.insert(block.key())) {
            let merged = self.blocks.block(block);
            for part in merged.without(at) {
                waits.add_block(part);
            }
        }
        self.named_by[at as usize] = at;
        for known in &waits.tasks {
            self.named_by[*known as usize] = at;
        }
        for on in parts.flat_map(|task| &task.depends) {
            let Some(before) = self.places.get(on.as_str()) else {
                continue;
            };
            let before = self.section_of[*before as usize];
            let is_new = std::mem::replace(&mut self.named_by[before as usize], at) != at;
            if is_new && !waits.blocks.iter().any(|block| block.contains(before)) {
                waits.tasks.push(before);
            }
        }
        waits
    }
}

fn empty_section(id: &str, title: &str, first: &ListTask) -> ListTask {
    ListTask {
        id: id.to_owned(),
        has_own_id: true,
        title: title.to_owned(),
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
        let _ = writeln!(section.body, "- {} {} (done)", task.id, task.title);
        return;
    }
    section.status = match task.status {
        TaskStatus::InProgress => TaskStatus::Pending,
        other => other,
    };
    let _ = writeln!(section.body, "- {} {}", task.id, task.title);
    for line in task.body.lines() {
        let _ = writeln!(section.body, "  {line}");
    }
}
