//! The tools, and what each of them knows.

use std::path::PathBuf;

use super::install;

/// One loop among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Ours.
    Descartes,
    /// The loop that everybody writes first.
    Bash,
    /// A script in the manner of snarktank's ralph.sh, of our own writing.
    Script,
    /// crates.io.
    Orchestrator,
    /// npm.
    RalphTui,
    /// PyPI.
    RalphPy,
    /// PyPI.
    Ralphify,
    /// crates.io.
    Scud,
}

/// How a tool hands its prompt over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// As the last argument.
    Argument,
    /// On standard input.
    Stdin,
}

impl Tool {
    /// In the order of the page.
    pub const ALL: [Self; 8] = [
        Self::Descartes,
        Self::Bash,
        Self::Script,
        Self::Orchestrator,
        Self::RalphTui,
        Self::RalphPy,
        Self::Ralphify,
        Self::Scud,
    ];

    /// As the page calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Descartes => "descartes",
            Self::Bash => "bash loop",
            Self::Script => "snarktank style",
            Self::Orchestrator => "ralph-orchestrator",
            Self::RalphTui => "ralph-tui",
            Self::RalphPy => "ralph-py",
            Self::Ralphify => "ralphify",
            Self::Scud => "scud",
        }
    }

    /// Its package and version, where it comes from a registry.
    pub fn package(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Descartes | Self::Bash | Self::Script => None,
            Self::Orchestrator => Some(("ralph-cli", "2.10.1")),
            Self::RalphTui => Some(("ralph-tui", "0.11.0")),
            Self::RalphPy => Some(("ralph-py", "0.4.0")),
            Self::Ralphify => Some(("ralphify", "0.3.0")),
            Self::Scud => Some(("scud-cli", crate::tasks::SCUD_VERSION)),
        }
    }

    /// Its program, where the harness puts it; none for what needs no installation.
    pub fn program(self) -> Option<PathBuf> {
        let folder = install::folder();
        match self {
            Self::Descartes | Self::Bash | Self::Script => None,
            Self::Orchestrator => Some(folder.join("ralph-orchestrator/bin/ralph")),
            Self::RalphTui => Some(folder.join("ralph-tui/node_modules/.bin/ralph-tui")),
            Self::RalphPy => Some(folder.join("ralph-py/bin/ralph")),
            Self::Ralphify => Some(folder.join("ralphify/bin/ralph")),
            Self::Scud => Some(crate::tasks::scud_program()),
        }
    }

    /// Why it cannot be driven here at all.
    pub fn missing(self) -> Option<String> {
        let program = self.program()?;
        if !program.exists() {
            return Some("not installed".to_owned());
        }
        // It types the command into a shell of tmux and waits for the window to vanish, which the
        // agent that drives all others does not see to; and it listens for no promise.
        (self == Self::Scud)
            .then(|| "needs tmux and an agent that closes its own window".to_owned())
    }

    /// What the agent prints when it is done; none where nothing is listened for.
    pub fn says(self) -> Option<&'static str> {
        match self {
            Self::RalphPy => Some("RALPH_COMPLETE"),
            Self::Ralphify | Self::Scud => None,
            _ => Some("<promise>COMPLETE</promise>"),
        }
    }

    /// Whether it can be given a command that must be green before anything is called done.
    pub fn has_gates(self) -> bool {
        self == Self::Descartes
    }

    /// Whether it ever asks an agent for events; one that does not will see plain text alone.
    pub fn reads_events(self) -> bool {
        self != Self::RalphPy
    }

    /// How its prompt reaches the agent.
    pub fn prompt(self) -> Prompt {
        match self {
            Self::Script | Self::RalphTui | Self::Ralphify => Prompt::Stdin,
            _ => Prompt::Argument,
        }
    }

    /// The wait between iterations that it comes with, and what it can be set to.
    pub fn pause(self) -> &'static str {
        match self {
            Self::Descartes | Self::Bash | Self::Ralphify => "none",
            Self::Script => "2 s, set to 0",
            Self::Orchestrator => "0.25 s, no flag",
            Self::RalphTui => "1 s, set to 0",
            Self::RalphPy => "5 s, set to 0",
            Self::Scud => "5 s, no flag",
        }
    }
}
