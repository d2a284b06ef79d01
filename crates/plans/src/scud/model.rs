//! What a task file holds.

use thiserror::Error;

use crate::graph::{Priority, TaskStatus};
use descartes_text::finding::Finding;

/// A task file that cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct ScudError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it, and what to do.
    pub message: String,
}

/// A task file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScudFile {
    /// Its tags, in the order of the file.
    pub tags: Vec<ScudTag>,
    /// What is odd about it: what SCUD would drop or read otherwise, by line.
    pub findings: Vec<Finding>,
}

impl ScudFile {
    /// The tag of that name; of two, the one that SCUD keeps.
    pub fn tag(&self, name: &str) -> Option<&ScudTag> {
        self.tags.iter().rev().find(|tag| tag.name == name)
    }

    /// The names of all tags.
    pub fn tag_names(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(|tag| tag.name.as_str())
    }
}

/// The tasks of one tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScudTag {
    pub name: String,
    /// The line on which it begins.
    pub line: u32,
    /// Its tasks, in natural order of their ids.
    pub tasks: Vec<ScudTask>,
    /// Whether its edges are the steps of a pipeline and no dependencies.
    pub is_pipeline: bool,
}

impl ScudTag {
    /// The task of that id.
    pub fn task(&self, id: &str) -> Option<&ScudTask> {
        self.tasks.iter().rev().find(|task| task.id == id)
    }
}

/// A dependency, and the line that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScudDependency {
    /// The id as written: of this tag, or `tag:id`.
    pub id: String,
    /// The line, from 1.
    pub line: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScudTask {
    /// Its id, unique in its tag.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// What is to be done.
    pub description: String,
    pub details: Option<String>,
    /// How to find out whether it is done.
    pub test_strategy: Option<String>,
    pub status: TaskStatus,
    /// How hard it is; 0 is unknown.
    pub complexity: u32,
    /// How urgent it is.
    pub priority: Priority,
    /// What must be done first.
    pub dependencies: Vec<ScudDependency>,
    /// The task that it is a part of.
    pub parent: Option<String>,
    pub subtasks: Vec<String>,
    /// Who works on it.
    pub assigned_to: Option<String>,
    /// The kind of agent that it asks for.
    pub agent_type: Option<String>,
    /// Other texts under other names, in the order of the file.
    pub notes: Vec<(String, String)>,
    /// The line that it stands on.
    pub line: u32,
}
