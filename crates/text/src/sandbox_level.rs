//! How far agents are confined, as task files, profiles, flags and config files say it.

use serde::{Deserialize, Serialize};

/// How far agents and gates are confined. The greater, the stricter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
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

    /// The level of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Off, Self::Workspace, Self::Strict]
            .into_iter()
            .find(|level| level.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for name in SandboxLevel::NAMES {
            assert_eq!(
                SandboxLevel::from_name(name).map(SandboxLevel::as_str),
                Some(*name)
            );
        }
        assert_eq!(SandboxLevel::from_name("Strict "), None);
        assert!(SandboxLevel::Off < SandboxLevel::Workspace);
        assert!(SandboxLevel::Workspace < SandboxLevel::Strict);
    }
}
