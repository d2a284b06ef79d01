//! What the user asked for.

use std::path::PathBuf;

use descartes_text::sandbox_level::SandboxLevel;
use serde::{Deserialize, Serialize};

/// Why a loop is confined as far as it is, where nobody asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelReason {
    /// The default for `--permissions all`.
    Permissions,
    /// The default for an agent that acts without checks of its own.
    Unchecked,
    /// It is the default, and does not work here.
    MachineCannot(String),
    /// A sandbox of ours is around it.
    Within,
    /// The profile of this agent asks for it.
    Profile(String),
    /// A task asks for it.
    Task,
    /// The worker that makes the attempt asks for it.
    Worker,
}

impl LevelReason {
    /// A few words.
    pub fn short(&self) -> &'static str {
        match self {
            Self::Permissions | Self::Unchecked => "default",
            Self::MachineCannot(_) => "it does not work here",
            Self::Within => "inside of another",
            Self::Profile(_) => "by its profile",
            Self::Task => "by its task",
            Self::Worker => "by its worker",
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Permissions => "the default with --permissions all".to_owned(),
            Self::Unchecked => "the default for an agent that skips its own checks".to_owned(),
            Self::MachineCannot(why) => format!("the default does not work here: {why}"),
            Self::Within => "another sandbox is around it".to_owned(),
            Self::Profile(agent) => format!("the profile of {agent} asks for it"),
            Self::Task => "its task asks for it".to_owned(),
            Self::Worker => "the worker asks for it".to_owned(),
        }
    }
}

/// The sandbox of a loop. Paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxConfig {
    /// How far; `None`: nobody asked, and nothing makes it the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<SandboxLevel>,
    /// Why, where nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<LevelReason>,
    /// Also writable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub write: Vec<PathBuf>,
    /// Readable, though it would be hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub read: Vec<PathBuf>,
    /// Also hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "descartes_text::path_text::many")]
    pub hide: Vec<PathBuf>,
    /// Caches that are writable; `None`: the known ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<Vec<String>>,
    /// Whether gates are confined as well; `None`: yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<bool>,
    /// Whether gates have the machine's network; `None`: not in `strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_network: Option<bool>,
}

impl SandboxConfig {
    /// How far this loop is confined: `off` unless it was asked for, or is the default.
    pub fn effective(&self) -> SandboxLevel {
        self.level.unwrap_or_default()
    }

    /// Somebody else asks for a level, too: the strictest holds, whoever asks for it, and it is never less
    /// than before.
    pub fn ask(&mut self, level: SandboxLevel, by: LevelReason) {
        if self.level.is_none_or(|held| held < level) {
            self.level = Some(level);
            self.why = Some(by);
        }
    }

    /// Asks for the level of another, for the reason that it has.
    pub fn ask_as(&mut self, other: &Self) {
        if other.effective() > self.effective() {
            self.level = other.level;
            self.why.clone_from(&other.why);
        }
    }

    /// The same for an attempt that is made on another machine, whose worker asks for at least `least`. A
    /// default that did not work where the loop is may work there: it is found out anew.
    pub fn on_worker(&mut self, least: Option<SandboxLevel>) {
        if matches!(self.why, Some(LevelReason::MachineCannot(_))) {
            self.level = None;
            self.why = None;
        }
        // A worker never takes the default away: `off` asks for nothing.
        if let Some(least) = least.filter(|least| *least != SandboxLevel::Off) {
            self.ask(least, LevelReason::Worker);
        }
    }

    /// Whether it names any path.
    pub fn names_paths(&self) -> bool {
        !(self.write.is_empty() && self.read.is_empty() && self.hide.is_empty())
    }

    /// Level and reason in a few words: `workspace (default)`.
    pub fn short(&self) -> String {
        let level = self.effective().as_str();
        match (&self.why, self.level) {
            (Some(why), _) => format!("{level} ({})", why.short()),
            (None, Some(_)) => format!("{level} (asked for)"),
            (None, None) => level.to_owned(),
        }
    }

    /// Why it is as far as it is, for people; `None` where nothing asks for a sandbox.
    pub fn reason(&self) -> Option<String> {
        match (&self.why, self.level) {
            (Some(why), _) => Some(why.describe()),
            (None, Some(_)) => Some("asked for".to_owned()),
            (None, None) => None,
        }
    }

    /// How far its gates are.
    pub fn effective_for_gates(&self) -> SandboxLevel {
        match self.gates {
            Some(false) => SandboxLevel::Off,
            _ => self.effective(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxLevel::{Off, Strict, Workspace};

    const LEVELS: [SandboxLevel; 3] = [Off, Workspace, Strict];

    fn config(level: Option<SandboxLevel>, why: Option<LevelReason>) -> SandboxConfig {
        SandboxConfig {
            level,
            why,
            ..SandboxConfig::default()
        }
    }

    #[test]
    fn the_strictest_level_that_anybody_asks_for_holds() {
        for first in [None, Some(Off), Some(Workspace), Some(Strict)] {
            for second in LEVELS {
                for third in LEVELS {
                    let mut asked = config(first, None);
                    asked.ask(second, LevelReason::Profile("mine".to_owned()));
                    asked.ask(third, LevelReason::Task);
                    let strictest = [first, Some(second), Some(third)].into_iter().max();
                    let row = (first, second, third);
                    assert_eq!(asked.level, strictest.flatten(), "{row:?}");
                    // Who asked for it first is told.
                    let why = match asked.level {
                        level if level == first => None,
                        level if level == Some(second) => {
                            Some(LevelReason::Profile("mine".to_owned()))
                        }
                        _ => Some(LevelReason::Task),
                    };
                    assert_eq!(asked.why, why, "{row:?}");
                }
            }
        }
    }

    #[test]
    fn a_worker_confines_at_least_as_far_as_it_was_told() {
        use LevelReason::{MachineCannot, Permissions, Worker};
        let cannot = || Some(MachineCannot("no bwrap".to_owned()));
        // What the loop has and why, the worker's least, what holds there and why.
        let table = [
            (None, None, None, None, None),
            (None, None, Some(Off), None, None),
            (None, None, Some(Strict), Some(Strict), Some(Worker)),
            (Some(Off), None, None, Some(Off), None),
            (
                Some(Off),
                None,
                Some(Workspace),
                Some(Workspace),
                Some(Worker),
            ),
            (Some(Workspace), None, Some(Off), Some(Workspace), None),
            (
                Some(Workspace),
                Some(Permissions),
                Some(Workspace),
                Some(Workspace),
                Some(Permissions),
            ),
            (
                Some(Workspace),
                None,
                Some(Strict),
                Some(Strict),
                Some(Worker),
            ),
            (Some(Strict), None, Some(Workspace), Some(Strict), None),
            // The machine of the loop could not: this one may.
            (Some(Off), cannot(), None, None, None),
            (
                Some(Off),
                cannot(),
                Some(Workspace),
                Some(Workspace),
                Some(Worker),
            ),
        ];
        for (level, why, least, expected, expected_why) in table {
            let mut there = config(level, why.clone());
            there.on_worker(least);
            let row = (level, why, least);
            assert_eq!(
                (there.level, there.why),
                (expected, expected_why),
                "{row:?}"
            );
        }
    }
}
