//! What an agent's stream says, the same for all agents.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::usage::{MicroUsd, Usage};
use crate::provider_limit::{LimitKind, ReportedLimit};

/// One thing that an agent's stream said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent's session began (or told more about itself).
    Session {
        /// The agent's own name for the session.
        id: Option<String>,
        /// The model it says it uses.
        model: Option<String>,
        /// The agent's version, where it tells it.
        version: Option<String>,
    },
    /// A request to the model began; many in a row with nothing in between are a runaway.
    Step,
    /// The agent's own words, the only place where a promise counts.
    Text {
        /// Which message of the run; the one with the highest number is the final one.
        message: u32,
        /// How this joins what came before in the same message.
        piece: Piece,
        text: String,
    },
    /// What the agent thought, for those who want to see it.
    Thinking { text: String },
    /// What an agent of the agent said: to the agent, not to us, so no promise counts in it.
    Subagent { text: String },
    /// A tool is called.
    ToolCall {
        /// The call's id, by which its result finds it.
        id: String,
        /// The tool's own name.
        name: String,
        /// One line for people: `$ cargo test`, `edit src/lib.rs`.
        summary: String,
    },
    /// A tool has answered.
    ToolResult {
        /// The call's id.
        id: String,
        /// How it went.
        outcome: ToolOutcome,
        /// How long it took, where the stream tells it.
        duration: Option<Duration>,
        /// The beginning of what it printed.
        preview: String,
    },
    /// Tokens, of one request or of the run so far.
    Usage {
        /// What they are counted over.
        scope: UsageScope,
        usage: Usage,
        /// What they cost, where the agent tells it.
        cost: Option<MicroUsd>,
    },
    /// The agent itself tries a request again; nothing is lost yet.
    Retry {
        /// Which try this is.
        attempt: Option<u32>,
        /// After how many it gives up.
        max: Option<u32>,
        /// How long it waits before.
        after: Option<Duration>,
        /// Why the try before failed.
        why: String,
    },
    /// A provider's limit is near, not reached.
    LimitWarning {
        /// What the limit is and when it resets.
        told: ReportedLimit,
        /// The used share in percent.
        used_percent: Option<u8>,
    },
    /// A provider's limit is reached, told by the stream's structure and not by wording.
    Limit {
        /// What the limit is and when it resets.
        told: ReportedLimit,
    },
    /// A tool was denied for want of permission.
    Denied(Denial),
    /// Something is amiss, and the run goes on.
    Warning {
        /// The agent's words.
        message: String,
    },
    /// Something failed; the run may still end well.
    Failed(Failure),
    /// The agent's own final word on its run.
    Result(RunResult),
    /// A line that is no JSON, between lines that are.
    Noise {
        /// The line's beginning.
        text: String,
    },
    /// An event of a kind that the parser does not know; it is counted and passed over.
    Unknown {
        /// The kind's name.
        kind: String,
    },
}

/// How a piece of text joins the one before it in its message.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// It continues the text before it, maybe in the middle of a word.
    Delta,
    /// It begins on a line of its own, and deltas continue it.
    Start,
    /// It stands for itself, on lines of its own.
    Block,
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It worked.
    Ok,
    /// It failed, with no exit code told.
    Failed,
    /// A command ended with this exit code.
    Exit(i32),
}

impl ToolOutcome {
    /// Whether the call went well.
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::Exit(0))
    }

    /// From an exit code where one is told, else from whether it went well.
    pub(super) fn of(exit: Option<i64>, ok: Option<bool>) -> Self {
        match (exit.and_then(|code| i32::try_from(code).ok()), ok) {
            (Some(code), _) => Self::Exit(code),
            (None, Some(false)) => Self::Failed,
            (None, _) => Self::Ok,
        }
    }
}

/// What told tokens are counted over.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// One request: it adds to what came before.
    Step,
    /// The whole run: it replaces what came before.
    Run,
}

/// A tool call that was denied for want of permission.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool's own name.
    pub tool: String,
    /// The rule that would have allowed it, in the agent's own way of writing.
    pub rule: String,
}

/// What went wrong, in the agent's words and in ours.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The agent's words.
    pub message: String,
}

/// Kinds of failure, as far as they call for different answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider's answer: a limit, an overload, the network, a login.
    Provider(LimitKind),
    /// The answer was longer than allowed, and was cut.
    MaxTokens,
    /// The agent's own limit of turns or money.
    OwnLimit,
    /// The conversation no longer fits the model.
    ContextTooLong,
    /// The model answered nothing.
    EmptyAnswer,
    /// Someone or something interrupted it.
    Interrupted,
    /// Anything else.
    Other,
}

/// The agent's own final word on its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What went wrong, if anything did.
    pub error: Option<Failure>,
    /// The final message, where the result repeats it.
    pub text: Option<String>,
    /// Tokens of the whole run.
    pub usage: Option<Usage>,
    /// Cost of the whole run.
    pub cost: Option<MicroUsd>,
    /// Requests or turns, as the agent counts them.
    pub turns: Option<u64>,
}
