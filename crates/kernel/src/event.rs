//! The journal's vocabulary. Output never goes into events: only sizes and short previews.
//!
//! Iterations are counted from 1 here, as people see them; the state file counts its
//! summaries from 0.

mod decided;
pub(crate) mod facts;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigChange, IterativeLoopConfig};
use crate::control::{Command, CommandId};
use crate::field_change::FieldChange;
use crate::fleet::KnownOffer;
use crate::outcome::IterativeExitReason;
use crate::sandbox::{Denial, PlantedInGit, SandboxSummary};
use crate::sched;
use crate::spent::Spent;
use crate::state::{IterationSummary, LoopState};
use crate::steering::Sender;
use crate::tasks::{KeptTree, Landing, PlannedBlock, PlannedTask, ProvenTree, WorkBase};
use descartes_plans::graph::TaskId;

pub use decided::Decided;
pub use descartes_agents::provider_limit::{LimitKind, ReportedLimit};
pub use facts::*;

/// The version of the journal's format.
pub const FORMAT: u32 = 1;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Format version.
    pub v: u32,
    /// Sequence number, from 0, without gaps.
    pub seq: u64,
    /// Wall clock; never used for ordering.
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: Event,
}

/// How much an event must survive once it is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// A killed process.
    Process,
    /// A power cut.
    Power,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A loop began. Always the first line.
    LoopCreated {
        /// The loop's id.
        loop_id: String,
        name: String,
        /// Everything that was asked for.
        config: Box<IterativeLoopConfig>,
        /// When it was first started (earlier than the record, if taken over from a state file).
        started_at: Timestamp,
        /// Iterations already done (taken over from a state file).
        #[serde(default, skip_serializing_if = "is_zero32")]
        iterations: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        summaries: Vec<IterationSummary>,
        /// What they used (taken over from a state file): budgets go on from here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
        /// The end that a state file told of, to be resumed from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<IterativeExitReason>,
    },
    /// Hashes of the files that the gates' commands name, when the loop began.
    GateFiles {
        /// By name as it stands in the command.
        files: BTreeMap<String, String>,
    },
    /// A file that a gate hangs on has changed since the loop began.
    GateFileChanged {
        /// By name as in the command, or the path of a program.
        file: String,
        /// In a task loop: the task whose attempt left it so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<descartes_plans::graph::TaskId>,
    },
    /// A person edited the state file by hand; it is taken as their wish.
    StateEdited {
        /// The config as edited.
        config: Box<IterativeLoopConfig>,
        /// The count of finished iterations as edited.
        iterations: u32,
        /// Who took the loop up with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
    },
    /// A process took the loop.
    HostStarted { host: HostFacts },
    /// Limits, gates, prompt or model were changed.
    ConfigChanged {
        change: Box<ConfigChange>,
        /// By what: `resume`, `set`, `state file`.
        by: String,
        /// Who did it, where a command did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
    },
    /// Intent: an agent is about to be started.
    RunStarted {
        /// Counts every start of an agent.
        run: u64,
        /// Counts those that counted.
        iteration: u32,
        /// Which of the agents: 0 is `--command`, then the fallbacks.
        #[serde(default, skip_serializing_if = "is_zero32")]
        agent: u32,
        /// The guard of its process tree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guard_pid: Option<u32>,
        /// Hash of the prompt as sent.
        prompt: String,
        prompt_bytes: u64,
        /// The work tree before it.
        before: TreeFacts,
        /// Notes of the person that it was given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<CommandId>,
    },
    /// Fact: its tree is gone.
    AgentEnded {
        run: u64,
        iteration: u32,
        /// What is known.
        #[serde(flatten)]
        facts: Box<RunFacts>,
    },
    /// A gate was run.
    GateFinished {
        iteration: u32,
        /// What came of it.
        #[serde(flatten)]
        facts: Box<GateFacts>,
    },
    /// The iteration counted and is over.
    IterationFinished {
        iteration: u32,
        /// Its last run.
        run: u64,
        /// What the kernel made of it.
        verdict: Verdict,
        /// Evidence of progress.
        progress: Progress,
        /// The work tree after it.
        after: TreeFacts,
        /// Files that differ from before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<u32>,
        /// The commit made of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Time that counts against the budget: agent, gates and commit.
        spent_ms: u64,
    },
    /// The run did not count: it hit a provider limit.
    RunDiscarded {
        run: u64,
        /// Which iteration it would have been.
        iteration: u32,
        limit: ReportedLimit,
        /// When its agent may be tried again.
        retry_at: Timestamp,
    },
    /// An agent failed: it gets its turn again after that time, and others may take over until then.
    AgentResting { agent: u32, until: Timestamp },
    /// An iteration begun and never finished: its number is used up.
    IterationInterrupted {
        iteration: u32,
        run: u64,
        /// Time spent, as far as known.
        spent_ms: u64,
        /// Tokens read from its log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<Tokens>,
        /// Cost read from its log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// The loop waits.
    WaitStarted {
        until: Timestamp,
        reason: WaitReason,
    },
    /// The wait is over.
    WaitEnded {
        /// By what.
        by: WaitEnd,
    },
    /// The loop holds before the next iteration.
    Paused,
    /// It goes on.
    Unpaused,
    /// A person's command, durable from here on.
    CommandAccepted {
        id: CommandId,
        command: Command,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Sender>,
    },
    /// It has taken effect.
    CommandEffective { id: CommandId },
    /// A stop was asked for.
    StopRequested {
        /// By whom.
        by: StopBy,
    },
    /// A stall was told to the agent.
    Nudged {
        /// Iterations without progress.
        iterations: u32,
    },
    /// In which sandbox runs are from now on.
    SandboxStarted {
        #[serde(flatten)]
        sandbox: Box<SandboxSummary>,
    },
    /// What a run printed looks as if the sandbox had denied it something.
    SandboxDenied {
        /// In a task loop: 0.
        run: u64,
        denied: Vec<Denial>,
        /// In a task loop: the task whose attempt it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<descartes_plans::graph::TaskId>,
    },
    /// An agent left something that would change what the user's next git command does.
    PlantedInGit {
        /// In a task loop: 0.
        run: u64,
        planted: Vec<PlantedInGit>,
        /// In a task loop: the task whose attempt it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<descartes_plans::graph::TaskId>,
    },
    /// The loop made or switched to a branch.
    Branched { name: String },
    /// All gates passed, and a tag says so.
    Tagged { name: String },
    /// The loop goes on in another place: its project was moved, or a person asked for it.
    Moved {
        /// Where it works from now on.
        #[serde(with = "descartes_text::path_text::one")]
        working_directory: PathBuf,
        /// Its state file from now on.
        #[serde(with = "descartes_text::path_text::one")]
        state_file: PathBuf,
    },
    /// The host itself is at something that takes time, until the next event of the iteration.
    Busy {
        /// At what: `committing: running git hooks`.
        what: String,
    },
    /// Something a person should know that changes nothing.
    Warning {
        message: String,
        /// Whether the loop waits for a person who acts on it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        needs_person: bool,
    },
    /// The engine of workers on other machines does not answer, or answers again.
    EngineHeard {
        message: String,
        /// Whether it takes writes.
        answers: bool,
    },
    /// The host left without ending the loop; it can be resumed.
    Interrupted {
        /// By what.
        by: StopBy,
    },
    /// The loop ended.
    LoopFinished { reason: IterativeExitReason },
    /// The loop goes on after an end (resume).
    LoopReopened,
    /// The state that everything before it comes to. It says nothing new: whoever wants to
    /// know how a loop stands reads back to the last one instead of to the beginning.
    Checkpoint { state: Box<LoopState> },
    /// The tasks of a task loop, in the order of its waves.
    TasksPlanned {
        /// The tag or the roadmap's name.
        tag: String,
        /// Every task that is work.
        tasks: Vec<PlannedTask>,
        /// Many tasks that many others depend on, written once instead of with each of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<PlannedBlock>,
        /// Gates, agents and limits that the file says otherwise than when a person started the loop:
        /// they do not hold while it runs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<FieldChange>,
    },
    /// Something that was decided about the tasks of a loop.
    Tasks { event: Box<sched::Event> },
    /// The loop of a task's attempts was opened: whoever wants to see its agent follows that.
    TaskLoop {
        /// The task, or the wave that one agent is given.
        task: TaskId,
        /// The slot that it works in.
        slot: u32,
        loop_id: String,
        /// The worker on another machine that makes them; none where it is this host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// Intent: an attempt is about to be offered to workers on other machines. No number of an offer is
    /// used twice for a task.
    TaskOffered {
        /// The task, or the wave that one agent is given.
        task: TaskId,
        /// The number of the attempt and of its offer.
        #[serde(flatten)]
        offer: KnownOffer,
    },
    /// Nobody is at work on an offer any more, and it came to nothing that is written down.
    OfferOver { task: TaskId, epoch: u64 },
    /// A person ended the loop while it had no host, and nobody is at work on an offer any more; what it came to
    /// waits for whoever resumes the loop.
    OfferStopped { task: TaskId, epoch: u64 },
    /// What a run of a task's agent came to.
    TaskRun {
        task: TaskId,
        /// The loop of its attempts.
        loop_id: String,
        /// Iterations of that loop that are over.
        iterations: u32,
        /// The run as that loop summed it up.
        summary: Box<IterationSummary>,
        /// What it used.
        spent: Spent,
        /// Time of the task loop itself since the last such record, in which agents were at work;
        /// several at once count once. Absent in older journals: the run's own time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall_ms: Option<u64>,
    },
    /// What the loop of a task used without its task loop having heard of it: its host died.
    TaskSpent {
        task: TaskId,
        /// What it used.
        spent: Spent,
        /// Its share of the task loop's own time.
        wall_ms: u64,
    },
    /// Finished work came into the user's checkout, or waits for it.
    WorkLanded {
        /// Where it is.
        #[serde(flatten)]
        landing: Landing,
    },
    /// Every gate was green on a tree.
    TreeProven {
        /// Which, where, and by what.
        #[serde(flatten)]
        proof: ProvenTree,
    },
    /// Worktrees that hold what is found nowhere else were not removed.
    TreesKept {
        /// Which; all that there are now.
        trees: Vec<KeptTree>,
    },
    /// Where finished work goes, and which commit of the user's it is built on: told when that
    /// is another than before.
    WorkBased {
        #[serde(flatten)]
        base: WorkBase,
    },
    /// Something a newer version wrote.
    #[serde(other)]
    Unknown,
}

fn is_zero32(n: &u32) -> bool {
    *n == 0
}

impl Event {
    /// How much it must survive. One synced append an iteration is the budget.
    pub fn durability(&self) -> Durability {
        match self {
            Self::LoopCreated { .. }
            | Self::IterationFinished { .. }
            | Self::IterationInterrupted { .. }
            | Self::RunDiscarded { .. }
            | Self::CommandAccepted { .. }
            | Self::ConfigChanged { .. }
            | Self::StateEdited { .. }
            | Self::Moved { .. }
            | Self::Interrupted { .. }
            | Self::TasksPlanned { .. }
            | Self::TaskOffered { .. }
            | Self::LoopFinished { .. } => Durability::Power,
            Self::Tasks { event } => match **event {
                sched::Event::AttemptEnded { .. }
                | sched::Event::MergeEnded { .. }
                | sched::Event::TrainGated { .. }
                | sched::Event::WaveCommitEnded { .. }
                | sched::Event::Stopping { .. } => Durability::Power,
                _ => Durability::Process,
            },
            _ => Durability::Process,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_flat_object_and_unknown_kinds_stay_readable() {
        let record = Record {
            v: FORMAT,
            seq: 7,
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            event: Event::Nudged { iterations: 5 },
        };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            json,
            r#"{"v":1,"seq":7,"at":"2026-01-02T03:04:05Z","kind":"nudged","iterations":5}"#
        );
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
        let proof = Event::TreeProven {
            proof: ProvenTree {
                tree: "4b825d".to_owned(),
                gates: vec!["make".to_owned()],
                place: crate::tasks::ProvenAt::Integration,
                tasks: vec!["1".to_owned()],
                caches: vec!["target".to_owned()],
            },
        };
        let proven = Record {
            event: proof,
            ..record.clone()
        };
        let flat = serde_json::to_string(&proven).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&flat).unwrap(), proven);
        let newer = json.replace("nudged", "teleported");
        assert_eq!(
            serde_json::from_str::<Record>(&newer).unwrap().event,
            Event::Unknown
        );
    }
}
