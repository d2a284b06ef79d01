//! The state of a loop: enums that carry their own data. `file` is the shape that people and their
//! scripts read, `stored` the one of checkpoints.

mod file;
mod stored;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{Environment, IterativeLoopConfig, KEPT_SUMMARIES};
use crate::control::{Command, CommandId};
use crate::event::facts::{
    GateFacts, NearMissFacts, RunFacts, StopBy, TreeFacts, Verdict, WaitReason,
};
use crate::field_change::{FieldChange, is_limit};
use crate::outcome::IterativeExitReason;
use crate::sandbox::{Denial, PlantedInGit, SandboxSummary};
pub use crate::spent::Spent;
use crate::steering::Sender;
use crate::tasks::TasksState;
use descartes_plans::graph::TaskId;
use descartes_plans::lists::KnownTask;
pub use file::{GateSummary, IterationSummary, IterativeLoopState, JournalMark, Kept, version_one};
use stored::{StoredNudge, StoredPhase, pairs};

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

/// Where a loop is, with what only that phase has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPhase", into = "StoredPhase")]
pub enum Phase {
    /// Between two iterations.
    Ready {
        /// What it waits for.
        wait: Option<Wait>,
    },
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
        /// The iteration that was being judged when a person ended the loop: a resume goes on with its gates.
        unjudged: Option<Box<Unjudged>>,
    },
}

/// An iteration whose agent is gone and whose gates have not decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unjudged {
    pub run: RunInfo,
    /// What is known of it.
    pub facts: Box<RunFacts>,
    /// Gates run so far.
    pub gates: Vec<GateFacts>,
    /// What the loop had used before it.
    pub spent_before: Spent,
}

impl Phase {
    /// Between two iterations, waiting for nothing.
    pub const READY: Self = Self::Ready { wait: None };
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
        self.reason.describe()
    }
}

/// A gate that failed: it goes into the next prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedGate {
    pub gate: GateFacts,
    /// Whether the agent had claimed to be done.
    pub claimed: Claimed,
}

/// Whether a failed gate met a claim or ran on its own.
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
    /// The last iteration that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_to: Option<u32>,
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
    /// Whether both set the same limits in the same way, and nothing else.
    fn is_same_limit(&self, other: &Self) -> bool {
        let same = |(one, two): (&FieldChange, &FieldChange)| one.field == two.field;
        let pairs = || self.fields.iter().zip(&other.fields);
        self.by == other.by
            && self.fields.len() == other.fields.len()
            && pairs().all(same)
            && self.fields.iter().all(|change| is_limit(&change.field))
    }

    /// For a person, without the time: `verify: ["a"] -> ["b"], by set: descartes (pid 7) …`.
    pub fn describe(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(FieldChange::describe).collect();
        let mut out = format!("{}, by {}", fields.join("; "), self.by);
        if let Some(from) = &self.from {
            out.push_str(&format!(": {}", from.describe()));
        }
        out
    }
}

/// The field of the state file that tells of them.
const CHANGES: &str = "changes";

/// Everything the policy knows of a loop: a fold of its journal. In a checkpoint the fields of its parts
/// stand side by side, with the names that they have had since version 0.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    pub loop_id: String,
    pub name: String,
    /// What was asked for, with changes.
    pub config: IterativeLoopConfig,
    /// When it was first started.
    pub started_at: Timestamp,
    /// Iterations that are over.
    pub iterations: u32,
    /// Of these, those that died with their host: they count against the limit, and nothing came of them.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub lost: u32,
    /// Runs that were started.
    pub runs: u64,
    #[serde(flatten)]
    pub phase: Phase,
    #[serde(flatten)]
    pub requests: UserRequests,
    /// What it used.
    pub spent: Spent,
    #[serde(flatten)]
    pub agents: AgentHealth,
    #[serde(flatten)]
    pub progress: ProgressState,
    #[serde(flatten)]
    pub next_prompt: NextPrompt,
    /// The last iterations.
    pub summaries: VecDeque<IterationSummary>,
    /// The work tree after the last iteration.
    #[serde(rename = "after")]
    pub tree_after: Option<TreeFacts>,
    /// What the last iteration came to.
    pub verdict: Option<Verdict>,
    /// When and with what text completion was detected.
    pub completion: Option<(Timestamp, String)>,
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
    /// In which sandbox its runs are; `None` where nothing was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSummary>,
    /// What the sandbox seems to have denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denial>,
    /// What agents left where it would change what the user's next git command does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planted: Vec<PlantedInGit>,
    /// What the host itself is at, where that takes time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// When an iteration ended last, as a file says that no journal belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_iteration_at: Option<Timestamp>,
    /// Sequence number of the last event folded in.
    pub seq: u64,
    /// Sequence number of the last checkpoint; 0 before the first.
    #[serde(default)]
    pub checkpoint: u64,
}

