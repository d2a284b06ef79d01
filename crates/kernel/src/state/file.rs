//! The state file: the shape that people and their scripts read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Spent;
use crate::config::IterativeLoopConfig;
use crate::event::facts::{EndedBy, NearMissFacts, Verdict, failed_at_start};
use crate::outcome::IterativeExitReason;

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
    /// Tools that were denied to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
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

impl IterationSummary {
    /// Whether its run changed files in more than a failure at its start.
    pub fn shows_work(&self) -> bool {
        self.files.is_some_and(|files| files > 0) && !self.failed_at_start()
    }

    /// Whether it failed since tools were denied to its agent.
    pub fn is_denied(&self) -> bool {
        let is_failed = matches!(self.verdict, Some(Verdict::Failed(_)));
        let is_cut_off = matches!(self.ended_by, Some(EndedBy::Timeout | EndedBy::Idle));
        is_failed && !is_cut_off && !self.denied.is_empty()
    }

    /// Whether its run failed before it can have done any work.
    pub fn failed_at_start(&self) -> bool {
        let took =
            (self.started_at.zip(self.completed_at)).map(|(from, to)| to.duration_since(from));
        let took = took.and_then(|took| u64::try_from(took.as_millis()).ok());
        let gates: u64 = self.gates.iter().map(|gate| gate.duration_ms).sum();
        matches!(self.ended_by, Some(EndedBy::Exit | EndedBy::GaveUp))
            && matches!(self.verdict, Some(Verdict::Failed(_)))
            && took.is_some_and(|ms| failed_at_start(ms.saturating_sub(gates), self.tokens))
    }
}

/// A gate in a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateSummary {
    /// What was run.
    pub command: String,
    /// Its exit code; null for a timeout, and where it was cancelled.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether the loop was stopped while it ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
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
