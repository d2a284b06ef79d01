//! What a roadmap holds.

use super::foreign_format::ForeignFormat;
use std::time::Duration;

use super::keys::Keys;
use crate::graph::TaskStatus;
use descartes_text::finding::{Finding, Place};

/// The character in a checkbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckMark {
    /// `[ ]`
    #[default]
    Open,
    /// `[x]` or `[X]`
    Done,
    /// `[-]`: left out by a person.
    LeftOut,
    /// `[!]`: stopped by a person.
    Stopped,
}

impl CheckMark {
    /// The mark for a character.
    pub const fn of(character: char) -> Option<Self> {
        match character {
            ' ' => Some(Self::Open),
            'x' | 'X' => Some(Self::Done),
            '-' => Some(Self::LeftOut),
            '!' => Some(Self::Stopped),
            _ => None,
        }
    }

    /// The character that is written for it.
    pub const fn character(self) -> char {
        match self {
            Self::Open => ' ',
            Self::Done => 'x',
            Self::LeftOut => '-',
            Self::Stopped => '!',
        }
    }

    /// The status that it stands for.
    pub const fn status(self) -> TaskStatus {
        match self {
            Self::Open => TaskStatus::Pending,
            Self::Done => TaskStatus::Done,
            Self::LeftOut => TaskStatus::Cancelled,
            Self::Stopped => TaskStatus::Blocked,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roadmap {
    /// Its name, from the first heading.
    pub title: Option<String>,
    /// What all of it is for; goes into every prompt.
    pub objective: String,
    /// What holds for every task.
    pub constraints: Constraints,
    /// When the whole is reached.
    pub criteria: Vec<Criterion>,
    /// Its phases, in order; they group tasks and order nothing.
    pub phases: Vec<Phase>,
    /// Its tasks, in order.
    pub tasks: Vec<RoadmapTask>,
    /// Ideas for new tasks.
    pub growth: Vec<String>,
    /// The other tool's format that it has, where it is none of ours.
    pub foreign: Option<ForeignFormat>,
    /// What is wrong or odd about its text, by line; the graph is not looked at here.
    pub findings: Vec<Finding>,
}

impl Roadmap {
    /// The task of that id.
    pub fn task(&self, id: &str) -> Option<&RoadmapTask> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

/// What the section "Constraints" says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints {
    /// Time for one attempt at a task.
    pub max_time: Option<Duration>,
    /// How often a failed task is tried again.
    pub retries: Option<u32>,
    /// Where tasks are worked on.
    pub cwd: Option<String>,
    /// Everything else, for the prompt.
    pub other: Vec<String>,
}

/// One line of "Success Criteria".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    pub text: String,
    pub mark: CheckMark,
    /// The line, from 1.
    pub line: u32,
}

/// A heading over tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name, without "Phase 1:".
    pub name: String,
    /// The line, from 1.
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RoadmapTask {
    /// Its id, between the asterisks.
    pub id: String,
    /// The rest of its line.
    pub description: String,
    /// The lines under it that are no properties, without their common indentation.
    pub body: String,
    pub mark: CheckMark,
    /// Its phase, by position in [`Roadmap::phases`].
    pub phase: Option<usize>,
    pub keys: Keys,
    /// Where it begins.
    pub place: Place,
    /// The byte of the checkbox's character in the file.
    pub checkbox: usize,
    /// The byte just behind its last line that says anything.
    pub end: usize,
}
