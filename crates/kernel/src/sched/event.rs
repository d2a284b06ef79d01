//! What the journal of a task loop remembers: facts, and what was decided about them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fleet::AgentLogin;
use crate::outcome::Budget;
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_text::units::Secs;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The agent ended well and every gate was green.
    Green {
        /// Whether the tree changed.
        changed: bool,
        /// Whether the promise was claimed.
        claimed: bool,
        /// Whether nothing but the end of its agent says that it is done: no promise was asked for, and
        /// there is no gate.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unproven: bool,
    },
    /// A gate was red.
    Red {
        /// The gate and the end of its output.
        tail: String,
    },
    /// The agent failed or told an error.
    Failed { message: String },
    /// It hung or ran out of its time: it was ended in the middle of its work.
    CutOff {
        /// Which limit ended it.
        message: String,
        /// The gate that was red after it, and the end of its output; empty where none was.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
        /// How much time it had, where that was used up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Secs>,
    },
    /// The agent ended well, and did not claim the promise that it needs. It worked: this is no
    /// failure of the agent.
    NoPromise,
    /// The agent ended well, changed nothing and claimed nothing.
    NothingDone,
    /// It was green, but changed files that the task may not touch.
    OutOfScope {
        /// Which, for the agent of the next attempt.
        tail: String,
    },
    /// It was green, but holds work that git cannot carry into another tree: a repository inside
    /// the tree, a commit inside a submodule.
    Uncarried {
        /// What, and what to do about it, for the agent of the next attempt.
        tail: String,
    },
    /// A limit of the task's own is reached: its time, its cost, attempts without progress.
    AtLimit { message: String },
    /// Its work could not be taken in, again and again.
    NotTakenIn { message: String },
    /// A person cancelled the loop of this task, and not the whole.
    Cancelled,
    /// The agent said that it cannot be done.
    BlockedByAgent { message: String },
    /// The agent's provider told a limit: no attempt was made.
    Limited {
        /// When it is over.
        until: Timestamp,
        /// The login that it holds, where a worker on another machine made the attempt: workers with
        /// other logins go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        login: Option<AgentLogin>,
    },
    /// A person or a dead host ended it.
    Interrupted,
}

/// How a merge ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum MergeEnd {
    /// Merged, and every gate was green on the merged tree.
    Merged,
    /// The work does not fit onto what was merged meanwhile.
    Conflict {
        /// Which files, and how.
        tail: String,
    },
    /// A gate was red on the merged tree.
    Red {
        /// The gate and the end of its output.
        tail: String,
    },
    /// It was stopped before it was decided; it is done again when the loop goes on.
    Interrupted,
    /// It could not be merged or committed at all.
    Failed {
        /// Git's words.
        message: String,
    },
}

/// What the gates said about a stack of tasks' work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TrainEnd {
    /// Every gate was green.
    Green,
    /// A gate was red.
    Red {
        /// The gate and the end of its output.
        tail: String,
        /// The task whose own check it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check_of: Option<TaskId>,
    },
    /// It was stopped before it was decided.
    Interrupted,
    /// The work could not be put together at all.
    Failed {
        /// Git's words.
        message: String,
    },
}

/// How the commit of a wave ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum CommitEnd {
    /// Committed, or nothing was to be committed.
    Committed {
        /// The commit, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// It could not be committed.
    Failed {
        /// Git's words.
        message: String,
    },
}

/// What the gates said about a task that somebody else marked done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum MarkEnd {
    /// Every gate was green on the merged tree.
    Green,
    /// There is no gate to ask.
    NoGate,
    /// A gate was red on the merged tree.
    Red {
        /// The gate and the end of its output.
        tail: String,
    },
    /// The gates were stopped before they had an answer.
    Interrupted,
}

/// What the next attempt has to know about the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What kind of failure it was.
    pub kind: EvidenceKind,
    /// The end of its output, or what happened.
    pub text: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// A gate was red.
    RedGate,
    /// A gate was red after the merge.
    RedMerge,
    /// The merge met a conflict.
    Conflict,
    /// The agent failed.
    AgentFailed,
    /// The agent was ended in the middle of its work: it hung or ran out of its time.
    CutOff,
    /// Files outside of the task's scope were changed.
    OutOfScope,
    /// Work that git cannot carry into another tree.
    Uncarried,
    /// The agent changed nothing and claimed nothing.
    NothingDone,
    /// The agent did not claim the promise.
    NoPromise,
    /// Somebody marked the task done, and a gate was red.
    MarkedRed,
}