/// What people asked of a loop while it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserRequests {
    pub pause: Pause,
    /// Whether its end was asked for.
    pub stop: Option<StopBy>,
    /// Commands accepted and not yet effective.
    pub pending: Vec<(CommandId, Command)>,
    /// Number of the next command.
    pub next_command: CommandId,
}

impl Default for UserRequests {
    fn default() -> Self {
        Self {
            pause: Pause::No,
            stop: None,
            pending: Vec::new(),
            next_command: 1,
        }
    }
}

/// Which agents can be asked, and what keeps the others away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentHealth {
    /// Failures in a row.
    pub failures: u32,
    /// The last of them.
    pub last_failure: Option<String>,
    /// Of these, the last in a row for which tools were denied.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub denied_in_row: u32,
    /// A failure that no waiting mends (a wrong login).
    pub fatal: Option<String>,
    /// Runs in a row that met a limit without a stated end.
    pub limit_runs: u32,
    /// Runs in a row that met a limit whose end was said to be near, or was not said.
    #[serde(default)]
    pub short_limits: u32,
    /// Agents that are limited, until when.
    #[serde(with = "pairs")]
    pub limited: BTreeMap<u32, Timestamp>,
    /// Failures in a row of each agent.
    #[serde(with = "pairs")]
    pub agent_failures: BTreeMap<u32, u32>,
    /// Agents that failed, and when each gets its turn again.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub resting: BTreeMap<u32, Timestamp>,
}

/// Whether the loop gets anywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressState {
    /// Iterations in a row without evidence of progress.
    #[serde(rename = "still")]
    pub iterations_without: u32,
    /// Of these, the last in a row whose agent ended at once.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub quick_nothings: u32,
    /// The work tree's hashes after the last iterations: one that comes back is no progress.
    #[serde(default, rename = "trees")]
    pub recent_tree_hashes: VecDeque<String>,
    /// Whether an iteration changed a file or made a commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub touched: bool,
    /// The work tree's hash before the first run of which it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_tree: Option<String>,
    #[serde(flatten)]
    pub nudge: Nudge,
    /// Gates that failed when they were last run.
    #[serde(rename = "red")]
    pub failing_gates: Option<BTreeSet<u32>>,
}

fn is_none_at_all(count: &u32) -> bool {
    *count == 0
}

impl ProgressState {
    /// Iterations without progress, where the next prompt is to say so.
    pub fn nudge_due(&self) -> Option<u32> {
        match self.nudge {
            Nudge::Due { iterations } => Some(iterations.max(self.iterations_without)),
            _ => None,
        }
    }
}

/// Whether the agent was told that it gets nowhere, since there last was progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredNudge", into = "StoredNudge")]
pub enum Nudge {
    #[default]
    None,
    /// The next prompt says so.
    Due {
        /// Iterations without progress when that was decided.
        iterations: u32,
    },
    /// A prompt that counted said so.
    Delivered { iterations: u32 },
}

impl Nudge {
    /// The agent has read the prompt.
    pub(crate) fn delivered(self) -> Self {
        match self {
            Self::Due { iterations } => Self::Delivered { iterations },
            other => other,
        }
    }
}

/// What the next prompt tells the agent beside its task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NextPrompt {
    /// The gate that failed.
    #[serde(rename = "refusal")]
    pub failed_gate: Option<FailedGate>,
    /// A promise of the last iteration that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<NearMissFacts>,
    /// Notes of a person.
    pub notes: Vec<Note>,
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
    pub fn describe(&self) -> String {
        match (&self.task, self.iteration) {
            (Some(task), _) => format!("{} (task {task})", self.file),
            (None, Some(iteration)) => format!("{} (iteration {iteration})", self.file),
            (None, None) => self.file.clone(),
        }
    }
}

impl LoopState {
    /// The tasks of a task loop with their titles: by these a list is known again that was numbered anew.
    pub fn known_tasks(&self) -> Vec<KnownTask> {
        let Some(tasks) = &self.tasks else {
            return Vec::new();
        };
        // Those that have the same text are told apart by their order.
        let known = tasks.order.iter().filter_map(|id| {
            let entry = tasks.tasks.get(id)?;
            Some(KnownTask {
                id: id.to_string(),
                title: entry.title.clone(),
                under: entry.under.clone(),
            })
        });
        known.collect()
    }

    /// Whether agents on other machines may be at work for it, of whose end it has not heard.
    pub fn has_open_offers(&self) -> bool {
        let config = self.config.tasks.as_ref();
        let has_workers = config.is_some_and(|tasks| tasks.workers.is_some());
        let is_done = matches!(&self.phase, Phase::Finished { reason, .. } if reason.is_success());
        let tasks = self.tasks.as_ref();
        has_workers && !is_done && tasks.is_some_and(|tasks| tasks.open_offers().next().is_some())
    }

