//! What is known of a loop and of the agents here.

use descartes_kernel::state::LoopState;
use descartes_views::view::{Life, Story, TaskLanes};

/// How a loop stands.
#[derive(Clone, Debug)]
pub struct KnownLoop {
    pub state: LoopState,
    /// Whether a process has it.
    pub life: Life,
    /// The last iterations, waits and notes.
    pub story: Story,
    /// Attempts at tasks.
    pub lanes: TaskLanes,
}

/// An agent that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    /// What starts it.
    pub command: String,
    /// Its version, if it told one.
    pub version: Option<String>,
}
