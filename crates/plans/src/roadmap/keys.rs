//! The properties of a task.

use std::time::Duration;

use super::value::{count, duration, flag, list, real, unquoted};
use crate::graph::OnFail;
use descartes_text::finding::{Finding, Place};
use descartes_text::units::parse_usd;

/// Every key that means something.
pub const KNOWN_KEYS: [&str; 34] = [
    "abort_promise",
    "agent",
    "auto_merge",
    "check",
    "cli",
    "completion_promise",
    "cwd",
    "daemon_url",
    "depends",
    "files",
    "goal_threshold",
    "goal_validate",
    "idle_timeout",
    "inject_checklist",
    "issue",
    "max_cost",
    "max_iterations",
    "max_time",
    "model",
    "on_fail",
    "oscillation_detection",
    "ralph",
    "require_tests",
    "require_xml_format",
    "retries",
    "scoring_interval",
    "stuck_after",
    "success",
    "sync_github",
    "test_path",
    "timeout",
    "verify_timeout",
    "worktree",
    "worktree_base",
];

/// Keys of upstream that are read and have nothing to do here, with the reason.
const IDLE_KEYS: [(&str, &str); 10] = [
    ("auto_merge", "work that passes its gates is always merged"),
    ("daemon_url", "there is no judge; a gate (`check:`) decides"),
    (
        "goal_threshold",
        "there is no judge; a gate (`check:`) decides",
    ),
    (
        "goal_validate",
        "there is no judge; a gate (`check:`) decides",
    ),
    (
        "inject_checklist",
        "the success criteria are always in the prompt",
    ),
    ("oscillation_detection", "stalls are always detected"),
    (
        "scoring_interval",
        "there is no judge; a gate (`check:`) decides",
    ),
    ("sync_github", "descartes changes nothing on GitHub"),
    ("worktree", "every task has a worktree"),
    (
        "worktree_base",
        "a task always starts with its dependencies merged",
    ),
];

/// A task that has to be done first, and where that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depends {
    pub id: String,
    /// Where it stands.
    pub place: Place,
}

