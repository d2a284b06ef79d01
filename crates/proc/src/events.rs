//! What a supervisor tells and is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// True for exit code 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The agent's process, named so that it can be told from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Process id; also the id of its process group.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
}

/// A process that could not be ended: another user's, or stuck in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Process id.
    pub pid: u32,
    /// Its short name, as `ps` shows it.
    pub command: String,
}

/// How a run is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// SIGTERM to every process group of the tree; what is left after `grace` is killed.
    Ask {
        /// Time between asking and killing.
        grace: Duration,
    },
    /// SIGKILL at once.
    Kill,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEvent {
    /// The agent itself has ended; parts of its tree may still be there.
    Exited {
        /// The run as numbered at its start.
        run: u64,
        /// How it ended.
        exit: Exit,
    },
    /// Nothing of the tree is left, except for `survivors`.
    Swept {
        /// The run as numbered at its start.
        run: u64,
        /// Processes that would not end.
        survivors: Vec<Survivor>,
        /// How many processes beside the agent had to be ended.
        killed: u32,
    },
    /// The guard was killed, and how the agent ended will never be known. `Swept` follows.
    GuardLost {
        /// The run as numbered at its start.
        run: u64,
    },
}

/// Called from a thread of the supervisor; shared by the guards that follow each other.
pub(crate) type Handler = Arc<dyn Fn(TreeEvent) + Send + Sync>;
