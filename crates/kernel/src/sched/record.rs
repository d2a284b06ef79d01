//! What is known about one task, one agent, one slot.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BlockReason, Evidence, StopKind, StopReason};
use descartes_plans::graph::{Mark, TaskStatus};

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// To be done.
    Pending,
    /// An agent works on it.
    Running {
        /// In this slot.
        slot: u32,
    },
    /// Green, and waiting for its merge or being merged.
    Landing,
    /// Done and merged.
    Done,
    /// Not reached.
    Blocked { reason: BlockReason },
    /// Not reached and passed over.
    Passed {
        /// Why it was not reached.
        reason: BlockReason,
    },
    /// Held by a person or another tool.
    Held {
        /// Its status in the file.
        status: TaskStatus,
    },
    /// Taken out of the work by a person.
    LeftOut {
        /// Its status in the file.
        status: TaskStatus,
    },
    /// Marked done by somebody else while the loop ran.
    MarkedDone {
        /// What the gates said about it.
        check: MarkCheck,
    },
    /// Taken out by somebody else while the loop ran.
    MarkedOut {
        /// Its status in the file: cancelled or deferred.
        status: TaskStatus,
    },
}

/// What the gates said about a task that somebody else marked done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkCheck {
    /// They are still to be run.
    Waiting,
    /// All were green on the merged tree.
    Green,
    /// There is none.
    NoGate,
    /// One was red, and the mark was made again after it had been taken back once.
    Red,
}

impl TaskState {
    /// The state of a task that has this status in the file.
    pub(super) fn of(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Pending | TaskStatus::InProgress => Self::Pending,
            TaskStatus::Done => Self::Done,
            TaskStatus::Cancelled | TaskStatus::Deferred => Self::LeftOut { status },
            TaskStatus::Review
            | TaskStatus::Blocked
            | TaskStatus::Failed
            | TaskStatus::Expanded => Self::Held { status },
        }
    }

    /// The state of a task that somebody else gave this status while the loop ran.
    pub(super) fn by_others(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Done => Self::MarkedDone {
                check: MarkCheck::Waiting,
            },
            TaskStatus::Cancelled | TaskStatus::Deferred => Self::MarkedOut { status },
            status => Self::of(status),
        }
    }

    /// Whether the task is tried again where a person asks for blocked tasks.
    pub(super) fn is_retried(&self) -> bool {
        match self {
            Self::Blocked { .. } => true,
            Self::Held { status } => *status == TaskStatus::Blocked,
            _ => false,
        }
    }

    /// Whether somebody else marked the task while the loop ran.
    pub fn is_marked(&self) -> bool {
        matches!(self, Self::MarkedDone { .. } | Self::MarkedOut { .. })
    }

    pub(super) fn mark(&self, trust_marks: bool) -> Mark {
        match self {
            Self::Pending => Mark::Open,
            Self::Running { .. } | Self::Landing => Mark::Busy,
            Self::Done | Self::Passed { .. } => Mark::Done,
            Self::Blocked { .. } | Self::Held { .. } | Self::LeftOut { .. } => Mark::Stuck,
            Self::MarkedDone { check } => match check {
                MarkCheck::Waiting => Mark::Busy,
                MarkCheck::Green | MarkCheck::NoGate => Mark::Done,
                MarkCheck::Red if trust_marks => Mark::Done,
                MarkCheck::Red => Mark::Stuck,
            },
            Self::MarkedOut { .. } => Mark::Stuck,
        }
    }
}

/// What is known about one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) state: TaskState,
    /// Attempts that failed since the task was opened.
    pub(super) failed: u32,
    /// Attempts from before a person opened it again.
    pub(super) earlier: u32,
    /// Attempts that a dead host or a person cut short.
    pub(super) interrupted: u32,
    pub(super) last_slot: Option<u32>,
    pub(super) evidence: Option<Evidence>,
    /// The status that a person gave it while it was busy.
    pub(super) wish: Option<TaskStatus>,
    /// Whether the file says that it is in progress because of us.
    pub(super) claimed: bool,
    /// Whether a mark of it was taken back because a gate was red; that is done once.
    pub(super) set_back: bool,
    /// Whether a gate failed on its merged work; it is asked once more before that counts.
    pub(super) failed_merge: bool,
    pub(super) is_ready: bool,
    pub(super) is_open: bool,
}

impl Record {
    pub(super) fn new(state: TaskState) -> Self {
        Self {
            state,
            failed: 0,
            earlier: 0,
            interrupted: 0,
            last_slot: None,
            evidence: None,
            wish: None,
            claimed: false,
            set_back: false,
            failed_merge: false,
            is_ready: false,
            is_open: false,
        }
    }

    /// Attempts that were made and count.
    pub(super) fn attempts(&self) -> u32 {
        self.earlier + self.failed
    }

    /// The number of the next attempt; none is used twice for an attempt that counted.
    pub(super) fn next_attempt(&self) -> u32 {
        self.earlier + self.failed + self.interrupted + 1
    }
}

/// Tasks that wait for the same agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) agent: Option<String>,
    /// Ready tasks by rank.
    pub(super) ready: BTreeSet<u32>,
    pub(super) held_until: Option<Timestamp>,
}

/// A worktree slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Tasks that run in it: one, or those of a wave.
    pub(super) tasks: u32,
    /// Whether anything that ran in it since it was free counts as an attempt.
    pub(super) counts: bool,
}

/// Why and how the loop stops early.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) how: StopKind,
    pub(super) why: StopReason,
}
