//! Whatever happened, as the driver's one queue carries it.

use descartes_agents::reader::Note;
use descartes_kernel::control::Command;
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::Budget;
use descartes_kernel::steering::Sender;
use descartes_proc::TreeEvent;

use super::reply::Reply;
use crate::tasks::event::TaskEvent;
use crate::worktree::{CommitOutcome, Snapshot, Tree};

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum HostMessage {
    /// Something became of a process tree.
    Tree(TreeEvent),
    /// The reader of a run noticed something.
    Note(u64, Note),
    /// A person's command, and who sent it.
    Command(Command, Box<Sender>, Reply),
    /// A signal or the library asks to stop.
    Stop(StopBy),
    /// The same, without the agent's grace.
    Kill(StopBy),
    /// A budget of the task loop that this loop belongs to is used up.
    BudgetGone(Budget),
    /// Its trees may work until another time than before.
    LeaseRenewed,
    /// The loop's folder was deleted.
    FilesGone,
    /// Something became of a task.
    Task(Box<TaskEvent>),
    /// A commit is over.
    Committed(CommitOutcome),
    /// The work tree was measured, and is given back.
    Measured(Box<(Tree, Snapshot)>),
}
