//! What the user asked for.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How far agents and gates are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLevel {
    /// Not at all.
    #[default]
    Off,
    /// Writes only where the work is; keys are hidden; the network is the machine's.
    Workspace,
    /// The home directory is hidden as well, and no network but the provider's hosts.
    Strict,
}

impl SandboxLevel {
    /// What a flag or a config file may say.
    pub const NAMES: &'static [&'static str] = &["off", "workspace", "strict"];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

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
}

impl LevelReason {
    /// A few words.
    pub fn short(&self) -> &'static str {
        match self {
            Self::Permissions | Self::Unchecked => "default",
            Self::MachineCannot(_) => "it does not work here",
            Self::Within => "inside of another",
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Permissions => "the default with --permissions all".to_owned(),
            Self::Unchecked => "the default for an agent that skips its own checks".to_owned(),
            Self::MachineCannot(why) => format!("the default does not work here: {why}"),
            Self::Within => "another sandbox is around it".to_owned(),
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
