//! What was found out about agents, gates, work trees and hosts, as the journal keeps it.

use serde::{Deserialize, Serialize};

pub use descartes_agents::run::{Cost, EndedBy, ExitStatus, NearMissFacts, Tokens};

use descartes_agents::provider_limit::ReportedLimit;
use descartes_text::units::plural;

/// What is known of a run once its tree is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// What ended it.
    pub ended_by: EndedBy,
    /// How the agent's process ended; unknown when its guard was lost.
    pub exit: Option<ExitStatus>,
    /// From start to the end of its tree.
    pub duration_ms: u64,
    /// Bytes on standard output.
    pub stdout_bytes: u64,
    /// Bytes on standard error.
    pub stderr_bytes: u64,
    /// First characters of what it said.
    pub preview: String,
    /// The promise as it stood, where it was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The agent's words, where it said that it cannot be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<String>,
    /// Tags with the text of a promise that did not count, where nothing was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<NearMissFacts>,
    /// An error that the agent told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A provider's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ReportedLimit>,
    /// An understood agent that neither said nor did anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "idle_hands")]
    pub did_nothing: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Processes it had left behind, ended by the sweep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leftovers: u64,
    /// Processes that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
    /// Bytes that the log's budget or a full disk dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_dropped: u64,
    /// Lines of its stream that could not be understood.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trouble: u64,
    /// Tools that were denied to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Hash of the work tree that it left; `None` where it could not be measured, and in journals of 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_after: Option<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A run that ends within this time ends at its start, as that of an agent that is not set up.
const START_MS: u64 = 5_000;

fn ends_at_start(duration_ms: u64, tokens: Option<u64>) -> bool {
    duration_ms < START_MS && tokens.unwrap_or(0) == 0
}

/// Whether a failed run that took so long, and told these tokens, failed at its start. Files that it changed
/// are no work then, but a log or a dump of its own; tokens are, for a model was asked.
pub(crate) fn failed_at_start(duration_ms: u64, tokens: Option<u64>) -> bool {
    ends_at_start(duration_ms, tokens)
}

impl RunFacts {
    /// Of an agent that could not be started.
    pub fn not_started(error: String) -> Self {
        Self {
            ended_by: EndedBy::Exit,
            exit: None,
            duration_ms: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            preview: String::new(),
            claim: None,
            abort: None,
            near_miss: None,
            error: Some(error),
            limit: None,
            did_nothing: false,
            tokens: None,
            cost: None,
            leftovers: 0,
            survivors: Vec::new(),
            log_dropped: 0,
            trouble: 0,
            denied: Vec::new(),
            tree_after: None,
        }
    }

    /// Whether it ended well before a model can have been asked, and claims nothing. Whether it did something is
    /// told by the work tree and the gates alone.
    pub(crate) fn ended_at_once(&self) -> bool {
        let tokens = self.tokens.and_then(|tokens| tokens.total());
        self.ended_by == EndedBy::Exit
            && ends_at_start(self.duration_ms, tokens)
            && self.claim.is_none()
            && self.abort.is_none()
            && self.failure().is_none()
    }

    /// Whether it exited with a failure before it can have done any work.
    pub fn failed_at_start(&self) -> bool {
        let tokens = self.tokens.and_then(|tokens| tokens.total());
        matches!(self.ended_by, EndedBy::Exit | EndedBy::GaveUp)
            && failed_at_start(self.duration_ms, tokens)
            && self.failure().is_some()
    }

    /// Whether it failed since tools were denied to it.
    pub fn failed_by_denial(&self) -> bool {
        let is_other = matches!(
            self.ended_by,
            EndedBy::Timeout | EndedBy::Idle | EndedBy::GuardLost | EndedBy::HostLost
        );
        !self.denied.is_empty() && self.error.is_none() && !is_other
    }

