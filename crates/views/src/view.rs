//! What a person sees of a loop: a fold of its events. Every view uses this one, so that
//! they never disagree.

mod activity;
mod attempts;
mod head;
mod history;
mod lanes;
mod standing;
mod status_block;
mod story;
mod tasks;

use jiff::Timestamp;
use serde::Serialize;

pub use self::activity::{Activity, activity};
pub use self::attempts::{Evidence, TaskEnd, attempt_end, merge_end};
pub use self::head::{Head, short_progress};
pub use self::history::{Column, GateRow, History, HistoryRow};
pub use self::lanes::TaskLanes;
pub use self::standing::{Lost, lost, people_state};
pub use self::status_block::{promise_missing, status_block, tools_denied, unjudged, untouched};
pub use self::story::{NoteRow, Remark, Story, WaitRow};
pub use self::tasks::{
    CommitRow, TaskRow, WaveRow, active_tasks, blocked_tasks, commits, marked_tasks, queue_lengths,
    task_rows, task_tone, tasks_at_work, unlanded, unproven_tasks, waves,
};
use crate::tone::Tone;
use descartes_kernel::event::Cost;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{LoopState, Pause, Phase};
use descartes_text::display::one_line;
use descartes_text::units::show_usd;

/// Whether the loop's process is alive, as found by its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// A host holds it.
    Alive,
    /// Nobody does.
    Gone,
}

/// Where a loop stands, in one word and its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Held, between two iterations.
    Ready,
    /// An agent is at work.
    Running,
    /// Gates are run or the work tree is measured.
    Judging,
    /// It waits for a provider or after failures.
    Waiting { until: Timestamp, why: String },
    /// A person holds it, or will after this iteration.
    Paused,
    /// No process holds it, and it has not ended.
    Interrupted,
    /// It is over.
    Ended { reason: IterativeExitReason },
}

impl Status {
    /// Reads it off the state.
    pub fn of(state: &LoopState, life: Life) -> Self {
        if let Phase::Finished { reason, .. } = &state.phase {
            return Self::Ended {
                reason: reason.clone(),
            };
        }
        if life == Life::Gone {
            return Self::Interrupted;
        }
        let busy = state
            .tasks
            .as_ref()
            .is_some_and(|tasks| !tasks.running.is_empty() || tasks.merging.is_some());
        match (&state.phase, state.wait()) {
            (Phase::Ready { .. }, _) if busy => Self::Running,
            (Phase::Running(_), _) => Self::Running,
            (Phase::Judging { .. }, _) => Self::Judging,
            (_, Some(wait)) => Self::Waiting {
                until: wait.until,
                why: wait.why(),
            },
            _ if state.requests.pause != Pause::No => Self::Paused,
            _ => Self::Ready,
        }
    }

    /// One label for lists, windows and status lines.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Running => "Running",
            Self::Judging => "Checking",
            Self::Waiting { .. } => "Waiting",
            Self::Paused => "Paused",
            Self::Interrupted => "Interrupted",
            Self::Ended { reason } => reason.label(),
        }
    }

    pub fn tone(&self) -> Tone {
        match self {
            Self::Ready | Self::Running | Self::Judging => Tone::Strong,
            Self::Waiting { .. } | Self::Paused | Self::Interrupted => Tone::Warn,
            Self::Ended { reason } if reason.is_success() => Tone::Good,
            Self::Ended {
                reason: IterativeExitReason::UserCancelled,
            } => Tone::Dim,
            Self::Ended { .. } => Tone::Bad,
        }
    }

    /// Whether a process has it.
    pub fn is_live(&self) -> bool {
        !matches!(self, Self::Interrupted | Self::Ended { .. })
    }

    /// What there is to say beside the label of an end; none where that says it all.
    pub fn end_sentence(&self) -> Option<String> {
        match self {
            // Names of tasks alone are no sentence.
            Self::Ended {
                reason: reason @ IterativeExitReason::TasksBlocked { .. },
            } => Some(one_line(&reason.sentence())),
            _ => self.end_detail(),
        }
    }

    /// The same in brackets behind the label.
    pub fn end_detail(&self) -> Option<String> {
        match self {
            // An agent's words are a part of it.
            Self::Ended { reason } => beside(reason.label(), &one_line(&reason.sentence())),
            _ => None,
        }
    }
}

/// A sentence without the label that it begins with; `None` where that says it all.
fn beside(label: &str, sentence: &str) -> Option<String> {
    let head = sentence.get(..label.len());
    let rest = match head.is_some_and(|head| head.eq_ignore_ascii_case(label)) {
        true => sentence[label.len()..].trim_start_matches(':').trim_start(),
        false => sentence,
    };
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// What stands in a list for what nobody told, or what there was not.
pub const UNKNOWN: &str = "–";

/// Dollars for people: `$1.25`, `~$0.40` from a price table, `–` where nobody told.
pub fn show_cost(cost: Option<Cost>) -> String {
    match cost {
        None => UNKNOWN.to_owned(),
        Some(Cost { micros, estimated }) => {
            let mark = if estimated { "~" } else { "" };
            format!("{mark}{}", show_usd(micros as f64 / 1e6))
        }
    }
}

/// Tokens for people: `1.2k`, `3.4M`, `–`.
pub fn show_tokens(tokens: Option<u64>) -> String {
    match tokens {
        None => UNKNOWN.to_owned(),
        Some(n) if n < 1000 => n.to_string(),
        Some(n) if n < 1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        Some(n) => format!("{:.1}M", n as f64 / 1e6),
    }
}
