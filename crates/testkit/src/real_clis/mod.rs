//! The real agent CLIs, pointed at the scripted model server.
//!
//! `descartes-real-agents install` puts them into a cache folder; a test asks
//! [`RealCli::program`] whether they are there, and says that it was skipped where they are not.

mod acts;
mod clis;
mod facts;
mod install;
mod launch;
pub mod record;

use clis::{
    aider, claude, cline, cn, codex, copilot, droid, gemini, goose, gptme, kilo, opencode, pi, qwen,
};
use facts::CliFacts;

pub use facts::{Prints, PromptBy, Tells};
pub use install::{InstallError, Installed, folder, install, version};
pub use launch::{Launch, Login, Options, Patience, Permission};

/// An agent CLI that is tested for real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RealCli {
    /// Claude Code.
    Claude,
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    OpenCode,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    Aider,
    Pi,
    /// Continue's CLI.
    Cn,
    Goose,
    Kilo,
    /// Factory's.
    Droid,
    Cline,
    /// gptme.
    Gptme,
}

impl RealCli {
    pub const ALL: [Self; 14] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::OpenCode,
        Self::Qwen,
        Self::Copilot,
        Self::Aider,
        Self::Pi,
        Self::Cn,
        Self::Goose,
        Self::Kilo,
        Self::Droid,
        Self::Cline,
        Self::Gptme,
    ];

    /// Those of which every case is recorded, and every fault is tried.
    pub const FIRST: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    fn facts(self) -> &'static CliFacts {
        match self {
            Self::Claude => &claude::FACTS,
            Self::Codex => &codex::FACTS,
            Self::Gemini => &gemini::FACTS,
            Self::OpenCode => &opencode::FACTS,
            Self::Qwen => &qwen::FACTS,
            Self::Copilot => &copilot::FACTS,
            Self::Aider => &aider::FACTS,
            Self::Pi => &pi::FACTS,
            Self::Cn => &cn::FACTS,
            Self::Goose => &goose::FACTS,
            Self::Kilo => &kilo::FACTS,
            Self::Droid => &droid::FACTS,
            Self::Cline => &cline::FACTS,
            Self::Gptme => &gptme::FACTS,
        }
    }

    /// Its name: that of its profile.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The CLI of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cli| cli.name() == name)
    }

    /// Its package on npm or PyPI.
    pub fn package(self) -> &'static str {
        self.facts().source.package()
    }

    /// How it prints.
    pub fn prints(self) -> Prints {
        self.facts().prints
    }

    /// What it tells of tokens and cost.
    pub fn tells(self) -> Tells {
        self.facts().tells
    }

    /// Words of a user's command beside the program.
    pub fn words(self) -> &'static [&'static str] {
        self.facts().words
    }

    /// Where it is installed; none when it is not.
    pub fn program(self) -> Option<std::path::PathBuf> {
        let program = folder().join(self.name()).join(self.facts().program);
        program.exists().then_some(program)
    }
}
