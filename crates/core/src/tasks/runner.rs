//! A task loop at work: what it holds.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use descartes_kernel::control::CommandId;
use descartes_kernel::sched::{self, Ended, Input, Scheduler};
use descartes_kernel::state::Spent;
use descartes_kernel::tasks::{EarlyEnd, Gates, TasksConfig, gates_of_all};
use descartes_plans::graph::TaskId;
use descartes_store::task_file::RunLock;
use jiff::Timestamp;

use super::asking::SourceAccess;
use super::attempt_control::Control;
use super::event::TaskEvent;
use super::executor::Executor;
use super::orders::Orders;
use super::place::{Work, Workplace};
use super::runner_state::{AtWork, FileState, Growth, Questions};
use super::shell::Stopper;
use super::source::{Loaded, TaskBrief};
use super::watch::FileWatch;
use crate::host::Retry;
use crate::host::driver::Driver;

/// An attempt under way.
pub(super) struct Live {
    pub(super) tasks: Vec<TaskId>,
    pub(super) control: Control,
    /// The person's notes that its prompt holds.
    pub(super) notes: Vec<CommandId>,
    /// When it was taken up, where an earlier host has started it.
    pub(super) taken_up: Option<Duration>,
    /// What its run has told of its spending so far.
    pub(super) spent: Spent,
    /// Whether its place is ready and its loop was opened: from then on its time counts.
    pub(super) opened: bool,
}

/// What works on the integration worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    Merge,
    Wave,
    Mark,
    Landing,
}

/// A merge, commit, check or landing under way.
pub(super) struct Merging {
    pub(super) busy: Busy,
    /// The tasks whose work it is about.
    pub(super) tasks: Vec<TaskId>,
    /// Ends the gates that it runs, where it runs any.
    pub(super) stopper: Option<Stopper>,
}

impl Merging {
    pub(super) fn stop(&self) {
        self.stopper.iter().for_each(Stopper::stop);
    }

    /// The same, without grace.
    pub(super) fn kill(&self) {
        self.stopper.iter().for_each(Stopper::kill);
    }
}

/// A task loop at work.
pub(super) struct Runner<'d> {
    pub(super) d: &'d mut Driver,
    pub(super) config: TasksConfig,
    pub(super) sched: Scheduler,
    pub(super) source: SourceAccess,
    /// What it is being asked.
    pub(super) questions: Questions,
    pub(super) loaded: Loaded,
    /// Gates, agents and limits of tasks as a person started the loop.
    pub(super) orders: Orders,
    pub(super) place: Arc<dyn Workplace>,
    /// Makes the attempts.
    pub(super) executor: Box<dyn Executor>,
    /// By the number that each got when it was started. A slot may be free again, and its attempt not
    /// heard of yet.
    pub(super) live: BTreeMap<u64, Live>,
    /// The number of the next.
    pub(super) next_serial: u64,
    /// Tasks whose status in the file is ours to keep.
    pub(super) claimed: HashSet<TaskId>,
    pub(super) refused: HashSet<TaskId>,
    pub(super) inputs: VecDeque<Input>,
    pub(super) waking: Option<Timestamp>,
    /// The merge, commit or landing under way. Two at most, and those wait for each other: one of
    /// an earlier version's journal may have both.
    pub(super) merging: Vec<Merging>,
    /// Since when something works on the integration worktree.
    pub(super) busy_since: Option<Duration>,
    /// What finished work has delivered, in words, as far as it was looked up since the last merge.
    pub(super) delivered: HashMap<String, Option<String>>,
    /// Why a task's green work is in no commit.
    pub(super) no_commit: HashMap<TaskId, String>,
    pub(super) ended: Option<Box<Ended>>,
    pub(super) stopped_for_person: bool,
    /// Everything that was decided, for a scheduler that takes over.
    pub(super) history: Vec<sched::Event>,
    pub(super) growth: Growth,
    /// Questions whose branches are of no use any more.
    pub(super) grew: Vec<Work>,
    pub(super) early: EarlyEnd,
    /// The time in which agents were at work, as far as it is in no record yet.
    pub(super) at_work: AtWork,
    pub(super) reload_trouble: Option<String>,
    pub(super) file: FileState,
    pub(super) retry: Retry,
    /// One task for each agent that the tasks ask for.
    pub(super) agents: Vec<TaskBrief>,
    /// What became of tasks while something else was waited for.
    pub(super) news: VecDeque<TaskEvent>,
    /// Who waits for what was heard to be in the journal.
    pub(super) recorded: Vec<Sender<()>>,
    /// Tells when the task file is written.
    pub(super) watch: Option<FileWatch>,
    /// Other tools' runs keep away for as long as this is held.
    pub(super) _lock: Option<RunLock>,
}

impl Runner<'_> {
    /// Whether every task has a gate.
    pub(super) fn gates(&self) -> Gates {
        let graph = self.loaded.plan.graph();
        let work = graph.nodes().iter().filter(|node| {
            let task = graph.find(&node.id);
            task.is_some_and(|task| graph.is_work(task))
        });
        let briefs = work.filter_map(|node| self.loaded.briefs.get(&node.id));
        gates_of_all(&self.d.state.config, briefs)
    }
}
