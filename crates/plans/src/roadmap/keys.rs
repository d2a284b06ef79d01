//! The properties of a task.

use std::time::Duration;

use super::value::{count, duration, flag, list, real, unquoted};
use crate::graph::OnFail;
use descartes_text::finding::{Finding, Place};
use descartes_text::sandbox_level::SandboxLevel;
use descartes_text::units::parse_usd;

/// A task that has to be done first, and where that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depends {
    pub id: String,
    /// Where it stands.
    pub place: Place,
}

/// A value that means nothing for its key.
pub(super) struct BadValue {
    pub(super) wanted: &'static str,
}

const TIME: BadValue = BadValue {
    wanted: "a duration, for example 45min, 1h30m or 90s",
};
const FLAG: BadValue = BadValue {
    wanted: "true or false",
};
const COUNT: BadValue = BadValue {
    wanted: "a whole number",
};
const FROM_ONE: BadValue = BadValue {
    wanted: "a whole number, 1 or more",
};
const TEXT: BadValue = BadValue {
    wanted: "some text",
};
const DOLLARS: BadValue = BadValue {
    wanted: "dollars, for example $6",
};
const ON_FAIL: BadValue = BadValue {
    wanted: "stop, skip or block",
};
const LEVEL: BadValue = BadValue {
    wanted: "workspace or strict",
};
const PROMISE: BadValue = BadValue {
    wanted: "at most 256 bytes of text without `<`",
};

/// Keys with one value: where it is kept, what reads it, and what is said of a wrong one.
macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $type:ty, $read:expr, $bad:expr;)*) => {
        /// The properties of a task, each `None` or empty where the file does not say.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Keys {
            $($(#[$doc])* pub $key: Option<$type>,)*
            /// Tasks to be done first.
            pub depends: Vec<Depends>,
            /// Agents by name; the second takes over where the first is limited or failing.
            pub cli: Vec<String>,
            /// Gates, in order.
            pub check: Vec<String>,
            /// Files that it may touch.
            pub files: Vec<String>,
        }

        const VALUES: &[&str] = &[$(stringify!($key)),*];

        impl Keys {
            fn set_value<'a>(&mut self, key: &str, value: &'a str) -> Result<&'a str, BadValue> {
                match key {
                    $(stringify!($key) => put(&mut self.$key, $read(value), $bad),)*
                    _ => Ok(value),
                }
            }
        }
    };
}

keys! {
    /// Time for one attempt.
    timeout: Duration, duration, TIME;
    /// Time for one gate.
    verify_timeout: Duration, duration, TIME;
    /// How long an agent may be silent.
    idle_timeout: Duration, duration, TIME;
    /// Time for all attempts together.
    max_time: Duration, duration, TIME;
    /// Dollars for all attempts together.
    max_cost: f64, dollars, DOLLARS;
    /// At most so many attempts.
    max_iterations: u32, from_one, FROM_ONE;
    /// How often it is tried again after a failure.
    retries: u32, count, COUNT;
    /// Attempts without progress before it counts as stalled.
    stuck_after: u32, count, COUNT;
    /// What follows when it is not reached.
    on_fail: OnFail, on_fail, ON_FAIL;
    /// Whether it loops until its promise.
    ralph: bool, flag, FLAG;
    /// Whether its promise counts in tags alone, or also alone on a line.
    require_xml_format: bool, flag, FLAG;
    /// Whether the tests under `test_path` are a gate.
    require_tests: bool, flag, FLAG;
    /// Where those tests are.
    test_path: String, quoted, TEXT;
    /// What the agent prints when it is done.
    completion_promise: String, promise, PROMISE;
    /// What the agent prints when it cannot be done.
    abort_promise: String, promise, PROMISE;
    /// When it is reached, in words, for the prompt.
    success: String, text, TEXT;
    /// Where it is worked on.
    cwd: String, quoted, TEXT;
    /// The model of the agent.
    model: String, quoted, TEXT;
    /// How far its agent and gates are confined at least.
    sandbox: SandboxLevel, level, LEVEL;
    /// The issue that it belongs to.
    issue: String, quoted, TEXT;
    /// The agent as a command.
    agent: String, ticked, TEXT;
}

const LISTS: [&str; 4] = ["depends", "cli", "check", "files"];

const NO_JUDGE: &str = "there is no judge; a gate (`check:`) decides";

/// Keys of upstream that are read and have nothing to do here, with the reason.
const IDLE_KEYS: [(&str, IdleValue, &str); 10] = [
    (
        "auto_merge",
        IdleValue::Flag,
        "work that passes its gates is always merged",
    ),
    ("daemon_url", IdleValue::Text, NO_JUDGE),
    ("goal_threshold", IdleValue::Real, NO_JUDGE),
    ("goal_validate", IdleValue::Flag, NO_JUDGE),
    (
        "inject_checklist",
        IdleValue::Flag,
        "the success criteria are always in the prompt",
    ),
    (
        "oscillation_detection",
        IdleValue::Flag,
        "stalls are always detected",
    ),
    ("scoring_interval", IdleValue::Count, NO_JUDGE),
    (
        "sync_github",
        IdleValue::Flag,
        "descartes changes nothing on GitHub",
    ),
    ("worktree", IdleValue::Flag, "every task has a worktree"),
    (
        "worktree_base",
        IdleValue::Text,
        "a task always starts with its dependencies merged",
    ),
];

