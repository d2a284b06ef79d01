//! The library's view of a state file.

use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state as typed;
use descartes_kernel::state::{IterationSummary, Spent};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::IterativeLoopConfig;

/// What a loop has come to so far: the shape of its state file. Written with serde into a file, it
/// can be given to [`IterativeLoop::resume`](crate::IterativeLoop::resume).
///
/// ```
/// use descartes_core::{IterativeExitReason, IterativeLoopConfig, IterativeLoopState};
///
/// let state = IterativeLoopState {
///     iteration: 3,
///     config: IterativeLoopConfig { command: "claude".into(), ..Default::default() },
///     ..Default::default()
/// };
/// assert_eq!(state.version, "1.0");
/// assert_eq!(state.exit_reason, Some(IterativeExitReason::Running));
/// let json = serde_json::to_value(&state)?;
/// assert_eq!(json["started_at"], state.started_at.to_string()); // RFC 3339
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterativeLoopState {
    /// `1.0`.
    #[serde(default = "typed::version_one")]
    pub version: String,
    /// The loop's id; absent in a file written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_id: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Count of finished iterations.
    #[serde(default)]
    pub iteration: u32,
    /// What was asked for.
    pub config: IterativeLoopConfig,
    /// When it was first started. Printed, it is RFC 3339.
    #[serde(default = "Timestamp::now")]
    pub started_at: Timestamp,
    /// When the last iteration ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_iteration_at: Option<Timestamp>,
    /// Whether the loop has ended, for any reason.
    #[serde(default)]
    pub completed: bool,
    /// Why; `Running` or none while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<IterativeExitReason>,
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
    /// Fields of task loops, or of a newer version, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for IterativeLoopState {
    fn default() -> Self {
        let mut state = Self::from(typed::IterativeLoopState::default());
        state.config = IterativeLoopConfig::default();
        state
    }
}

impl From<typed::IterativeLoopState> for IterativeLoopState {
    fn from(state: typed::IterativeLoopState) -> Self {
        Self {
            version: state.version,
            loop_id: state.loop_id,
            name: state.name,
            iteration: state.iteration,
            config: state.config.into(),
            started_at: state.started_at.unwrap_or_else(Timestamp::now),
            last_iteration_at: state.last_iteration_at,
            completed: state.completed,
            exit_reason: Some(state.exit_reason),
            iteration_summaries: state.iteration_summaries,
            completion_detected_at: state.completion_detected_at,
            completion_text: state.completion_text,
            error: state.error,
            spent: state.spent,
            extra: state.extra,
        }
    }
}