/// Why a task is blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum BlockReason {
    /// Its attempts are used up; the last failure is told.
    Attempts {
        /// The last failure.
        last: Evidence,
        /// Attempts that were made since it was opened; 0 in journals that do not tell.
        #[serde(default)]
        made: u32,
        /// How many it may have.
        #[serde(default)]
        limit: u32,
    },
    /// Its agent said that it cannot be done.
    Agent { message: String },
    /// A limit of the task's own.
    Limit { message: String },
    /// Its work could not be merged or committed.
    Commit {
        /// Git's words.
        message: String,
    },
}

/// What becomes of a task after an attempt or a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum Next {
    /// It waits for its merge.
    Land,
    /// It is done.
    Done,
    /// It is attempted again, with this in mind; the attempt counts.
    Retry {
        /// What the next attempt has to know.
        evidence: Evidence,
    },
    /// It is attempted again as if nothing had been; the attempt does not count.
    Again,
    /// It is blocked.
    Block { reason: BlockReason },
    /// It is passed over: what depends on it may start.
    Pass {
        /// Why it was not reached.
        reason: BlockReason,
    },
    /// It gets the status that a person gave it meanwhile.
    Yield { status: TaskStatus },
}

impl Next {
    /// The status that a task has with it.
    pub fn status(&self) -> TaskStatus {
        match self {
            Self::Land => TaskStatus::InProgress,
            Self::Done => TaskStatus::Done,
            Self::Retry { .. } | Self::Again | Self::Pass { .. } => TaskStatus::Pending,
            Self::Block { .. } => TaskStatus::Blocked,
            Self::Yield { status } => *status,
        }
    }
}

/// What a status seen in the task file means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The task has this status from now on.
    Take,
    /// Somebody else works on the task.
    Elsewhere,
    /// The task gets it when its attempt has ended; an open status takes such a wish back.
    Note,
    /// Somebody else marked the task done or took it out while the loop ran: it is not run, and
    /// not proven.
    Mark,
}

/// How a loop stops early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// What runs is finished and merged; nothing new starts.
    Drain,
    /// What runs is ended; nothing more is merged.
    Kill,
}

/// Why a loop stops early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// A person or signal.
    Cancelled,
    /// A budget of the whole loop is used up.
    Budget {
        budget: Budget,
        /// What was allowed.
        limit: f64,
        /// What was used.
        used: f64,
    },
    /// A task that stops everything (`on_fail: stop`) was not reached.
    TaskFailed { task: TaskId },
    /// A wave could not be committed.
    CommitFailed {
        wave: u32,
        /// Git's words.
        message: String,
    },
}

impl StopReason {
    /// Whether something failed, rather than somebody wished it.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::TaskFailed { .. } | Self::CommitFailed { .. })
    }
}

