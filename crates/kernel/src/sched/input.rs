//! What comes into the scheduler, and what goes out.

use jiff::Timestamp;

use super::{AttemptEnd, BlockReason, CommitEnd, Ended, Evidence, MarkEnd, MergeEnd, TrainEnd};
use crate::event::Decided;
use crate::outcome::Budget;
use descartes_plans::graph::{TaskId, TaskStatus};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Start, or go on after recovery. Statuses that differ from what is known are to be told
    /// before, with [`Input::StatusSeen`]: until now they are a person's wish.
    Begin,
    /// An attempt ended.
    Finished {
        task: TaskId,
        end: AttemptEnd,
    },
    /// A merge ended.
    Merged {
        task: TaskId,
        end: MergeEnd,
    },
    /// The work of a train was stacked.
    TrainStacked {
        train: u32,
        /// What does not fit onto the merged work, or could not be committed.
        out: Vec<(TaskId, MergeEnd)>,
        /// What does not fit onto the work of another member.
        held: Vec<TaskId>,
    },
    /// The gates were run on a stack of a train. Where they were green, it is merged.
    TrainGated {
        train: u32,
        /// So many members from the first on.
        members: u32,
        end: TrainEnd,
        /// What the gates took.
        gate_ms: u64,
    },
    /// The commit of a wave ended.
    WaveCommitted {
        wave: u32,
        end: CommitEnd,
    },
    /// A claim met another status: its attempt was not started.
    ClaimRefused {
        task: TaskId,
        /// The status in the file.
        found: TaskStatus,
    },
    /// The status of a task in the file, where it may have changed.
    StatusSeen {
        task: TaskId,
        /// The status in the file.
        status: TaskStatus,
    },
    /// The gates were run for a task that somebody else marked done.
    MarkChecked {
        task: TaskId,
        /// What they said.
        end: MarkEnd,
    },
    /// Tasks that were still to be done are no longer in the file, while no host could see it.
    Removed {
        tasks: Vec<TaskId>,
    },
    /// A person wants blocked tasks to be tried again.
    RetryBlocked,
    /// The task file cannot be read or written now: nothing new starts, nothing ends.
    FileAway,
    /// It can again.
    FileBack,
    /// Time has passed.
    Wake {
        /// The time now.
        now: Timestamp,
    },
    /// A person says not to wait for limits any longer.
    RetryNow,
    /// Hold before the next attempt.
    Pause,
    Unpause,
    /// Finish what runs, start nothing new.
    Drain,
    /// End what runs.
    Cancel,
    /// A budget of the whole loop is used up.
    BudgetReached {
        budget: Budget,
        /// What was allowed.
        limit: f64,
        /// What was used.
        used: f64,
    },
}

/// A task that an agent is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub task: TaskId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// What the attempt before left behind.
    pub evidence: Option<Evidence>,
}

/// Something to be done outside, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write to the journal.
    Append(Box<Decided>),
    /// Set the task to in-progress in the file; where it is neither pending nor in progress,
    /// leave it, leave the task out of the [`Effect::StartAttempt`] that follows, and answer with
    /// [`Input::ClaimRefused`].
    Claim { task: TaskId },
    /// Start an agent in a slot; answer with [`Input::Finished`] for each of its tasks.
    StartAttempt {
        /// The worktree slot, from 0.
        slot: u32,
        /// What it is given: one task, or those of a wave.
        tasks: Vec<Attempt>,
    },
    /// End the agents of all slots; each task still answers with [`Input::Finished`].
    StopAttempts,
    /// A budget of the whole is used up: end the agents of all slots. What they did is judged as
    /// that of any run; each task still answers with [`Input::Finished`].
    EndRuns { budget: Budget },
    /// End the agent of a task that is no longer in the file; its work stays on its branch.
    Abandon { task: TaskId },
    /// Merge a task's work and prove it; answer with [`Input::Merged`].
    Merge { task: TaskId },
    /// Stack the work of these tasks in order; answer with [`Input::TrainStacked`].
    StackTrain { train: u32, tasks: Vec<TaskId> },
    /// Run the gates on the work of the first of these tasks, stacked, and merge it where they are
    /// green; answer with [`Input::TrainGated`].
    GateTrain {
        train: u32,
        tasks: Vec<TaskId>,
        /// So many of them.
        members: u32,
    },
    /// Set the task to done in the file.
    MarkDone { task: TaskId },
    /// Set the task to blocked in the file.
    MarkBlocked { task: TaskId, reason: BlockReason },
    /// Set a task that was claimed back to pending.
    Release { task: TaskId },
    /// Run the gates on the merged tree for a task that somebody else marked done; answer with
    /// [`Input::MarkChecked`].
    CheckMark { task: TaskId },
    /// Set a task that was wrongly marked done back to pending.
    SetBack {
        task: TaskId,
        /// The red gate and the end of its output.
        tail: String,
    },
    /// Commit and land a wave; answer with [`Input::WaveCommitted`].
    CommitWave {
        /// The wave, from 1.
        wave: u32,
        /// What was done in it since its last commit.
        tasks: Vec<TaskId>,
    },
    /// Answer with [`Input::Wake`] at that time.
    Wait { until: Timestamp },
    /// The loop is over.
    Finish(Box<Ended>),
}
