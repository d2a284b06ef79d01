//! Scripts: what a lane answers, turn by turn.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A lane's script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Written")]
pub struct Script {
    /// The answers in order.
    pub turns: Vec<Turn>,
    /// What comes after the last turn.
    pub exhausted: Exhausted,
    /// How requests that offer no shell tool are answered.
    pub side: Side,
}

/// What a lane answers when its turns are used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhausted {
    /// The last turn again, without its tools.
    #[default]
    Last,
    /// The text `script exhausted`.
    Stop,
    /// A server error.
    Error,
}

/// How requests without a shell tool are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// By a canned text, or one that fits the schema they ask for.
    #[default]
    Canned,
    /// By the next turn, as every other request.
    Turn,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// What the model says.
    pub text: Option<String>,
    /// What it thinks before.
    pub thinking: Option<String>,
    /// The tools it calls.
    pub tool: Tools,
    /// The tokens it reports.
    pub usage: Usage,
    /// Why it stopped, in the words of Anthropic's API; `max_tokens` is translated for the others.
    pub stop: Option<String>,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Seconds that the provider asks to wait; without it, no such header is sent.
    pub retry_after: Option<u64>,
    /// When a usage limit ends, as a Unix time; without it, `reset_in` or an hour from now.
    pub reset: Option<u64>,
    /// When a usage limit ends, in seconds from the request.
    pub reset_in: Option<u64>,
    /// Which limit was reached, in Anthropic's words; `five_hour` if none is given.
    pub claim: Option<String>,
    /// The provider's own words for a fault, instead of the usual ones.
    pub message: Option<String>,
    /// More response headers.
    pub headers: BTreeMap<String, String>,
    /// Seconds before the answer begins.
    pub delay: f64,
    /// Characters in a piece of a streamed answer; 20 if none is given.
    pub chunk: Option<usize>,
    /// Seconds between the pieces.
    pub chunk_delay: f64,
    /// Pieces that are sent before a stream breaks; 1 if none is given.
    pub after_chunks: Option<usize>,
    /// How often this turn is given; -1 is for ever, 1 the default.
    pub repeat: Option<i64>,
}

impl Turn {
    /// When a usage limit ends, as a Unix time.
    pub(super) fn reset_at(&self, now: u64) -> u64 {
        self.reset
            .unwrap_or_else(|| now + self.reset_in.unwrap_or(3600))
    }
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Too many requests; `retry_after` says for how long.
    #[serde(rename = "429")]
    RateLimit,
    /// A quota that waiting does not mend soon: per day, or unpaid.
    Quota,
    /// A subscription's limit, with the time of its `reset`.
    UsageLimit,
    /// A limit told as an ordinary answer's text.
    UsageText,
    /// An invalid request.
    #[serde(rename = "400")]
    BadRequest,
    /// A wrong key.
    #[serde(rename = "401")]
    BadKey,
    /// A key without the right.
    #[serde(rename = "403")]
    Forbidden,
    /// No such model.
    #[serde(rename = "404")]
    NotFound,
    /// A request that is too large.
    #[serde(rename = "413")]
    TooLarge,
    /// The server failed.
    #[serde(rename = "500")]
    ServerError,
    /// A gateway failed.
    #[serde(rename = "502")]
    BadGateway,
    /// The server is not available.
    #[serde(rename = "503")]
    Unavailable,
    /// The server is overloaded, in Anthropic's code.
    #[serde(rename = "529")]
    Overloaded,
    /// The conversation is longer than the model's window.
    Context,
    /// The stream begins, then reports an error in its own form.
    StreamError,
    /// The stream begins, then the connection is reset.
    Cut,
    /// The connection is reset before any byte of an answer.
    CutEarly,
    /// No answer at all.
    Hang,
    /// The stream begins, then nothing more comes.
    Stall,
    /// Success, with a web page for an answer.
    Html,
    /// A valid answer with nothing in it.
    Empty,
}

/// The tools of a turn: none, one, or several at once.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum Tools {
    #[default]
    None,
    One(Tool),
    /// Parallel calls.
    Many(Vec<Tool>),
}

impl Tools {
    /// The calls in order.
    pub fn as_slice(&self) -> &[Tool] {
        match self {
            Self::None => &[],
            Self::One(tool) => std::slice::from_ref(tool),
            Self::Many(tools) => tools,
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Tool {
    /// A command for whichever shell tool is offered.
    Shell {
        /// The command line.
        shell: String,
        /// Arguments beside it.
        #[serde(default)]
        args: BTreeMap<String, Value>,
    },
    /// A tool of the MCP server `descartes`, by whatever name it is offered.
    Mcp {
        /// The server's own name for it.
        mcp: String,
        /// The arguments as they are.
        #[serde(default)]
        args: Value,
    },
    /// A tool by its own name.
    Named {
        name: String,
        /// The arguments as they are.
        #[serde(default)]
        args: Value,
    },
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Tokens read, cached ones left out where the API does so.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
    /// Tokens of thought.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 120,
            output: 30,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
        }
    }
}

impl From<Vec<Turn>> for Script {
    fn from(turns: Vec<Turn>) -> Self {
        Self {
            turns,
            ..Self::default()
        }
    }
}

/// Both ways in which a script may be written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Bare(Vec<Turn>),
    Full {
        turns: Vec<Turn>,
        #[serde(default)]
        exhausted: Exhausted,
        #[serde(default)]
        side: Side,
    },
}

impl From<Written> for Script {
    fn from(written: Written) -> Self {
        match written {
            Written::Bare(turns) => turns.into(),
            Written::Full {
                turns,
                exhausted,
                side,
            } => Self {
                turns,
                exhausted,
                side,
            },
        }
    }
}
