//! What the edges found out or did, as events. Nothing is decided here, save that what is known
//! already is not told again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::budget;
use crate::config::IterativeLoopConfig;
use crate::control::CommandId;
use crate::edits::FieldChange;
use crate::event::{Decided, Event, HostFacts, TreeFacts};
use crate::fleet::KnownOffer;
use crate::sandbox::{Denial, PlantedInGit, SandboxSummary};
use crate::state::{IterationSummary, IterativeLoopState, LoopState, Spent};
use crate::tasks::{
    KeptTree, Landing, PlannedBlock, PlannedTask, ProvenTree, TasksState, WorkBase,
};
use descartes_plans::graph::TaskId;

/// A loop began; `earlier` is the state file that it goes on from, where there is one.
pub fn loop_created(
    loop_id: String,
    name: String,
    config: IterativeLoopConfig,
    started_at: Timestamp,
    earlier: Option<&IterativeLoopState>,
) -> Decided {
    let ended = earlier.filter(|file| file.completed);
    Decided::new(Event::LoopCreated {
        loop_id,
        name,
        config: Box::new(config),
        started_at,
        iterations: earlier.map_or(0, |file| file.iteration),
        summaries: earlier.map_or_else(Vec::new, |file| file.iteration_summaries.clone()),
        spent: earlier.and_then(|file| file.spent),
        ended: ended.map(|file| file.exit_reason.clone()),
    })
}

/// A process took the loop.
pub fn host_started(host: HostFacts) -> Decided {
    Decided::new(Event::HostStarted { host })
}

/// What the gates hang on, as it was when the loop began; `None` where that is known.
pub fn gate_files(state: &LoopState, files: BTreeMap<String, String>) -> Option<Decided> {
    (files != state.gate_files).then(|| Decided::new(Event::GateFiles { files }))
}

/// A file that a gate hangs on is not as it was.
pub fn gate_file_changed(file: String, task: Option<TaskId>) -> Decided {
    Decided::new(Event::GateFileChanged { file, task })
}

/// In which sandbox runs are from now on, where that is another than before.
pub fn sandbox_started(state: &LoopState, sandbox: SandboxSummary) -> Option<Decided> {
    let known = state.sandbox.as_ref() == Some(&sandbox);
    let sandbox = Box::new(sandbox);
    (!known).then(|| Decided::new(Event::SandboxStarted { sandbox }))
}

/// What a sandbox seems to have denied to a run, where it is anything.
pub fn sandbox_denied(run: u64, denied: Vec<Denial>) -> Option<Decided> {
    let task = None;
    (!denied.is_empty()).then(|| Decided::new(Event::SandboxDenied { run, denied, task }))
}

/// What of it a task loop did not know before an attempt at one of its tasks.
pub fn sandbox_denied_to_task(
    state: &LoopState,
    task: TaskId,
    mut denied: Vec<Denial>,
) -> Option<Decided> {
    let is_known = |denial: &Denial| state.denied.iter().any(|known| known.what == denial.what);
    denied.retain(|denial| !is_known(denial));
    let (run, task) = (0, Some(task));
    (!denied.is_empty()).then(|| Decided::new(Event::SandboxDenied { run, denied, task }))
}

/// What an agent left where it would change what the user's next git command does, as far as it was not told.
pub fn planted_in_git(
    state: &LoopState,
    run: u64,
    task: Option<TaskId>,
    mut planted: Vec<PlantedInGit>,
) -> Option<Decided> {
    planted.retain(|planted| !state.planted.contains(planted));
    (!planted.is_empty()).then(|| Decided::new(Event::PlantedInGit { run, planted, task }))
}

/// The loop made or switched to a branch.
pub fn branched(name: String) -> Decided {
    Decided::new(Event::Branched { name })
}

/// A tag says that all gates were green.
pub fn tagged(name: String) -> Decided {
    Decided::new(Event::Tagged { name })
}

/// The loop goes on in another place.
pub fn moved(working_directory: PathBuf, state_file: PathBuf) -> Decided {
    Decided::new(Event::Moved {
        working_directory,
        state_file,
    })
}

/// The host is at something that takes time.
pub fn busy(what: impl Into<String>) -> Decided {
    Decided::new(Event::Busy { what: what.into() })
}

/// The host is through with it.
pub fn not_busy() -> Decided {
    busy(String::new())
}

/// Something a person should know that changes nothing.
pub fn warning(message: impl Into<String>) -> Decided {
    Decided::new(Event::Warning {
        message: message.into(),
        needs_person: false,
    })
}

/// The same, where the loop waits for a person who acts on it.
pub fn needs_person(message: impl Into<String>) -> Decided {
    Decided::new(Event::Warning {
        message: message.into(),
        needs_person: true,
    })
}

/// The engine of workers on other machines does not answer, or answers again.
pub fn engine_heard(message: String, answers: bool) -> Decided {
    Decided::new(Event::EngineHeard { message, answers })
}

