//! What is known about one task, one agent, one slot.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{BlockReason, Evidence, StopKind, StopReason};
use crate::graph::{Mark, TaskStatus};

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
    Blocked {
        /// Why.
        reason: BlockReason,
    },
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

    pub(super) fn mark(&self) -> Mark {
        match self {
            Self::Pending => Mark::Open,
            Self::Running { .. } | Self::Landing => Mark::Busy,
            Self::Done | Self::Passed { .. } => Mark::Done,
            Self::Blocked { .. } | Self::Held { .. } | Self::LeftOut { .. } => Mark::Stuck,
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
