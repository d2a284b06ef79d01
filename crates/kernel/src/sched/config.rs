//! How a task loop is to be scheduled.

/// Whether a wave ends before the next begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Barrier {
    /// A task starts when all waves before its own are over and committed.
    #[default]
    On,
    /// A task starts as soon as what it depends on is merged.
    Off,
}

/// What one agent is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    #[default]
    Task,
    /// All tasks of a wave that can be done (`--no-sub-agents`).
    Wave,
}

/// How a task loop is to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedConfig {
    /// Tasks at the same time, at least 1.
    pub slots: u32,
    /// Whether waves are kept apart.
    pub barrier: Barrier,
    /// Tasks whose work is merged and gated together, at the most; 1 is each alone.
    pub merge_batch: u32,
    /// Attempts at a task that does not say otherwise.
    pub max_attempts: u32,
    /// Attempts over all tasks; `None` is no limit.
    pub max_iterations: Option<u32>,
    /// What one agent is given.
    pub grouping: Grouping,
    /// Whether a task that somebody else marked while the loop ran counts as the mark says.
    pub trust_marks: bool,
    /// Whether the merged tree is the one that agents work in (`--in-place`): gates on it have to
    /// wait until no agent works.
    pub shared_tree: bool,
    /// Whether attempts go on without their host, since workers on other machines make them: a host that
    /// takes the loop up asks for them again under the same numbers.
    pub outlive_host: bool,
}

impl Default for SchedConfig {
    fn default() -> Self {
        Self {
            slots: 1,
            barrier: Barrier::On,
            merge_batch: 1,
            max_attempts: 3,
            max_iterations: Some(100),
            grouping: Grouping::Task,
            trust_marks: false,
            shared_tree: false,
            outlive_host: false,
        }
    }
}
