//! Whole graphs of tasks: a loop over loops.
//!
//! A task loop is a loop like any other, with a journal, a state file, a lock and a control
//! socket; what it does next is decided by [`descartes_kernel::sched`]. The attempts at each task
//! are a loop of their own, whose state file lies in the folder of the task loop.

mod asking;
mod attempt;
mod attempt_control;
mod attempts;
mod content_mark;
mod ending;
pub(crate) mod event;
mod executor;
pub mod fleet;
mod found;
mod gate_baseline;
mod git;
mod git_cache;
mod git_error;
mod growth;
mod in_place;
mod launch;
mod left_by_gates;
pub mod lists;
mod locks;
mod memory;
mod order;
mod orders;
mod place;
mod planned;
mod prepare;
mod prompt;
mod proven_files;
mod reload;
mod roadmap;
mod run;
mod runner;
mod runner_state;
mod scud;
mod scud_loop;
mod shared_settings;
mod shell;
mod source;
mod spending;
mod starting;
mod survey;
mod task_file;
mod trees;
mod watch;

pub use crate::host::{AgentTrouble, Retry, look_for_agent};
pub use found::{FoundGates, ScudGates, found_gates, project_gates, scud_gates};
pub use memory::MemorySource;
pub use prepare::open_source;
pub use prompt::task_spec;
pub use roadmap::RoadmapSource;
pub use scud::{ScudSource, active_tag, find_task_file, tags_of_files};
pub use scud_loop::{ScudIterativeLoop, ScudLoopConfig};
pub use source::{Claim, Keeps, Loaded, SourceError, TaskBrief, TaskSource};
pub use survey::{WorkItem, WorkLocation, survey};

pub(crate) use prepare::prepare;
