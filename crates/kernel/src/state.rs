//! The state of a loop: inside, enums that carry their own data; outside, the state
//! file's shape that people and scripts read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::config::{Environment, IterativeLoopConfig, KEPT_SUMMARIES};
use crate::control::{Command, CommandId};
use crate::event::facts::{
    EndedBy, GateFacts, HostFacts, NearMissFacts, RunFacts, StopBy, TreeFacts, Verdict, WaitReason,
};
use crate::field_change::FieldChange;
use crate::outcome::IterativeExitReason;
pub use crate::spent::Spent;
use crate::steering::Sender;
use crate::tasks::TasksState;
use descartes_plans::graph::TaskId;

/// One iteration as the state file tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationSummary {
    /// From 0.
    pub iteration: u32,
    /// When its agent was started.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
    /// The agent's exit code; 128 + n for signal n; null where there was none.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// First 500 characters of what the agent said.
    #[serde(default)]
    pub output_preview: String,
    /// Whether the output was searched for the promise.
    #[serde(default)]
    pub promise_checked: bool,
    /// What ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// What the kernel made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Gates: command and whether it was green.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateSummary>,
    /// Tags with the text of a promise that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<NearMissFacts>,
    /// Files changed, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Tokens, where the agent told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Fields of a newer version, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A gate in a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateSummary {
    /// What was run.
    pub command: String,
    /// Its exit code; null for a timeout.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
}

/// Where a state file stands against its journal; `hash` covers the rest of the file, so
/// that an edit by hand is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    /// Last sequence number that is folded into the file.
    pub seq: u64,
    /// Hash of the rest of the file.
    pub hash: String,
}

/// The state file: the shape that people's scripts read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterativeLoopState {
    /// `1.0`.
    #[serde(default = "version_one")]
    pub version: String,
    /// The loop's id; absent in a file written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Count of finished iterations.
    #[serde(default)]
    pub iteration: u32,
    /// What was asked for.
    pub config: IterativeLoopConfig,
    /// When it was first started.
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    /// When the last iteration ended.
    #[serde(default)]
    pub last_iteration_at: Option<Timestamp>,
    /// Whether the loop has ended, for any reason.
    #[serde(default)]
    pub completed: bool,
    #[serde(default, deserialize_with = "null_is_default")]
    pub exit_reason: IterativeExitReason,
    /// The last iterations.
    #[serde(default)]
    pub iteration_summaries: Vec<IterationSummary>,
    /// When completion was detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_detected_at: Option<Timestamp>,
    /// The promise as it stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_text: Option<String>,
    /// The error that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was used of the budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Where the file stands against the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalMark>,
    /// Fields of a newer version or of task loops, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The version that is written.
pub fn version_one() -> String {
    "1.0".to_owned()
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Default for IterativeLoopState {
    fn default() -> Self {
        Self {
            version: version_one(),
            loop_id: None,
            name: None,
            iteration: 0,
            config: IterativeLoopConfig::default(),
            started_at: None,
            last_iteration_at: None,
            completed: false,
            exit_reason: IterativeExitReason::Running,
            iteration_summaries: Vec::new(),
            completion_detected_at: None,
            completion_text: None,
            error: None,
            spent: None,
            journal: None,
            extra: Map::new(),
        }
    }
}

impl IterativeLoopState {
    /// What the file holds that no journal does.
    pub fn kept(&self) -> Kept {
        Kept {
            fields: self.extra.clone(),
            environment: self.config.backend.environment.clone().into_values(),
        }
    }
}

/// What a person wrote into a state file that no journal holds: it is written back with every save.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Fields that are not known.
    pub fields: Map<String, Value>,
    /// Variables for the agent, with their values.
    pub environment: BTreeMap<String, String>,
}

/// A run that is under way or being judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    pub run: u64,
    /// The iteration it stands for, from 1.
    pub iteration: u32,
    pub agent: u32,
    pub guard_pid: Option<u32>,
    /// When it was started.
    pub started_at: Timestamp,
    /// The work tree before it.
    pub before: TreeFacts,
    /// The person's notes that its prompt holds.
    #[serde(default)]
    pub notes: Vec<CommandId>,
}

/// Where a loop is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Between two iterations.
    Ready,
    /// An agent is at work.
    Running(RunInfo),
    /// The agent is gone; gates, evidence and commit are to come.
    Judging {
        run: RunInfo,
        /// What is known of it.
        facts: Box<RunFacts>,
        /// Gates run so far.
        gates: Vec<GateFacts>,
    },
    /// It is over.
    Finished {
        reason: IterativeExitReason,
        at: Timestamp,
    },
}

