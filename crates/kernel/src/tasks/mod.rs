//! Task loops as the rest of the kernel sees them: what was asked for, and where every task
//! stands as a fold of the journal. What is done next is decided in [`crate::sched`].

mod attempt;
mod config;
mod state;

pub use attempt::{attempt_end, gate_words};
pub use config::{RoadmapDefaults, TaskFile, TasksConfig, WorkPlace};
pub use state::{
    BlockedEntry, Counted, Landing, MarkedEntry, PlannedTask, RunningTask, TaskEntry, TasksState,
    WaveCommit,
};