    /// In which sandbox its runs are, for people: as it was found to work, else as it was asked for.
    pub fn sandbox_label(&self) -> String {
        let sandbox = match &self.sandbox {
            Some(sandbox) => sandbox.describe(),
            None => self.config.sandbox.effective().as_str().to_owned(),
        };
        match self.config.sandbox.reason() {
            Some(why) => format!("{sandbox}; {why}"),
            None => sandbox,
        }
    }

    /// What was changed, as people are told of it: limits that were set again and again are told once.
    pub fn told_changes(&self) -> Vec<Change> {
        let mut told: Vec<(Change, u32)> = Vec::new();
        for change in &self.changes {
            let known = told
                .iter_mut()
                .find(|(known, _)| known.is_same_limit(change));
            let Some((known, times)) = known else {
                told.push((change.clone(), 1));
                continue;
            };
            *times += 1;
            known.at = change.at;
            known.from.clone_from(&change.from);
            for (field, newer) in known.fields.iter_mut().zip(&change.fields) {
                field.to.clone_from(&newer.to);
            }
        }
        for (change, times) in told.iter_mut().filter(|(_, times)| *times > 1) {
            change.by.push_str(&format!(" ({times} times), the last"));
        }
        told.into_iter().map(|(change, _)| change).collect()
    }

    /// Whether others marked tasks of it while it ran.
    pub fn has_marks(&self) -> bool {
        let tasks = self.tasks.as_ref();
        tasks.is_some_and(|tasks| !tasks.marked.is_empty())
    }

    /// Why the work tree could not be measured when that was last tried.
    pub fn unmeasured(&self) -> Option<&str> {
        let facts = match self.run() {
            Some(run) => Some(&run.before),
            None => self.tree_after.as_ref(),
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

    /// The iteration that is being judged, or that a resume judges: its run, what is known of it, and its gates
    /// so far.
    pub fn judged(&self) -> Option<(&RunInfo, &RunFacts, &[GateFacts])> {
        match &self.phase {
            Phase::Judging { run, facts, gates } => Some((run, facts, gates)),
            Phase::Finished {
                unjudged: Some(open),
                ..
            } => Some((&open.run, &open.facts, &open.gates)),
            _ => None,
        }
    }

    /// Whether it is done by its gates, and no file of the work tree is another than before it, as far as that was
    /// measured: then they say nothing about its work.
    pub fn is_proven_untouched(&self) -> bool {
        let by_gates = match self.exit_reason() {
            IterativeExitReason::CompletionPromiseDetected => !self.config.verify.is_empty(),
            IterativeExitReason::GatesPassed => true,
            _ => false,
        };
        let first = self.progress.first_tree.as_ref();
        let last = self
            .tree_after
            .as_ref()
            .and_then(|after| after.tree.as_ref());
        by_gates
            && self.tasks.is_none()
            && !self.progress.touched
            && first.is_some()
            && first == last
    }

    /// Whether gates proved what it ended with. In a task loop: whether a gate ran for each of its tasks.
    pub fn is_proven(&self) -> bool {
        let has_gates = !self.config.verify.is_empty();
        match (self.exit_reason(), &self.tasks) {
            (reason, _) if !reason.is_success() => false,
            (_, Some(tasks)) => has_gates || tasks.ungated.is_empty(),
            (IterativeExitReason::GatesPassed, None) => true,
            (IterativeExitReason::CompletionPromiseDetected, None) => has_gates,
            _ => false,
        }
    }

    /// The iteration that a person's stop left to be judged by a resume.
    pub fn unjudged(&self) -> Option<&Unjudged> {
        match &self.phase {
            Phase::Finished { unjudged, .. } => unjudged.as_deref(),
            _ => None,
        }
    }

    /// What it waits for, between two iterations.
    pub fn wait(&self) -> Option<&Wait> {
        match &self.phase {
            Phase::Ready { wait } => wait.as_ref(),
            _ => None,
        }
    }

    /// Notes of a loop that has ended which no prompt held.
    pub fn undelivered_notes(&self) -> impl Iterator<Item = &Note> {
        let is_over = matches!(self.phase, Phase::Finished { .. });
        let notes = self.next_prompt.notes.iter();
        notes.filter(move |note| is_over && note.given_to.is_none())
    }

    /// Why it ended, or `Running`.
    pub fn exit_reason(&self) -> IterativeExitReason {
        match &self.phase {
            Phase::Finished { reason, .. } => reason.clone(),
            _ => IterativeExitReason::Running,
        }
    }

    /// Up to when the time of what was under way counts: to its end, where the loop is over.
    pub fn counts_to(&self, now: Timestamp) -> Timestamp {
        match &self.phase {
            Phase::Finished { at, .. } => *at,
            _ => now,
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
