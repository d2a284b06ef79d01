//! How a task loop ended, with every task accounted for.

use serde::{Deserialize, Serialize};

use super::record::{MarkCheck, TaskState};
use super::state::Scheduler;
use super::{BlockReason, Outcome, StopReason};
use crate::outcome::IterativeExitReason;
use descartes_plans::graph::{TaskId, TaskIx, TaskStatus};

/// A held task names so many of the tasks that hold it: one that waits for a whole phase may have thousands.
const BLOCKERS_NAMED: usize = 20;

/// A task that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTask {
    pub task: TaskId,
    pub reason: BlockReason,
    /// Attempts that were made.
    pub attempts: u32,
}

/// A task that could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    pub task: TaskId,
    /// Its status in the file, where a person holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// What it depends on that is not going to be done.
    pub by: Vec<TaskId>,
}

/// A task that somebody else marked or took out while the loop ran: it was not proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedTask {
    pub task: TaskId,
    /// The status that it was given; none where it was taken out of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// What the gates said about one that was marked done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<MarkCheck>,
    /// Whether such marks are trusted.
    pub trusted: bool,
}

/// Where every task of a loop stands; each in one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Done and merged.
    pub done: Vec<TaskId>,
    /// Cancelled or deferred by a person.
    pub left_out: Vec<TaskId>,
    /// Not reached, and passed over as its author wished.
    pub passed: Vec<BlockedTask>,
    /// Not reached.
    pub blocked: Vec<BlockedTask>,
    /// Not started, and what holds them.
    pub held: Vec<HeldTask>,
    /// Still to be done.
    pub open: Vec<TaskId>,
    /// Marked or taken out by somebody else while the loop ran.
    #[serde(default)]
    pub marked: Vec<MarkedTask>,
}

/// The end of a task loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Why it ended.
    pub outcome: Outcome,
    /// Where every task stands.
    pub account: Account,
}

impl Scheduler {
    /// Where every task stands now.
    pub fn account(&self) -> Account {
        let mut account = Account::default();
        for task in self.plan.waves().iter().flatten().copied() {
            self.account_for(task, &mut account);
        }
        let gone = self.removed.iter();
        let gone = gone.filter(|id| self.plan.graph().find(id).is_none());
        account.marked.extend(gone.map(|id| MarkedTask {
            task: id.clone(),
            status: None,
            check: None,
            trusted: self.config.trust_marks,
        }));
        account
    }

    fn account_for(&self, task: TaskIx, account: &mut Account) {
        let record = self.record(task);
        let id = self.id(task);
        let blocked = |reason: &BlockReason| BlockedTask {
            task: id.clone(),
            reason: reason.clone(),
            attempts: record.attempts(),
        };
        match &record.state {
            TaskState::Done => account.done.push(id),
            TaskState::MarkedDone { check } => account.marked.push(MarkedTask {
                task: id,
                status: Some(TaskStatus::Done),
                check: Some(*check),
                trusted: self.config.trust_marks,
            }),
            TaskState::MarkedOut { status } => account.marked.push(MarkedTask {
                task: id,
                status: Some(*status),
                check: None,
                trusted: self.config.trust_marks,
            }),
            TaskState::LeftOut { .. } => account.left_out.push(id),
            TaskState::Passed { reason } => account.passed.push(blocked(reason)),
            TaskState::Blocked { reason } => account.blocked.push(blocked(reason)),
            TaskState::Held { status } => {
                let (status, by) = (Some(*status), Vec::new());
                account.held.push(HeldTask {
                    task: id,
                    status,
                    by,
                });
            }
            TaskState::Pending if !self.frontier.is_alive(task) => {
                let by = self.frontier.blockers(&self.plan, task, BLOCKERS_NAMED);
                let by = by.into_iter().map(|before| self.id(before)).collect();
                account.held.push(HeldTask {
                    task: id,
                    status: None,
                    by,
                });
            }
            TaskState::Pending | TaskState::Running { .. } | TaskState::Landing => {
                account.open.push(id);
            }
        }
    }
}

impl Ended {
    /// The same as the reason for which any loop ends.
    pub fn exit_reason(&self) -> IterativeExitReason {
        use IterativeExitReason as Reason;
        match &self.outcome {
            Outcome::Complete => Reason::GatesPassed,
            Outcome::MaxIterations { .. } => Reason::MaxIterationsReached,
            Outcome::TasksBlocked => Reason::TasksBlocked {
                tasks: self.account.not_done(),
                unlanded: None,
            },
            Outcome::Stopped { why } => match why {
                StopReason::Cancelled => Reason::UserCancelled,
                StopReason::Budget {
                    budget,
                    limit,
                    used,
                } => Reason::BudgetExhausted {
                    budget: *budget,
                    limit: *limit,
                    used: *used,
                },
                StopReason::TaskFailed { .. } => Reason::TasksBlocked {
                    tasks: self.account.not_done(),
                    unlanded: None,
                },
                StopReason::CommitFailed { wave, message } => Reason::Error {
                    message: format!("wave {wave} could not be committed: {message}"),
                },
            },
        }
    }
}

impl Account {
    /// Ids of the tasks that are blocked, held, open, or marked by others and not trusted.
    pub fn not_done(&self) -> Vec<String> {
        let marked = self.marked.iter().filter(|marked| !marked.trusted);
        let blocked = self.blocked.iter().map(|blocked| &blocked.task);
        let held = self.held.iter().map(|held| &held.task);
        blocked
            .chain(held)
            .chain(&self.open)
            .chain(marked.map(|marked| &marked.task))
            .map(ToString::to_string)
            .collect()
    }

    /// How many tasks it tells of.
    pub fn total(&self) -> usize {
        let unreached = self.blocked.len() + self.passed.len() + self.held.len();
        self.done.len() + self.left_out.len() + unreached + self.open.len() + self.marked.len()
    }

    /// Whether nothing is left to be done, and nothing is to be believed that was not proven.
    pub fn is_complete(&self) -> bool {
        let trusted = self.marked.iter().all(|marked| marked.trusted);
        trusted && self.blocked.is_empty() && self.held.is_empty() && self.open.is_empty()
    }
}
