//! Whole graphs of tasks: a loop over loops.
//!
//! A task loop is a loop like any other, with a journal, a state file, a lock and a control
//! socket; what it does next is decided by [`descartes_kernel::sched`]. The attempts at each task
//! are a loop of their own, whose state file lies in the folder of the task loop.

mod attempt;
mod attempts;
mod ending;
mod found;
mod gate_baseline;
mod git;
mod git_error;
mod growth;
mod in_place;
mod launch;
mod locks;
mod memory;
mod orders;
mod place;
mod prepare;
mod prompt;
mod reload;
mod roadmap;
mod run;
mod scud;
mod scud_loop;
mod shell;
mod source;
mod spending;
mod survey;
mod task_file;
mod trees;
mod watch;

pub use found::{FoundGates, ScudGates, found_gates, project_gates, scud_gates};
pub use memory::MemorySource;
pub use prepare::{Retry, open_source};
pub use prompt::task_spec;
pub use roadmap::RoadmapSource;
pub use scud::{ScudSource, active_tag, find_task_file, tags_of_files};
pub use scud_loop::{ScudIterativeLoop, ScudLoopConfig};
pub use source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};
pub use survey::{WorkItem, WorkLocation, survey};

pub(crate) use prepare::{Occasion, Prepared, check_agents, prepare};

use descartes_kernel::graph::TaskId;
use descartes_kernel::sched::MarkEnd;
use descartes_kernel::state::Spent;

/// Something became of a task.
#[derive(Debug)]
pub(crate) enum TaskEvent {
    /// The loop of a piece of work is open.
    Opened {
        /// The piece of work.
        work: String,
        /// Where.
        slot: u32,
        /// The loop.
        loop_id: String,
        /// What it used that the task loop has not heard of: its host died.
        unheard: Spent,
    },
    /// What the run in a slot has spent so far.
    Spent(u32, Spent),
    /// The task file was written.
    FileWritten,
    /// An attempt is over.
    Attempt(Box<attempt::AttemptNews>),
    /// The place is ready to be worked in, or cannot be.
    Prepared(Result<(), git_error::GitError>),
    /// The place has something to say.
    LockNotice,
    /// A merge is over.
    Merged(TaskId, place::MergeDone),
    /// The gates were run for a task that somebody else marked done.
    MarkChecked(TaskId, MarkEnd),
    /// The commit of a wave is over.
    WaveCommitted(u32, place::WaveDone),
    /// The last try to land is over.
    Landed(place::LandDone),
}