    /// A failure, unless evidence of work says otherwise.
    pub fn failure(&self) -> Option<String> {
        match self.ended_by {
            EndedBy::Timeout => return Some("it reached its timeout".to_owned()),
            EndedBy::Idle => return Some("it hung: no output and no activity".to_owned()),
            EndedBy::GuardLost => return Some("its guard process was killed".to_owned()),
            EndedBy::HostLost => return Some("descartes itself was killed".to_owned()),
            _ => {}
        }
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        if !self.denied.is_empty() {
            let rules = self.denied.join(", ");
            return Some(format!("it was denied tools: {rules}"));
        }
        if self.did_nothing {
            return Some("the agent produced no output and did nothing".to_owned());
        }
        match (self.ended_by, self.exit) {
            (EndedBy::Exit | EndedBy::GaveUp, Some(ExitStatus::Code(0)) | None) => None,
            (EndedBy::Exit | EndedBy::GaveUp, Some(ExitStatus::Code(code))) => {
                Some(format!("exit code {code}"))
            }
            (EndedBy::Exit | EndedBy::GaveUp, Some(ExitStatus::Signal(signal))) => {
                Some(format!("killed by signal {signal}"))
            }
            _ => None,
        }
    }
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateEnd {
    /// It ended by itself.
    Exit(ExitStatus),
    /// Its time was up.
    Timeout,
    /// The loop was stopped while it ran.
    Cancelled,
}

/// One gate run on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateFacts {
    /// Which one, from 0.
    pub gate: u32,
    /// What was run.
    pub command: String,
    /// How it ended.
    pub end: GateEnd,
    /// How long it took.
    pub duration_ms: u64,
    /// The last of its output, at most 4 KiB.
    pub tail: String,
    /// The work tree before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_before: Option<String>,
    /// The work tree after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_after: Option<String>,
}

impl GateFacts {
    /// Whether it was green.
    pub fn passed(&self) -> bool {
        matches!(self.end, GateEnd::Exit(status) if status.is_success())
    }

    /// Whether it is still one of these gates: a person may have put others in its place while it ran.
    pub fn is_one_of(&self, verify: &[String]) -> bool {
        verify.get(self.gate as usize) == Some(&self.command)
    }
}

/// What the work tree says about an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeFacts {
    /// HEAD, in git.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Hash of the work tree's content; `None` where it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Why it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Open items in the plan, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_items: Option<u32>,
}

/// Evidence of progress in one iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Something moved; what.
    Moved(Vec<String>),
    /// Nothing moved.
    None,
    /// It could not be measured; why.
    Unknown(String),
}

/// What the kernel made of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Proven done by promise (and gates).
    Promise,
    /// Done by gates alone.
    Gates,
    /// Done by exit code alone.
    Success,
    /// Claimed, and refused by a gate.
    Refused,
    /// The agent said that it cannot be done.
    Blocked(String),
    /// A failed iteration: no work and an error.
    Failed(String),
    /// Work goes on.
    Worked,
    /// It was stopped before it could be judged.
    Stopped,
}

impl Verdict {
    /// Whether the job is proven done by it.
    pub fn proves(&self) -> bool {
        matches!(self, Self::Promise | Self::Gates | Self::Success)
    }

    /// Whether the agent of such an iteration had its turn: what its prompt held has been delivered.
    /// One that was stopped may have heard nothing of it.
    pub fn delivers(&self) -> bool {
        !matches!(self, Self::Stopped)
    }
}

/// Why a loop waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A provider's limit, in the agent's words.
    Limit(ReportedLimit),
    /// So many failures in a row.
    Failures(u32),
    /// So many iterations in a row whose agent ended at once and did nothing.
    NothingDone(u32),
}

impl WaitReason {
    /// Why, for a person.
    pub fn describe(&self) -> String {
        match self {
            Self::Limit(limit) => limit.words.clone(),
            Self::Failures(count) => {
                format!("{} in a row", plural(u64::from(*count), "failure"))
            }
            Self::NothingDone(count) => format!(
                "the agent ended at once and did nothing, {} in a row",
                plural(u64::from(*count), "time")
            ),
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    Elapsed,
    /// A person, who wants to try again now.
    Retry,
    /// A stop of the loop.
    Stop,
}

/// Who asked for the loop's end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopBy {
    /// Ctrl-C: this iteration is finished first.
    Interrupt,
    /// Ctrl-C again: the agent is ended.
    InterruptAgain,
    /// SIGTERM.
    Terminate,
    /// The terminal was closed.
    HangUp,
    /// `loop cancel`.
    Cancel,
    /// The library's cancellation handle.
    Handle,
}

impl StopBy {
    /// Whether the loop ends as cancelled (else it is interrupted, to be resumed).
    pub fn ends_loop(self) -> bool {
        self != Self::HangUp
    }

    /// What stands after it: a Ctrl-C only hastens what another asked for, whose exit code stays.
    pub fn after(self, before: Option<Self>) -> Self {
        match (before, self) {
            (None | Some(Self::Interrupt), by) => by,
            (Some(before), Self::InterruptAgain) => before,
            (Some(_), by) => by,
        }
    }
}

/// What a host wrote down about itself when it took a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot: a pid alone can be used again.
    pub start_time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Which pid namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<u64>,
    /// Version of descartes.
    pub version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_nobody_told_are_unknown_and_not_zero() {
        assert_eq!(Tokens::default().total(), None);
        let told = Tokens {
            input: Some(3),
            cache_read: Some(4),
            ..Tokens::default()
        };
        assert_eq!(told.total(), Some(7));
    }
}
