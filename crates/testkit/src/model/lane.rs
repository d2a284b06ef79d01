//! One test's part of the server: its script, how far it is, and what was asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::script::{Exhausted, Fault, Script, Side, Turn};

/// A request that the server saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its number, over all lanes.
    pub number: u64,
    /// When it came, in milliseconds since the server's start.
    pub at_ms: u64,
    /// `POST`, `GET`, …
    pub method: String,
    /// Its path, as asked.
    pub path: String,
    /// The model it named.
    pub model: Option<String>,
    /// The key or token it carried.
    pub auth: Option<String>,
    /// The bytes of its body.
    pub bytes: usize,
    /// The names of the tools it offered.
    pub tools: Vec<String>,
    /// The last user messages' texts.
    pub users: Vec<UserText>,
    /// The turn it took, counted from 0; none for side requests and past the end.
    pub turn: Option<usize>,
    /// True for requests that offered no shell tool.
    pub side: bool,
    /// The fault it met.
    pub fault: Option<String>,
}

/// A user message's text, its middle left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserText {
    /// Its length in bytes.
    pub len: usize,
    /// Its first 200 characters.
    pub head: String,
    /// Its last 200 characters.
    pub tail: String,
}

impl UserText {
    pub(super) fn of(text: &str) -> Self {
        let skip = text.chars().count().saturating_sub(200);
        Self {
            len: text.len(),
            head: text.chars().take(200).collect(),
            tail: text.chars().skip(skip).collect(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    script: Script,
    index: usize,
    given: i64,
    pub(super) log: Vec<LogEntry>,
    pub(super) last: Value,
}

impl Lane {
    pub(super) fn new(script: Script) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }

    /// True when a request without a shell tool takes a turn too.
    pub(super) fn counts_side_requests(&self) -> bool {
        self.script.side == Side::Turn
    }

    /// The next turn and its place in the script.
    pub(super) fn next(&mut self) -> (Option<usize>, Turn) {
        let Some(turn) = self.script.turns.get(self.index) else {
            return (None, self.after_last());
        };
        let (turn, index) = (turn.clone(), self.index);
        let repeat = turn.repeat.unwrap_or(1);
        self.given += 1;
        if repeat >= 0 && self.given >= repeat {
            self.index += 1;
            self.given = 0;
        }
        (Some(index), turn)
    }

    fn after_last(&self) -> Turn {
        let say = |text: &str| Turn {
            text: Some(text.into()),
            ..Turn::default()
        };
        match (self.script.exhausted, self.script.turns.last()) {
            (Exhausted::Error, _) => Turn {
                fault: Some(Fault::ServerError),
                message: Some("script exhausted".into()),
                ..Turn::default()
            },
            (Exhausted::Last, Some(last)) => Turn {
                tool: super::Tools::None,
                ..last.clone()
            },
            (Exhausted::Last, None) => say("ok"),
            (Exhausted::Stop, _) => say("script exhausted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(script: &str) -> Lane {
        Lane::new(serde_json::from_str(script).unwrap())
    }

    fn texts(lane: &mut Lane, count: usize) -> Vec<String> {
        (0..count)
            .map(|_| lane.next().1.text.unwrap_or_default())
            .collect()
    }

    #[test]
    fn turns_come_in_order_and_repeat() {
        let mut lane = lane(r#"[{"text":"a","repeat":2},{"text":"b"}]"#);
        assert_eq!(texts(&mut lane, 4), ["a", "a", "b", "b"]);
    }

    #[test]
    fn a_turn_can_stay_for_ever() {
        let mut lane = lane(r#"[{"text":"a","repeat":-1},{"text":"b"}]"#);
        assert_eq!(texts(&mut lane, 3), ["a", "a", "a"]);
    }

    #[test]
    fn the_end_is_told_as_the_script_wishes() {
        let mut stop = lane(r#"{"turns":[{"text":"a"}],"exhausted":"stop"}"#);
        assert_eq!(texts(&mut stop, 2), ["a", "script exhausted"]);
        let mut error = lane(r#"{"turns":[],"exhausted":"error"}"#);
        assert_eq!(error.next().1.fault, Some(Fault::ServerError));
        let mut last = lane(r#"[{"text":"a","tool":{"shell":"true"}}]"#);
        assert_eq!(last.next().1.tool.as_slice().len(), 1);
        assert_eq!(last.next().1.tool.as_slice().len(), 0);
    }

    #[test]
    fn a_key_that_no_turn_has_is_refused() {
        assert!(serde_json::from_str::<Turn>(r#"{"txt":"a"}"#).is_err());
    }
}
