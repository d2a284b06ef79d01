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

/// The sandbox of a loop. Paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxConfig {
    /// How far; `None`: as the permissions of the agent ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<SandboxLevel>,
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
    /// How far this loop is confined: `off` unless it was asked for.
    pub fn effective(&self) -> SandboxLevel {
        self.level.unwrap_or_default()
    }

    /// How far its gates are.
    pub fn effective_for_gates(&self) -> SandboxLevel {
        match self.gates {
            Some(false) => SandboxLevel::Off,
            _ => self.effective(),
        }
    }
}
