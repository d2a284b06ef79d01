//! Which sandbox a run is in, as the journal keeps it and views show it.

use serde::{Deserialize, Serialize};

use super::config::SandboxLevel;

/// What carries a sandbox out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// bwrap draws the view; Landlock and seccomp hold inside.
    Bwrap,
    /// Landlock and seccomp alone: weaker.
    Landlock,
}

/// Which sandbox the runs of a loop are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSummary {
    pub level: SandboxLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// Version of bwrap and of Landlock's interface, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Why it is less than it could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weaker: Option<String>,
    /// Writable folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// How many paths are locked, and how many hidden.
    #[serde(default)]
    pub locked: u32,
    #[serde(default)]
    pub hidden: u32,
    /// Names of variables that are not passed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_dropped: Vec<String>,
    /// Whether gates are in it, too.
    #[serde(default)]
    pub gates: SandboxLevel,
}

impl SandboxSummary {
    /// One line for people.
    pub fn describe(&self) -> String {
        let level = self.level.as_str();
        let mut text = match (self.level, self.mechanism) {
            (SandboxLevel::Off, _) | (_, None) => return level.to_owned(),
            (_, Some(Mechanism::Bwrap)) => format!("{level} ({})", self.version),
            (_, Some(Mechanism::Landlock)) => {
                format!("{level}, weaker ({})", self.version)
            }
        };
        if self.gates == SandboxLevel::Off {
            text.push_str("; gates outside");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_which_sandbox_and_what_is_outside() {
        let mut summary = SandboxSummary {
            level: SandboxLevel::Workspace,
            mechanism: Some(Mechanism::Bwrap),
            version: "bwrap 0.8.0, Landlock ABI 7, seccomp".to_owned(),
            weaker: None,
            write: Vec::new(),
            locked: 0,
            hidden: 0,
            env_dropped: Vec::new(),
            gates: SandboxLevel::Workspace,
        };
        assert_eq!(
            summary.describe(),
            "workspace (bwrap 0.8.0, Landlock ABI 7, seccomp)"
        );
        summary.gates = SandboxLevel::Off;
        summary.mechanism = Some(Mechanism::Landlock);
        summary.version = "Landlock ABI 7, seccomp".to_owned();
        assert_eq!(
            summary.describe(),
            "workspace, weaker (Landlock ABI 7, seccomp); gates outside"
        );
        summary.level = SandboxLevel::Off;
        assert_eq!(summary.describe(), "off");
        let read: SandboxSummary = serde_json::from_str(r#"{"level":"off"}"#).unwrap();
        assert_eq!(read.gates, SandboxLevel::Off);
    }
}
