//! A run of an agent while it is under way.

use std::sync::Arc;

use descartes_agents::reader::Spending;
use descartes_kernel::event::{EndedBy, ExitStatus};
use descartes_kernel::limits::Watch;
use descartes_kernel::outcome::Budget;
use descartes_kernel::sandbox::SandboxPlan;
use descartes_proc::RunClock;

use super::sink::LastOutput;

/// A run that is under way.
pub(super) struct LiveRun {
    /// The supervisor's number of its tree.
    pub(super) tree: u64,
    pub(super) began: RunClock,
    pub(super) watch: Watch,
    pub(super) pulse: Arc<LastOutput>,
    pub(super) ended_by: EndedBy,
    pub(super) exit: Option<ExitStatus>,
    /// What it has told of its spending so far.
    pub(super) spent: Spending,
    /// A budget of the whole that was used up while it told its result.
    pub(super) budget_gone: Option<Budget>,
    /// What it may write and see, where it is confined.
    pub(super) plan: Option<SandboxPlan>,
}