/// What the value of a key without effect has to be all the same.
#[derive(Clone, Copy)]
enum IdleValue {
    Flag,
    Count,
    Real,
    Text,
}

impl IdleValue {
    fn check(self, value: &str) -> Result<&str, BadValue> {
        match self {
            Self::Flag => put(&mut None, flag(value), FLAG),
            Self::Count => put(&mut None, count(value), COUNT),
            Self::Real => put(&mut None, real(value), COUNT),
            Self::Text => put(&mut None, quoted(value), TEXT),
        }
    }
}

/// Every key that means something.
pub fn known_keys() -> impl Iterator<Item = &'static str> {
    let idle = IDLE_KEYS.iter().map(|(key, ..)| *key);
    VALUES.iter().copied().chain(LISTS).chain(idle)
}

impl Keys {
    /// Takes a property; answers with what is left over of its value.
    ///
    /// `place` tells where a byte of the value stands.
    pub(super) fn set<'a>(
        &mut self,
        key: &str,
        value: &'a str,
        place: impl Fn(usize) -> Place,
    ) -> Result<&'a str, BadValue> {
        match key {
            "check" => {
                let (command, rest) = ticked(value).ok_or(BadValue {
                    wanted: "a command",
                })?;
                self.check.push(command);
                Ok(rest)
            }
            "cli" => self.cli(value),
            "files" => {
                let files = list(value).into_iter();
                self.files = files.map(|(_, file)| file.to_owned()).collect();
                Ok("")
            }
            "depends" => {
                let depends = |(at, id): (usize, &str)| Depends {
                    id: id.to_owned(),
                    place: place(at),
                };
                self.depends = list(value).into_iter().map(depends).collect();
                Ok("")
            }
            key => match IDLE_KEYS.iter().find(|(idle, ..)| *idle == key) {
                Some((_, wanted, _)) => wanted.check(value),
                None => self.set_value(key, value),
            },
        }
    }

    fn cli<'a>(&mut self, value: &'a str) -> Result<&'a str, BadValue> {
        self.cli = list(value)
            .into_iter()
            .map(|(_, name)| name.to_ascii_lowercase())
            .collect();
        match self.cli.is_empty() {
            true => Err(BadValue {
                wanted: "agent names, for example claude, codex",
            }),
            false => Ok(""),
        }
    }

    /// Takes more of a text that was wrapped onto the next line.
    pub(super) fn wrap(&mut self, key: &str, more: &str) -> bool {
        let Some(text) = self.success.as_mut().filter(|_| key == "success") else {
            return false;
        };
        text.push(' ');
        text.push_str(more);
        true
    }
}

/// What to say about a key that is read and does nothing.
pub(super) fn idle(key: &str, value: &str, place: Place) -> Option<Finding> {
    if key == "sandbox" && level(value) == Some((SandboxLevel::Off, "")) {
        let message = "`sandbox: off` has no effect (a task is never confined less than its loop)";
        return Some(Finding::note(place, message.to_owned()));
    }
    let (.., reason) = IDLE_KEYS.iter().find(|(idle, ..)| *idle == key)?;
    Some(Finding::note(
        place,
        format!("`{key}` has no effect ({reason})"),
    ))
}

fn put<'a, T>(
    slot: &mut Option<T>,
    read: Option<(T, &'a str)>,
    bad: BadValue,
) -> Result<&'a str, BadValue> {
    let (value, rest) = read.ok_or(bad)?;
    *slot = Some(value);
    Ok(rest)
}

fn from_one(value: &str) -> Option<(u32, &str)> {
    count(value).filter(|(n, _)| *n > 0)
}

fn dollars(value: &str) -> Option<(f64, &str)> {
    Some((parse_usd(value).ok()?, ""))
}

fn text(value: &str) -> Option<(String, &str)> {
    let value = value.trim();
    (!value.is_empty()).then(|| (value.to_owned(), ""))
}

fn quoted(value: &str) -> Option<(String, &str)> {
    text(unquoted(value))
}

/// A command keeps its quotes, which mean something to the shell; backticks around it do not.
fn ticked(value: &str) -> Option<(String, &str)> {
    let value = value.trim();
    text(if value.starts_with('`') {
        unquoted(value)
    } else {
        value
    })
}

fn promise(value: &str) -> Option<(String, &str)> {
    let value = unquoted(value);
    let inner = value
        .strip_prefix("<promise>")
        .and_then(|inner| inner.strip_suffix("</promise>"));
    let promise = inner.unwrap_or(value).trim();
    let is_promise = (1..=256).contains(&promise.len())
        && !promise.contains(|c: char| c == '<' || c.is_control());
    is_promise.then(|| (promise.to_owned(), ""))
}

fn level(value: &str) -> Option<(SandboxLevel, &str)> {
    let name = unquoted(value).trim().to_ascii_lowercase();
    Some((SandboxLevel::from_name(&name)?, ""))
}

fn on_fail(value: &str) -> Option<(OnFail, &str)> {
    let what = match value.trim().to_ascii_lowercase().as_str() {
        "stop" => OnFail::Stop,
        "skip" => OnFail::Skip,
        "block" => OnFail::Block,
        _ => return None,
    };
    Some((what, ""))
}
