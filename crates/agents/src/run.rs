//! What a run of an agent came to, as it is kept on record.

use serde::{Deserialize, Serialize};

/// Which budget of a loop was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// `--max-duration`, in seconds.
    Duration,
    /// `--max-cost`, in US dollars.
    Cost,
    /// `--max-tokens`.
    Tokens,
}

impl Budget {
    /// The flag that sets this budget.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Duration => "--max-duration",
            Self::Cost => "--max-cost",
            Self::Tokens => "--max-tokens",
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// With this code.
    Code(i32),
    /// Of this signal.
    Signal(i32),
}

impl ExitStatus {
    /// The code a shell would show: 128 + n for signal n.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// Whether it is code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// What ended a run of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The agent exited by itself.
    Exit,
    /// It had sent its final result and stayed.
    Result,
    /// Its promise stood and it was silent since.
    Promise,
    /// The wall limit of an iteration.
    Timeout,
    /// It hung: no output, no work.
    Idle,
    /// It told a limit or error that it would wait on for ever.
    #[serde(rename = "gave")]
    GaveUp,
    /// A budget of the loop was used up.
    Budget(Budget),
    /// A person or signal.
    Cancel,
    /// The guard of its process tree was killed.
    GuardLost,
    /// The host died; found at the next start.
    HostLost,
}

/// Tokens of a run, as the agent told them; unknown stays unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Read by the model, caches aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Written by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

impl Tokens {
    /// Everything that counts against `--max-tokens`; `None` where nothing was told.
    pub fn total(&self) -> Option<u64> {
        [self.input, self.output, self.cache_read, self.cache_write]
            .into_iter()
            .flatten()
            .reduce(|a, b| a.saturating_add(b))
    }
}

/// Dollars in millionths, so that sums are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Millionths of a US dollar.
    pub micros: u64,
    /// From a price table, not from the agent: shown with `~`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// A promise's tag that was printed and did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMissFacts {
    /// How many there were.
    pub count: u64,
    /// The line of the last one, at most 200 characters.
    pub line: String,
    /// Whether that one has the text of the abort promise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abort: bool,
    /// It was the last line and has the text without its tag: how it would count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
}

impl NearMissFacts {
    /// One line for a person.
    pub fn describe(&self) -> String {
        if let Some(wanted) = &self.wanted {
            let line = &self.line;
            return format!("near miss: `{line}` alone does not count: print {wanted}");
        }
        let times = match self.count {
            0 | 1 => String::new(),
            count => format!(" ({count} times)"),
        };
        format!("near miss{times}: {}", self.line)
    }
}
