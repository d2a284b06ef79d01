//! What becomes of the tasks of a loop while it waits.

use std::sync::mpsc::Sender;

use descartes_kernel::fleet::KnownOffer;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sandbox::{Denial, PlantedInGit};
use descartes_kernel::sched::{AttemptEnd, MarkEnd};
use descartes_kernel::state::{IterationSummary, Spent};
use descartes_kernel::tasks::{AttemptTrouble, Landing};
use descartes_plans::graph::TaskId;
use serde::{Deserialize, Serialize};

use super::asking::SourceAnswer;
use super::git_error::GitError;
use super::order::AttemptOrder;
use super::place::{Closed, LandDone, MergeDone, StackDone, TrainDone, WaveDone};

/// Something became of a task.
#[derive(Debug)]
pub(crate) enum TaskEvent {
    /// The loop of a piece of work is open.
    Opened {
        /// The piece of work.
        work: String,
        /// Where.
        slot: u32,
        /// Which piece of work of this host's.
        serial: u64,
        /// The loop.
        loop_id: String,
        /// What it used that the task loop has not heard of: its host died.
        unheard: Spent,
        /// The worker on another machine that opened it.
        worker: Option<String>,
    },
    /// An attempt is about to be offered to workers: it is, once that is in the journal.
    Offering {
        work: String,
        offer: KnownOffer,
        recorded: Sender<()>,
    },
    /// Something that a person should know.
    Notice(String),
    /// The engine of workers on other machines does not answer, or answers again.
    Engine { message: String, answers: bool },
    /// More or fewer workers are there.
    RoomChanged,
    /// What the run of a piece of work has spent so far.
    Spent(u64, Spent),
    /// The task file was written.
    FileWritten,
    /// What keeps the tasks has answered.
    Answered(Box<SourceAnswer>),
    /// An attempt is over.
    Attempt(Box<AttemptNews>),
    /// The place is ready to be worked in, or cannot be.
    Prepared(Result<Option<Landing>, GitError>),
    /// The place has something to say.
    LockNotice,
    /// A merge is over.
    Merged(TaskId, MergeDone),
    /// The work of a train was stacked.
    Stacked(u32, StackDone),
    /// The gates were run on a stack of a train: the train, its members, what they said, how long.
    TrainGated {
        train: u32,
        members: u32,
        done: TrainDone,
        gate_ms: u64,
    },
    /// The gates were run for a task that somebody else marked done.
    MarkChecked(TaskId, MarkEnd),
    /// The commit of a wave is over.
    WaveCommitted(u32, WaveDone),
    /// The last try to land is over.
    Landed(LandDone),
    /// What work that the attempt in this slot builds on has delivered, in words.
    Delivered(u32, Vec<(String, Option<String>)>),
    /// What is not needed any more was removed.
    Closed(Closed),
}

/// What a run of a task's agent came to, for the task loop's own journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunNews {
    pub(crate) loop_id: String,
    pub(crate) iterations: u32,
    pub(crate) summary: IterationSummary,
    pub(crate) spent: Spent,
    /// Whether it had the prompt of this attempt. One that only its dead host had heard of had another.
    pub(crate) had_prompt: bool,
}

/// An attempt that is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AttemptNews {
    pub(crate) slot: u32,
    /// Which piece of work of this host's: a slot may hold another when it is heard.
    #[serde(default)]
    pub(crate) serial: u64,
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) end: AttemptEnd,
    pub(crate) run: Option<RunNews>,
    /// Something that no other attempt would fare better with.
    pub(crate) ends_all: Option<IterativeExitReason>,
    /// What went wrong with the host itself.
    pub(crate) trouble: Option<String>,
    /// The same where that is a worker's, or where its work could not be taken in: not to be told twice.
    #[serde(skip)]
    pub(crate) remote_trouble: Option<AttemptTrouble>,
    /// Files that its gates hang on and that are not as they were.
    pub(crate) gate_files: Vec<String>,
    /// What its sandbox seems to have denied to it.
    #[serde(default)]
    pub(crate) denied: Vec<Denial>,
    /// What it left where it would change what the user's next git command does.
    pub(crate) planted: Vec<PlantedInGit>,
    /// Why its work is in no commit.
    pub(crate) no_commit: Option<String>,
    pub(crate) warnings: Vec<String>,
    /// The number of its offer, where nobody is at work on that any more.
    #[serde(skip)]
    pub(crate) offer_over: Option<u64>,
    /// Told once the end of the attempt is in the journal.
    #[serde(skip)]
    pub(crate) recorded: Option<Sender<()>>,
}

impl AttemptNews {
    /// An attempt of which nothing is known but that it is over.
    pub(super) fn interrupted(order: &AttemptOrder) -> Self {
        Self {
            slot: order.slot,
            serial: order.serial,
            tasks: order.tasks.clone(),
            end: AttemptEnd::Interrupted,
            run: None,
            ends_all: None,
            trouble: None,
            remote_trouble: None,
            gate_files: Vec::new(),
            denied: Vec::new(),
            planted: Vec::new(),
            no_commit: None,
            warnings: Vec::new(),
            offer_over: None,
            recorded: None,
        }
    }
}
