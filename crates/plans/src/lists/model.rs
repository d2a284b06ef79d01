//! What a task list of another tool holds.

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::TaskBlock;
use super::format::ListFormat;
use crate::graph::{Priority, TaskStatus};
use descartes_text::finding::{Finding, Place};

/// One file of a list, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFile {
    /// Where it lies, seen from the list's folder.
    pub path: String,
    pub text: String,
}

/// A task list of another tool.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskList {
    pub format: ListFormat,
    /// What stands before the first task: for every agent.
    pub introduction: String,
    /// Its tasks, in order.
    pub tasks: Vec<ListTask>,
    /// What looks like a task and is none.
    pub left_out: Vec<LeftOut>,
    /// Commands that prove every task.
    pub gates: Vec<ListGate>,
    pub findings: Vec<Finding>,
}

impl TaskList {
    /// The gates that the list itself brings for a task: its own, then those of all.
    pub fn gates_of(&self, task: &ListTask) -> Vec<String> {
        let of_all = self.gates.iter().map(|gate| &gate.command);
        let mut gates: Vec<String> = Vec::new();
        for gate in task.gates.iter().chain(of_all) {
            if !gates.contains(gate) {
                gates.push(gate.clone());
            }
        }
        gates
    }

    pub(super) fn new(format: ListFormat) -> Self {
        Self {
            format,
            introduction: String::new(),
            tasks: Vec::new(),
            left_out: Vec::new(),
            gates: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The task of that id.
    pub fn task(&self, id: &str) -> Option<&ListTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The ids of all that a task waits for.
    pub fn depends_of<'a>(&'a self, task: &'a ListTask) -> impl Iterator<Item = &'a str> {
        let blocks = TaskBlock::all_positions(&task.blocks).into_iter();
        let blocks = blocks.filter_map(|at| self.tasks.get(at as usize));
        let blocks = blocks.map(|before| before.id.as_str());
        blocks.chain(task.depends.iter().map(String::as_str))
    }

    pub(super) fn warn(&mut self, line: u32, message: impl Into<String>) {
        // A list may have many of them.
        let mut message = message.into();
        message.shrink_to_fit();
        self.findings
            .push(Finding::warning(Place::line(line), message));
    }

    pub(super) fn note(&mut self, line: u32, message: impl Into<String>) {
        self.findings
            .push(Finding::note(Place::line(line), message.into()));
    }

    pub(super) fn leave_out(&mut self, line: u32, text: &str, why: impl Into<String>) {
        self.left_out.push(LeftOut {
            line,
            text: text.to_owned(),
            why: why.into(),
        });
    }
}

/// One task of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListTask {
    pub id: String,
    /// Whether the file itself names it so; else it is counted.
    pub has_own_id: bool,
    pub title: String,
    /// What stands under it.
    pub body: String,
    pub status: TaskStatus,
    /// What must be done first, by id; [`TaskList::depends_of`] has those of the blocks too.
    pub depends: Vec<String>,
    /// Tasks that must all be done first, shared by all who wait for them: with an edge for each pair,
    /// two phases of a thousand tasks would have a million.
    pub blocks: Vec<TaskBlock>,
    /// What it waits for and what is not in the list.
    pub unknown: Vec<String>,
    /// The file says that it may be left out.
    pub optional: bool,
    /// Its parts are the work.
    pub container: bool,
    /// The task that it is a part of.
    pub parent: Option<String>,
    /// Why only a person can do it.
    pub human: Option<String>,
    /// The heading or phase that it stands under.
    pub section: Option<ListSection>,
    /// Numbers of requirements and stories that it names.
    pub refers_to: Vec<String>,
    /// Commands that prove it.
    pub gates: Vec<String>,
    pub priority: Priority,
    /// The file that it stands in.
    pub file: usize,
    /// Its line there, from 1.
    pub line: u32,
    /// What is written when it is done.
    pub marks: Vec<Mark>,
    /// The line of a commit that tells a tracker that it is done.
    pub closes: Option<String>,
}

impl ListTask {
    pub fn is_done(&self) -> bool {
        self.status == TaskStatus::Done
    }

    /// The status as others see it.
    pub fn progress(&self) -> &'static str {
        match self.status {
            TaskStatus::Done => "done",
            TaskStatus::InProgress => "doing",
            _ => "todo",
        }
    }
}

/// A part of a list that one agent can be given as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListSection {
    /// A short name for it.
    pub id: String,
    pub title: String,
}

/// Something that looks like a task and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub line: u32,
    pub text: String,
    pub why: String,
}

/// A command that the list names as a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListGate {
    pub command: String,
    /// Where it stands.
    pub from: String,
}

/// A place that says whether a task is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub file: usize,
    pub span: Range<usize>,
    /// What is written for a task that is done.
    pub done: Cow<'static, str>,
    /// What is written for one that is not.
    pub open: Cow<'static, str>,
    /// What is written for one that is worked on, where the format has a word for that.
    pub doing: Option<Cow<'static, str>>,
    /// Whether it says done now.
    pub is_done: bool,
}

/// How a list is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ListOptions {
    /// What one agent is given.
    pub by: By,
    /// User stories of spec-kit side by side.
    pub stories: bool,
    /// Optional tasks too.
    pub optional: bool,
    /// Tasks for people are passed over.
    pub skip_human: bool,
    /// The list says what is worked on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub claim: bool,
}

/// What one agent is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    #[default]
    Task,
    /// A phase, group or parent with all its tasks.
    Section,
}
