//! The part of a spec that tells the task.

use std::sync::Arc;

use crate::lists::TaskBlock;
use crate::roadmap::RoadmapTask;
use crate::scud::ScudTask;

/// What a task that was depended on has delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    pub id: String,
    pub title: String,
    /// What came of it: its commit, the files that it changed, its agent's last words.
    pub delivered: Option<String>,
}

/// A task in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskText {
    pub id: String,
    pub title: String,
    /// What is to be done.
    pub description: String,
    pub details: Option<String>,
    /// When it is reached.
    pub success: Option<String>,
    /// How to find out.
    pub test_strategy: Option<String>,
    /// Other texts of the task, by name.
    pub notes: Vec<(String, String)>,
    /// Files that it may touch; none: every file.
    pub files: Vec<String>,
    /// The task that it is a part of.
    pub part_of: Option<Delivered>,
    /// What was done before it.
    pub dependencies: Vec<Delivered>,
    /// Whole blocks that were done before it.
    pub blocks: Option<DeliveredBlocks>,
}

/// Of blocks, so many are named: the last ones.
const BLOCK_NAMED: usize = 40;

/// Many tasks that many others depend on, shared by these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredBlocks {
    /// All tasks of the list.
    pub all: Arc<[Delivered]>,
    /// Those of the blocks.
    pub blocks: Vec<TaskBlock>,
}

impl TaskText {
    /// Names the tasks of blocks one by one, as far as anybody would read them.
    pub fn name_blocks(&mut self) {
        let Some(DeliveredBlocks { all, blocks }) = self.blocks.take() else {
            return;
        };
        let positions = TaskBlock::all_positions(&blocks);
        let more = positions.len().saturating_sub(BLOCK_NAMED);
        let named = positions[more..].iter();
        let named = named.filter_map(|at| all.get(*at as usize)).cloned();
        self.dependencies.splice(0..0, named);
        if more > 0 {
            let rest = Delivered {
                id: format!("and {more} more"),
                title: "everything else that stands before these in the list".to_owned(),
                delivered: None,
            };
            self.dependencies.insert(0, rest);
        }
    }

    /// The task as Markdown.
    pub fn render(&self) -> String {
        let mut parts = vec![format!("# Task {}: {}", self.id, self.title)];
        if let Some(whole) = &self.part_of {
            parts.push(format!("Part of task {}: {}", whole.id, whole.title));
        }
        parts.push(self.description.trim().to_owned());
        let named = [
            ("Details", &self.details),
            ("Success", &self.success),
            ("How to test it", &self.test_strategy),
        ];
        for (name, text) in named {
            parts.extend(said(text).map(|text| format!("## {name}\n\n{text}")));
        }
        for (name, text) in &self.notes {
            parts.push(format!("## {name}\n\n{}", text.trim()));
        }
        if !self.files.is_empty() {
            let files: Vec<String> = self.files.iter().map(|file| format!("- {file}")).collect();
            parts.push(format!(
                "## Files\n\nChange nothing outside these; other work is going on there:\n\n{}",
                files.join("\n")
            ));
        }
        if self.blocks.is_some() {
            let mut named = self.clone();
            named.name_blocks();
            return named.render();
        }
        if !self.dependencies.is_empty() {
            let done: Vec<String> = self.dependencies.iter().map(delivered_line).collect();
            parts.push(format!("## Done before\n\n{}", done.join("\n")));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }
}

fn said(text: &Option<String>) -> Option<&str> {
    let text = text.as_deref().map(str::trim);
    text.filter(|text| !text.is_empty())
}

fn delivered_line(dependency: &Delivered) -> String {
    let Delivered {
        id,
        title,
        delivered,
    } = dependency;
    match said(delivered) {
        // Lines of what was delivered stay inside the item.
        Some(told) => format!("- {id}: {title}\n  {}", told.replace('\n', "\n  ")),
        None => format!("- {id}: {title}"),
    }
}

impl From<&ScudTask> for TaskText {
    fn from(task: &ScudTask) -> Self {
        Self {
            id: task.id.clone(),
            title: task.title.clone(),
            description: task.description.clone(),
            details: task.details.clone(),
            test_strategy: task.test_strategy.clone(),
            notes: task.notes.clone(),
            ..Self::default()
        }
    }
}

impl From<&RoadmapTask> for TaskText {
    fn from(task: &RoadmapTask) -> Self {
        Self {
            id: task.id.clone(),
            title: task.description.clone(),
            description: task.body.clone(),
            success: task.keys.success.clone(),
            files: task.keys.files.clone(),
            ..Self::default()
        }
    }
}
