//! Commands a person sends to a running loop, and their two answers: `accepted` once
//! durable, `effective` once it has happened.

use serde::{Deserialize, Serialize};

use crate::config::ConfigChange;

/// Number of a command, unique within its loop.
pub type CommandId = u64;

/// What a person can ask of a running loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Hold before the next iteration.
    Pause,
    Unpause,
    /// Stop; every process of the loop is ended first.
    Cancel {
        /// Whether the agent gets its grace.
        grace: Grace,
    },
    /// A note for the next iteration's prompt, once.
    Say {
        text: String,
    },
    /// Change limits, budgets, gates or model.
    Set {
        /// To what.
        change: Box<ConfigChange>,
    },
    /// End a wait for a provider's limit now.
    RetryNow,
    /// Nothing: is anybody there?
    Ping,
}

/// Whether a process tree is asked before it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grace {
    /// Asked first, then killed.
    Ask,
    /// Killed at once.
    Skip,
}

/// A line from a client to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Protocol version.
    pub v: u32,
    /// What is asked.
    #[serde(flatten)]
    pub command: Command,
}

/// A line from the host to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It is durable and will happen.
    Accepted { id: CommandId },
    /// It has happened.
    Effective {
        id: CommandId,
        /// What came of it, for a person.
        message: String,
    },
    /// It will not happen.
    Refused {
        message: String,
        /// What to type instead.
        hint: String,
    },
}

/// Version of the control protocol.
pub const PROTOCOL: u32 = 1;

/// Longest request line that is read.
pub const MAX_REQUEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_flat_lines() {
        let request = Request {
            v: 1,
            command: Command::Say {
                text: "use jiff".into(),
            },
        };
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(json, r#"{"v":1,"command":"say","text":"use jiff"}"#);
        assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request);
    }
}
