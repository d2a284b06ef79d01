//! Which sandbox a run is in, as the journal keeps it and views show it.

use descartes_text::sandbox_level::SandboxLevel;
use serde::{Deserialize, Serialize};

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
    /// What turns off a sandbox of the agent's own, which would fail inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_off: Option<String>,
    /// Limits on processes and memory that hold, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Limits that this machine cannot set, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlimited: Vec<String>,
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
        if self.own_off.is_some() {
            text.push_str("; the agent's own sandbox is off");
        }
        if !self.unlimited.is_empty() {
            let what: Vec<&str> = self.unlimited.iter().map(|one| first_word(one)).collect();
            text.push_str(&format!("; no limit on {}", what.join(" and ")));
        }
        text
    }
}

/// `memory` of `memory: no cgroup`.
fn first_word(text: &str) -> &str {
    text.split(':').next().unwrap_or(text)
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
            own_off: None,
            limits: Vec::new(),
            unlimited: Vec::new(),
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
        summary.gates = SandboxLevel::Workspace;
        summary.own_off = Some("--no-sandbox".to_owned());
        summary.unlimited = vec!["memory: no cgroup".to_owned()];
        assert_eq!(
            summary.describe(),
            "workspace, weaker (Landlock ABI 7, seccomp); the agent's own sandbox is off; no limit on memory"
        );
        summary.level = SandboxLevel::Off;
        assert_eq!(summary.describe(), "off");
        let read: SandboxSummary = serde_json::from_str(r#"{"level":"off"}"#).unwrap();
        assert_eq!(read.gates, SandboxLevel::Off);
    }
}