/// The properties of a task, each `None` or empty where the file does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    /// Time for one attempt.
    pub timeout: Option<Duration>,
    /// Tasks to be done first.
    pub depends: Vec<Depends>,
    /// When it is reached, in words, for the prompt.
    pub success: Option<String>,
    /// Where it is worked on.
    pub cwd: Option<String>,
    /// Agents by name; the second takes over where the first is limited or failing.
    pub cli: Vec<String>,
    /// The model of the agent.
    pub model: Option<String>,
    /// Whether it loops until its promise.
    pub ralph: Option<bool>,
    /// At most so many attempts.
    pub max_iterations: Option<u32>,
    /// What the agent prints when it is done.
    pub completion_promise: Option<String>,
    /// Whether the tests under `test_path` are a gate.
    pub require_tests: Option<bool>,
    /// Whether its promise counts in tags alone, or also alone on a line.
    pub require_xml_format: Option<bool>,
    /// Where those tests are.
    pub test_path: Option<String>,
    /// Asked for a judge.
    pub goal_validate: Option<bool>,
    /// The judge's mark.
    pub goal_threshold: Option<f64>,
    /// The judge's address.
    pub daemon_url: Option<String>,
    /// How often to ask the judge.
    pub scoring_interval: Option<u32>,
    /// Asked for the criteria in the prompt.
    pub inject_checklist: Option<bool>,
    /// Asked to notice turning in circles.
    pub oscillation_detection: Option<bool>,
    /// Asked for a worktree.
    pub worktree: Option<bool>,
    /// What the worktree should start from.
    pub worktree_base: Option<String>,
    /// Asked to merge when done.
    pub auto_merge: Option<bool>,
    /// The issue that it belongs to.
    pub issue: Option<String>,
    /// Asked to tell GitHub.
    pub sync_github: Option<bool>,
    /// Gates, in order.
    pub check: Vec<String>,
    /// Time for one gate.
    pub verify_timeout: Option<Duration>,
    /// Time for all attempts together.
    pub max_time: Option<Duration>,
    /// Dollars for all attempts together.
    pub max_cost: Option<f64>,
    /// How long an agent may be silent.
    pub idle_timeout: Option<Duration>,
    /// What the agent prints when it cannot be done.
    pub abort_promise: Option<String>,
    /// How often it is tried again after a failure.
    pub retries: Option<u32>,
    /// What follows when it is not reached.
    pub on_fail: Option<OnFail>,
    /// The agent as a command.
    pub agent: Option<String>,
    /// Attempts without progress before it counts as stalled.
    pub stuck_after: Option<u32>,
    /// Files that it may touch.
    pub files: Vec<String>,
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
const PROMISE: BadValue = BadValue {
    wanted: "at most 256 bytes of text without `<`",
};

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
            "timeout" => put(&mut self.timeout, duration(value), TIME),
            "verify_timeout" => put(&mut self.verify_timeout, duration(value), TIME),
            "idle_timeout" => put(&mut self.idle_timeout, duration(value), TIME),
            "max_time" => put(&mut self.max_time, duration(value), TIME),
            "max_iterations" => put(
                &mut self.max_iterations,
                count(value).filter(|(n, _)| *n > 0),
                FROM_ONE,
            ),
            "scoring_interval" => put(&mut self.scoring_interval, count(value), COUNT),
            "stuck_after" => put(&mut self.stuck_after, count(value), COUNT),
            "retries" => put(&mut self.retries, count(value), COUNT),
            "ralph" => put(&mut self.ralph, flag(value), FLAG),
            "require_xml_format" => put(&mut self.require_xml_format, flag(value), FLAG),
            "require_tests" => put(&mut self.require_tests, flag(value), FLAG),
            "goal_validate" => put(&mut self.goal_validate, flag(value), FLAG),
            "inject_checklist" => put(&mut self.inject_checklist, flag(value), FLAG),
            "oscillation_detection" => put(&mut self.oscillation_detection, flag(value), FLAG),
            "worktree" => put(&mut self.worktree, flag(value), FLAG),
            "auto_merge" => put(&mut self.auto_merge, flag(value), FLAG),
            "sync_github" => put(&mut self.sync_github, flag(value), FLAG),
            "goal_threshold" => put(&mut self.goal_threshold, real(value), COUNT),
            "max_cost" => {
                let dollars = parse_usd(value).ok().map(|dollars| (dollars, ""));
                put(
                    &mut self.max_cost,
                    dollars,
                    BadValue {
                        wanted: "dollars, for example $6",
                    },
                )
            }
            "on_fail" => put(
                &mut self.on_fail,
                on_fail(value),
                BadValue {
                    wanted: "stop, skip or block",
                },
            ),
            "completion_promise" => put(&mut self.completion_promise, promise(value), PROMISE),
            "abort_promise" => put(&mut self.abort_promise, promise(value), PROMISE),
            "success" => put(&mut self.success, text(value), TEXT),
            "cwd" => put(&mut self.cwd, quoted(value), TEXT),
            "model" => put(&mut self.model, quoted(value), TEXT),
            "test_path" => put(&mut self.test_path, quoted(value), TEXT),
            "daemon_url" => put(&mut self.daemon_url, quoted(value), TEXT),
            "worktree_base" => put(&mut self.worktree_base, quoted(value), TEXT),
            "issue" => put(&mut self.issue, quoted(value), TEXT),
            "agent" => put(&mut self.agent, ticked(value), TEXT),
            "check" => {
                let (command, rest) = ticked(value).ok_or(BadValue {
                    wanted: "a command",
                })?;
                self.check.push(command);
                Ok(rest)
            }
            "cli" => self.cli(value),
            "files" => {
                self.files = list(value)
                    .into_iter()
                    .map(|(_, file)| file.to_owned())
                    .collect();
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
            _ => Ok(value),
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
        let text = match key {
            "success" => &mut self.success,
            _ => return false,
        };
        match text {
            Some(text) => {
                text.push(' ');
                text.push_str(more);
                true
            }
            None => false,
        }
    }
}

/// What to say about a key that is read and does nothing.
pub(super) fn idle(key: &str, place: Place) -> Option<Finding> {
    let (_, reason) = IDLE_KEYS.iter().find(|(idle, _)| *idle == key)?;
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

fn on_fail(value: &str) -> Option<(OnFail, &str)> {
    match value.trim().to_ascii_lowercase().as_str() {
        "stop" => Some((OnFail::Stop, "")),
        "skip" => Some((OnFail::Skip, "")),
        "block" => Some((OnFail::Block, "")),
        _ => None,
    }
}
