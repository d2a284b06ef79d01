//! One task of a graph: what it waits for, how it is done, where it was written.

use std::fmt;

use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};

use super::TaskId;
use descartes_text::finding::Place;

/// The status of a task, in the nine words that task files know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Nobody works on it yet.
    #[default]
    Pending,
    /// Somebody works on it.
    #[serde(alias = "in_progress")]
    InProgress,
    /// Finished and proven.
    #[serde(alias = "completed", alias = "complete")]
    Done,
    /// A person has to look at it.
    Review,
    /// It cannot go on.
    Blocked,
    /// Put off by a person.
    Deferred,
    /// Given up by a person.
    #[serde(alias = "canceled")]
    Cancelled,
    /// Its subtasks are the work.
    Expanded,
    /// Tried and not reached.
    Failed,
}

impl TaskStatus {
    /// All nine.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::InProgress,
        Self::Done,
        Self::Review,
        Self::Blocked,
        Self::Deferred,
        Self::Cancelled,
        Self::Expanded,
        Self::Failed,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::Done => "done",
            Self::Review => "review",
            Self::Blocked => "blocked",
            Self::Deferred => "deferred",
            Self::Cancelled => "cancelled",
            Self::Expanded => "expanded",
            Self::Failed => "failed",
        }
    }

    /// Reads the word, with the spellings of older files.
    pub fn from_word(word: &str) -> Option<Self> {
        from_serde(&word.trim().to_ascii_lowercase().replace('_', "-"))
    }

    /// Whether a person took the task out of the work on purpose.
    pub const fn is_left_out(self) -> bool {
        matches!(self, Self::Deferred | Self::Cancelled)
    }

    /// Whether the task waits for a person.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Review | Self::Blocked | Self::Failed)
    }
}

/// A value by the word that stands for it in files.
fn from_serde<'a, T: Deserialize<'a>>(word: &'a str) -> Option<T> {
    let from: StrDeserializer<'a, ValueError> = word.into_deserializer();
    T::deserialize(from).ok()
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How urgent a task is; the most urgent is the smallest.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Before everything else.
    Critical,
    High,
    /// As it comes.
    #[default]
    Medium,
    Low,
}

impl Priority {
    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        from_serde(&word.trim().to_ascii_lowercase())
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// What proves a task done, beside an agent that ended well and green gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The promise or a changed tree where there are gates, the promise where there are none.
    #[default]
    Work,
    /// The promise, always.
    Promise,
    /// Nothing more.
    Exit,
}

/// What follows when a task's attempts are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFail {
    /// The task is blocked and what depends on it is held; the rest goes on.
    #[default]
    Block,
    /// The task is passed over, and what depends on it may start.
    Skip,
    /// Nothing new starts.
    Stop,
}

/// What the author of a task file asked for, for one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Attempts for this task, where they differ from the loop's.
    pub max_attempts: Option<u32>,
    /// What proves it done.
    pub proof: Proof,
    /// What follows when it is not reached.
    pub on_fail: OnFail,
}

/// Who does a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    #[default]
    Own,
    /// Somebody else, under another tag: it is waited for, never run.
    Foreign,
}

/// A task that another one waits for, and where that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The task to be done first.
    pub id: TaskId,
    /// Where the dependency stands.
    pub place: Place,
}

/// A point between tasks: it is satisfied when everything before it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joint {
    /// Tasks before it, by position in the graph.
    pub tasks: Vec<u32>,
    /// Joints before it, by position.
    pub joints: Vec<u32>,
}

/// One task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNode {
    /// Its name, unique in the graph.
    pub id: TaskId,
    /// One line for people.
    pub title: String,
    /// Its status in the file.
    pub status: TaskStatus,
    /// How urgent it is.
    pub priority: Priority,
    /// How long it is likely to take, in any unit; 0 counts as 1.
    pub weight: u32,
    /// What must be done first.
    pub dependencies: Vec<Dependency>,
    /// Joints of the graph that must be satisfied first, by position.
    pub joints: Vec<u32>,
    /// The task that it is a part of.
    pub parent: Option<TaskId>,
    /// The agent it asks for; tasks of one agent wait together for that agent's limits.
    pub agent: Option<String>,
    /// What the author asked for.
    pub rules: Rules,
    /// Who does it.
    pub origin: Origin,
    /// Where it was written.
    pub place: Place,
}

impl TaskNode {
    /// A pending task that waits for nothing.
    pub fn new(id: impl Into<TaskId>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            status: TaskStatus::Pending,
            priority: Priority::Medium,
            weight: 1,
            dependencies: Vec::new(),
            joints: Vec::new(),
            parent: None,
            agent: None,
            rules: Rules::default(),
            origin: Origin::Own,
            place: Place::FILE,
        }
    }

    /// The same task, waiting for others.
    #[must_use]
    pub fn after<'a>(mut self, ids: impl IntoIterator<Item = &'a str>) -> Self {
        let place = self.place;
        let more = ids.into_iter().map(|id| Dependency {
            id: id.into(),
            place,
        });
        self.dependencies.extend(more);
        self
    }

    /// The same task, as a part of another.
    #[must_use]
    pub fn part_of(mut self, parent: &str) -> Self {
        self.parent = Some(parent.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_statuses_read_back_in_every_spelling() {
        for status in TaskStatus::ALL {
            assert_eq!(TaskStatus::from_word(status.as_str()), Some(status));
            let json = serde_json::to_string(&status).unwrap();
            assert_eq!(json, format!("\"{status}\""));
        }
        for (word, status) in [
            ("completed", TaskStatus::Done),
            ("in_progress", TaskStatus::InProgress),
            ("In-Progress", TaskStatus::InProgress),
            ("canceled", TaskStatus::Cancelled),
        ] {
            assert_eq!(TaskStatus::from_word(word), Some(status), "{word}");
        }
        assert_eq!(TaskStatus::from_word("ready"), None);
    }

    #[test]
    fn the_most_urgent_comes_first() {
        let mut order = [
            Priority::Low,
            Priority::Critical,
            Priority::Medium,
            Priority::High,
        ];
        order.sort_unstable();
        assert_eq!(
            order.map(Priority::as_str),
            ["critical", "high", "medium", "low"]
        );
    }
}