/// Whether a person holds the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    No,
    /// As soon as this iteration is over.
    Asked,
    Held,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    pub until: Timestamp,
    pub reason: WaitReason,
    pub since: Timestamp,
}

impl Wait {
    /// Why, for a person.
    pub fn why(&self) -> String {
        self.reason.words()
    }
}

/// A gate that refused a claim: it goes into the next prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    pub gate: GateFacts,
    /// Whether the agent had claimed to be done.
    pub claimed: Claimed,
}

/// Whether a red gate met a claim or ran on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claimed {
    /// The agent said that it was done.
    Yes,
    /// The gates alone decide.
    No,
}

/// A person's note for the next prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The command that brought it.
    pub id: CommandId,
    pub text: String,
}

/// Something that was changed while the loop ran: what, when, by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub at: Timestamp,
    /// By what: `set`, `state file`, `say`, `pause`, `unpause`.
    pub by: String,
    /// By whom, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Sender>,
    pub fields: Vec<FieldChange>,
}

impl Change {
    /// For a person, without the time: `verify: ["a"] -> ["b"], by set: descartes (pid 7) …`.
    pub fn words(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(FieldChange::words).collect();
        let mut out = format!("{}, by {}", fields.join("; "), self.by);
        if let Some(from) = &self.from {
            out.push_str(&format!(": {}", from.words()));
        }
        out
    }
}

/// The field of the state file that tells of them.
const CHANGES: &str = "changes";

/// Everything the policy knows of a loop: a fold of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    pub loop_id: String,
    pub name: String,
    /// What was asked for, with changes.
    pub config: IterativeLoopConfig,
    /// When it was first started.
    pub started_at: Timestamp,
    /// The process that holds or last held it.
    pub host: Option<HostFacts>,
    /// Iterations that are over.
    pub iterations: u32,
    /// Runs that were started.
    pub runs: u64,
    /// Where it is.
    pub phase: Phase,
    /// Whether a person holds it.
    pub pause: Pause,
    /// Whether its end was asked for.
    pub stop: Option<StopBy>,
    /// Whether it waits.
    pub wait: Option<Wait>,
    /// What it used.
    pub spent: Spent,
    /// Failures in a row.
    pub failures: u32,
    /// The last of them.
    pub last_failure: Option<String>,
    /// A failure that no waiting mends (a wrong login).
    pub fatal: Option<String>,
    /// Runs in a row that met a limit without a stated end.
    pub limit_runs: u32,
    /// Agents that are limited, until when.
    #[serde(with = "pairs")]
    pub limited: BTreeMap<u32, Timestamp>,
    /// Failures in a row of each agent.
    #[serde(with = "pairs")]
    pub agent_failures: BTreeMap<u32, u32>,
    /// Agents that failed, and when each gets its turn again.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub resting: BTreeMap<u32, Timestamp>,
    /// Iterations in a row without evidence of progress.
    pub still: u32,
    /// The work tree's hashes after the last iterations: one that comes back is no progress.
    #[serde(default)]
    pub trees: VecDeque<String>,
    /// Whether the next prompt carries a nudge.
    pub nudge: bool,
    /// Iterations without progress when the agent was last nudged; 0 where it has not been since
    /// there last was progress.
    #[serde(default)]
    pub nudged: u32,
    /// Gates that were red when last run.
    pub red: Option<BTreeSet<u32>>,
    /// The gate that refused.
    pub refusal: Option<Refusal>,
    /// A promise of the last iteration that did not count: the next prompt says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<NearMissFacts>,
    /// Notes for the next prompt.
    pub notes: Vec<Note>,
    /// Commands accepted and not yet effective.
    pub pending: Vec<(CommandId, Command)>,
    /// Number of the next command.
    pub next_command: CommandId,
    /// The last iterations.
    pub summaries: VecDeque<IterationSummary>,
    /// The work tree after the last iteration.
    pub after: Option<TreeFacts>,
    /// What the last iteration came to.
    pub verdict: Option<Verdict>,
    /// When and with what text completion was detected.
    pub completion: Option<(Timestamp, String)>,
    /// Whether the host left on purpose, to be resumed.
    pub interrupted: Option<StopBy>,
    /// Hashes of the files that the gates name, when the loop began.
    pub gate_files: BTreeMap<String, String>,
    /// The branch that was made for the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Files that the gates hang on and that were changed while the loop ran.
    #[serde(default)]
    pub changed_gate_files: Vec<ChangedGateFile>,
    /// What was changed while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The tasks of a task loop, once they are planned.
    #[serde(default)]
    pub tasks: Option<Box<TasksState>>,
    /// What the host itself is at, where that takes time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// Sequence number of the last event folded in.
    pub seq: u64,
    /// Sequence number of the last checkpoint; 0 before the first.
    #[serde(default)]
    pub checkpoint: u64,
}