/// One line of a task loop's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The loop began; tasks that were not pending are told.
    Began {
        /// Statuses in the file at that time.
        statuses: Vec<(TaskId, TaskStatus)>,
    },
    /// The loop goes on after it ended early or its host died.
    Resumed,
    /// An attempt is about to start.
    AttemptStarted {
        task: TaskId,
        /// The worktree slot.
        slot: u32,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// The claim of a task met another status in the file; no attempt was made.
    ClaimRefused {
        task: TaskId,
        /// The status that was found.
        found: TaskStatus,
    },
    /// An attempt ended.
    AttemptEnded {
        task: TaskId,
        end: AttemptEnd,
        /// What becomes of the task.
        next: Next,
    },
    /// A merge is about to start.
    MergeStarted { task: TaskId },
    /// A merge ended.
    MergeEnded {
        task: TaskId,
        end: MergeEnd,
        /// What becomes of the task.
        next: Next,
    },
    /// Proven work of several tasks is about to be merged together.
    TrainStarted {
        /// The train, from 1.
        train: u32,
        tasks: Vec<TaskId>,
    },
    /// The work was stacked.
    TrainStacked {
        train: u32,
        /// What fits onto each other, in that order.
        tasks: Vec<TaskId>,
        /// What fits onto the merged work, but not onto the work of these: it waits for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<TaskId>,
    },
    /// The gates were run on a stack; a green one is merged.
    TrainGated {
        train: u32,
        /// So many tasks of the train from the first on.
        members: u32,
        end: TrainEnd,
        /// What the gates took.
        gate_ms: u64,
    },
    /// A gate failed and then passed on the same tree; the pass counts.
    FlakyGate {
        /// The task that was merged last on that tree.
        task: TaskId,
    },
    /// The train is over.
    TrainEnded {
        train: u32,
        /// What is merged with a later one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        back: Vec<TaskId>,
    },
    /// Somebody else changed a status in the file.
    StatusSeen {
        task: TaskId,
        /// Its status in the file.
        status: TaskStatus,
        /// What that means.
        seen: Seen,
    },
    /// The gates are about to be run for a task that somebody else marked done.
    MarkCheckStarted { task: TaskId },
    /// The gates were run for a task that somebody else marked done.
    MarkChecked {
        task: TaskId,
        /// What they said.
        end: MarkEnd,
        /// Whether the task is set back to pending.
        set_back: bool,
    },
    /// Blocked tasks are tried again, with all their attempts.
    Retried { tasks: Vec<TaskId> },
    /// A wave is about to be committed.
    WaveCommitStarted {
        /// The wave, from 1.
        wave: u32,
        /// What was done in it since its last commit.
        tasks: Vec<TaskId>,
    },
    /// A wave was committed, or could not be.
    WaveCommitEnded {
        /// The wave, from 1.
        wave: u32,
        end: CommitEnd,
    },
    /// The limit of an agent is over.
    LimitOver {
        /// The agent; `None` is the loop's own.
        agent: Option<String>,
    },
    /// Nothing new starts until told.
    Paused,
    /// Work goes on.
    Unpaused,
    /// The loop stops early.
    Stopping { how: StopKind, why: StopReason },
    /// Tasks were added to the file or taken out; statuses of new ones that are not pending.
    Replanned {
        /// Tasks that are new. Nothing that was known of the same name before counts for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<TaskId>,
        /// Statuses of new tasks.
        statuses: Vec<(TaskId, TaskStatus)>,
        /// Tasks that were still to be done and that somebody took out while the loop ran.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<TaskId>,
    },
    /// The loop ended.
    Finished { outcome: Outcome },
}

impl Event {
    /// The statuses that tasks have from this event on, as everybody who folds a journal tells them.
    pub fn statuses(&self) -> Vec<(&TaskId, TaskStatus)> {
        match self {
            Self::Began { statuses } | Self::Replanned { statuses, .. } => statuses
                .iter()
                .map(|(task, status)| (task, *status))
                .collect(),
            Self::AttemptStarted { task, .. } => vec![(task, TaskStatus::InProgress)],
            Self::ClaimRefused { task, found } => vec![(task, *found)],
            Self::AttemptEnded { task, next, .. } | Self::MergeEnded { task, next, .. } => {
                vec![(task, next.status())]
            }
            Self::StatusSeen { task, status, seen } if *seen != Seen::Note => {
                vec![(task, *status)]
            }
            Self::MarkChecked {
                task,
                set_back: true,
                ..
            } => vec![(task, TaskStatus::Pending)],
            Self::Retried { tasks } => {
                let pending = |task| (task, TaskStatus::Pending);
                tasks.iter().map(pending).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Why a task loop ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Every task is done, left out or passed over.
    Complete,
    /// Nothing more can run.
    TasksBlocked,
    /// The attempts over all tasks are used up.
    MaxIterations { limit: u32 },
    /// It was stopped early.
    Stopped { why: StopReason },
}

/// An event that cannot have happened in this state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "task `{task}` cannot have `{event}` while it is {state}; the journal belongs to a different \
     task file"
)]
pub struct IllegalEvent {
    pub task: TaskId,
    /// The event's name.
    pub event: &'static str,
    /// Where the task stood.
    pub state: String,
}
