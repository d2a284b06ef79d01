//! Commands of trackers, and their answers. Ids are written by others: they are whole words of a command,
//! never text that a shell reads.

use serde::{Deserialize, Serialize};

use crate::lists::model::ListFile;

/// The answer to the question for the list itself; answers to others stand behind it.
pub const LIST: &str = "list";

/// In a command, the id of the task.
const ID: &str = "{id}";

/// What is called to read and change a tracker. Each is a program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrackerCommands {
    /// Prints the tasks.
    pub list: Vec<String>,
    /// Says that a task is done; none: it is said by the commit alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Vec<String>>,
    /// Says that a task is worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Vec<String>>,
    /// Takes that back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Vec<String>>,
    /// Says that a task is not done after all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reopen: Option<Vec<String>>,
}

/// What is written to a tracker besides what is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outward {
    /// That a task is worked on.
    pub claim: bool,
    /// That an issue is closed, before the commit that closes it was pushed.
    pub close: bool,
}

impl TrackerCommands {
    /// The words of a command about a task.
    pub fn about(command: &[String], id: &str) -> Vec<String> {
        let word = |word: &String| match word == ID {
            true => id.to_owned(),
            false => word.clone(),
        };
        command.iter().map(word).collect()
    }
}

/// The words of a command, as they are typed.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// What else is asked before a list can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackerRequest {
    /// Under which name the answer is kept.
    pub name: String,
    /// The command.
    pub words: Vec<String>,
}

impl TrackerRequest {
    /// Whether the list would be wrong without an answer. Without the others it is only more careful: an
    /// issue that somebody is assigned to, or that waits for something unknown, is not run.
    pub fn is_needed(&self) -> bool {
        self.name != "user" && !self.name.starts_with("issue/")
    }

    pub(super) fn new(name: impl Into<String>, words: &[&str]) -> Self {
        Self {
            name: name.into(),
            words: words.iter().map(|&word| word.to_owned()).collect(),
        }
    }
}

/// The answer of that name.
pub(super) fn answer<'a>(answers: &'a [ListFile], name: &str) -> Option<&'a str> {
    let found = answers.iter().find(|answer| answer.path == name);
    found.map(|answer| answer.text.as_str())
}

/// The answer to the question for the list.
pub(super) fn main_answer(answers: &[ListFile]) -> &str {
    answer(answers, LIST).unwrap_or_default()
}