/// Maps with numbers for keys, as pairs: within a flat record JSON's text keys would not be
/// read back as numbers.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer, V: Serialize>(
        map: &BTreeMap<u32, V>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
        d: D,
    ) -> Result<BTreeMap<u32, V>, D::Error> {
        Ok(Vec::<(u32, V)>::deserialize(d)?.into_iter().collect())
    }
}

/// A file that a gate hangs on and that was changed while the loop ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedGateFile {
    /// By name as in the gate's command, or the path of a program.
    pub file: String,
    /// The iteration that left it so first, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// In a task loop: the task whose attempt left it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

impl ChangedGateFile {
    /// `check.sh (task 2)`.
    pub fn words(&self) -> String {
        match (&self.task, self.iteration) {
            (Some(task), _) => format!("{} (task {task})", self.file),
            (None, Some(iteration)) => format!("{} (iteration {iteration})", self.file),
            (None, None) => self.file.clone(),
        }
    }
}

impl LoopState {
    /// Whether others marked tasks of it while it ran.
    pub fn has_marks(&self) -> bool {
        let tasks = self.tasks.as_ref();
        tasks.is_some_and(|tasks| !tasks.marked.is_empty())
    }

    /// Why the work tree could not be measured when that was last tried.
    pub fn unmeasured(&self) -> Option<&str> {
        let facts = match self.run() {
            Some(run) => Some(&run.before),
            None => self.after.as_ref(),
        };
        facts?.unknown.as_deref()
    }

    /// The run under way or being judged.
    pub fn run(&self) -> Option<&RunInfo> {
        match &self.phase {
            Phase::Running(run) | Phase::Judging { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Why it ended, or `Running`.
    pub fn exit_reason(&self) -> IterativeExitReason {
        match &self.phase {
            Phase::Finished { reason, .. } => reason.clone(),
            _ => IterativeExitReason::Running,
        }
    }

    /// Remembers a summary, and forgets the oldest beyond what the state file keeps.
    pub fn remember(&mut self, summary: IterationSummary) {
        if self.summaries.len() == KEPT_SUMMARIES {
            self.summaries.pop_front();
        }
        self.summaries.push_back(summary);
    }

    /// The state file's view of it. What `kept` holds of the file as it was stays.
    pub fn project(&self, kept: &Kept) -> IterativeLoopState {
        let reason = self.exit_reason();
        let error = match &reason {
            IterativeExitReason::Error { message } => Some(message.clone()),
            IterativeExitReason::AgentFailed { last, .. } => Some(last.clone()),
            _ => None,
        };
        let mut extra = kept.fields.clone();
        extra.remove(CHANGES);
        if !self.changes.is_empty()
            && let Ok(changes) = serde_json::to_value(&self.changes)
        {
            extra.insert(CHANGES.to_owned(), changes);
        }
        if let Some(tasks) = &self.tasks {
            extra.extend(tasks.fields());
        }
        if !self.changed_gate_files.is_empty() {
            let files = serde_json::to_value(&self.changed_gate_files).unwrap_or_default();
            extra.insert("changed_gate_files".to_owned(), files);
        }
        let mut config = self.config.clone();
        config.backend.environment = Environment::in_a_file(kept.environment.clone());
        IterativeLoopState {
            version: version_one(),
            loop_id: Some(self.loop_id.clone()),
            name: Some(self.name.clone()),
            iteration: self.iterations,
            config,
            started_at: Some(self.started_at),
            last_iteration_at: self.summaries.back().and_then(|s| s.completed_at),
            completed: matches!(self.phase, Phase::Finished { .. }),
            exit_reason: reason,
            iteration_summaries: self.summaries.iter().cloned().collect(),
            completion_detected_at: self.completion.as_ref().map(|c| c.0),
            completion_text: self.completion.as_ref().map(|c| c.1.clone()),
            error,
            spent: Some(self.spent),
            journal: None,
            extra,
        }
    }
}
