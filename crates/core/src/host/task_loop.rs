//! A loop whose work is a graph of tasks, as far as a host has to know it.

use std::collections::BTreeSet;
use std::path::Path;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sched;
use descartes_kernel::state::LoopState;
use descartes_plans::lists::KnownTask;

use super::driver::Driver;
use super::end::HostEnd;
use super::error::HostError;
use super::settings::HostSettings;

/// Tasks that may be begun.
pub(crate) trait TaskLoop: Send {
    /// Runs them until nothing more can be done, or until told to stop.
    fn run(self: Box<Self>, d: &mut Driver) -> Result<HostEnd, HostError>;

    /// The agents that its tasks ask for, where the loop's own is none of them.
    fn own_agents(&self) -> Vec<String>;

    /// Stops agents on other machines that are still at work for the loop whose place this one takes; gives
    /// what people should know.
    fn stop_former(&self, former: &LoopState, settings: &HostSettings) -> Vec<String>;
}

/// Whether blocked tasks are tried again when a loop is taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// They stay blocked.
    #[default]
    No,
    /// They are, with all their attempts.
    Blocked,
}

/// What tasks are made ready for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Occasion {
    /// The loop begins: the user's tree must be as the work needs it.
    Start,
    /// It goes on.
    Resume(Retry),
    /// Only its finished work is landed; how it had ended.
    Land(IterativeExitReason),
}

/// The loop whose tasks are made ready.
pub(crate) struct TaskOrder<'a> {
    pub(crate) config: &'a IterativeLoopConfig,
    pub(crate) settings: &'a HostSettings,
    pub(crate) dir: &'a Path,
    pub(crate) occasion: Occasion,
    /// What was decided before, where the loop is taken up.
    pub(crate) history: Vec<sched::Event>,
    /// Its tasks with their titles, where the loop is taken up.
    pub(crate) known: Vec<KnownTask>,
    /// Those of them that were begun and not finished.
    pub(crate) begun: BTreeSet<String>,
}

/// Reads and checks the tasks of a loop; what people should know goes into the list.
pub(crate) type PrepareTasks =
    fn(TaskOrder<'_>, &mut Vec<String>) -> Result<Box<dyn TaskLoop>, HostError>;

/// For the loop of a task, which has no tasks of its own.
pub(crate) fn no_tasks(
    _: TaskOrder<'_>,
    _: &mut Vec<String>,
) -> Result<Box<dyn TaskLoop>, HostError> {
    Err(HostError::Internal(
        "a task has no tasks of its own".to_owned(),
    ))
}