/// What is known of a run before its agent is started.
#[derive(Clone, Debug, Default)]
pub struct StartFacts {
    /// The guard of its process tree.
    pub guard_pid: Option<u32>,
    /// Hash of the prompt as sent.
    pub prompt: String,
    pub prompt_bytes: u64,
    /// The work tree before it.
    pub before: TreeFacts,
    /// Notes of the person that it was given.
    pub notes: Vec<CommandId>,
}

/// An agent is about to be started: the next run, for the next iteration.
pub fn run_started(state: &LoopState, agent: u32, facts: StartFacts) -> Decided {
    Decided::new(Event::RunStarted {
        run: state.runs + 1,
        iteration: state.iterations + 1,
        agent,
        guard_pid: facts.guard_pid,
        prompt: facts.prompt,
        prompt_bytes: facts.prompt_bytes,
        before: facts.before,
        notes: facts.notes,
    })
}

/// The tasks of a task loop.
pub fn tasks_planned(
    tag: String,
    tasks: Vec<PlannedTask>,
    blocks: Vec<PlannedBlock>,
    held: Vec<FieldChange>,
) -> Decided {
    Decided::new(Event::TasksPlanned {
        tag,
        tasks,
        blocks,
        held,
    })
}

/// The loop of a task's attempts was opened.
pub fn task_loop(task: TaskId, slot: u32, loop_id: String, worker: Option<String>) -> Decided {
    Decided::new(Event::TaskLoop {
        task,
        slot,
        loop_id,
        worker,
    })
}

/// An attempt is about to be offered to workers on other machines.
pub fn task_offered(task: TaskId, offer: KnownOffer) -> Decided {
    Decided::new(Event::TaskOffered { task, offer })
}

/// Nobody is at work on an offer any more. Nothing where that is known.
pub fn offer_over(state: &LoopState, task: TaskId, epoch: u64) -> Option<Decided> {
    let tasks = state.tasks.as_ref()?;
    let is_known = tasks
        .results
        .get(&task)
        .is_some_and(|known| *known >= epoch);
    (!is_known).then(|| Decided::new(Event::OfferOver { task, epoch }))
}

/// Nobody is at work any more on these offers of a loop that has no host, and no longer waits for them.
pub fn offers_stopped(state: &LoopState, stopped: &[(String, u64)]) -> Vec<Decided> {
    let open = state.tasks.iter().flat_map(|tasks| tasks.open_offers());
    let is_stopped = |(task, offer): &(&TaskId, &KnownOffer)| {
        let mut stopped = stopped.iter();
        stopped.any(|(one, epoch)| **task == *one.as_str() && offer.epoch == *epoch)
    };
    open.filter(is_stopped)
        .map(|(task, offer)| {
            Decided::new(Event::OfferStopped {
                task: task.clone(),
                epoch: offer.epoch,
            })
        })
        .collect()
}

/// What a run of a task's agent came to.
pub fn task_run(
    task: TaskId,
    loop_id: String,
    iterations: u32,
    summary: IterationSummary,
    spent: Spent,
    wall_ms: u64,
) -> Decided {
    Decided::new(Event::TaskRun {
        task,
        loop_id,
        iterations,
        summary: Box::new(summary),
        spent,
        wall_ms: Some(wall_ms),
    })
}

/// What the loop of a task used without its task loop having heard of it. Runs of `slots` agents that
/// were at work at the same time count once, as far as that can be told.
pub fn task_spent(task: TaskId, spent: Spent, slots: u32) -> Option<Decided> {
    let nothing =
        spent.ms == 0 && spent.tokens.unwrap_or(0) == 0 && spent.cost_micros.unwrap_or(0) == 0;
    (!nothing).then(|| {
        Decided::new(Event::TaskSpent {
            task,
            spent,
            wall_ms: budget::shared_ms(spent.ms, slots),
        })
    })
}

/// Every gate was green on a tree.
pub fn tree_proven(proof: ProvenTree) -> Decided {
    Decided::new(Event::TreeProven { proof })
}

fn tasks_of(state: &LoopState) -> Option<&TasksState> {
    state.tasks.as_deref()
}

/// Where finished work is, where that is elsewhere than was known.
pub fn work_landed(state: &LoopState, landing: Landing) -> Option<Decided> {
    let known = tasks_of(state).and_then(|tasks| tasks.landing.as_ref());
    (known != Some(&landing)).then(|| Decided::new(Event::WorkLanded { landing }))
}

/// Where work goes and what it is built on, where that is another.
pub fn work_based(state: &LoopState, base: WorkBase) -> Option<Decided> {
    let known = tasks_of(state).and_then(|tasks| tasks.base.as_ref());
    (known != Some(&base)).then(|| Decided::new(Event::WorkBased { base }))
}

/// Worktrees that were not removed, where those are others.
pub fn trees_kept(state: &LoopState, trees: Vec<KeptTree>) -> Option<Decided> {
    let known = tasks_of(state).map(|tasks| &tasks.kept);
    (known != Some(&trees)).then(|| Decided::new(Event::TreesKept { trees }))
}
