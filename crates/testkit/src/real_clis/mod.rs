//! The real agent CLIs, pointed at the scripted model server.
//!
//! `descartes-real-agents install` puts them into a cache folder; a test asks
//! [`RealCli::program`] whether they are there, and says that it was skipped where they are not.

mod config;
mod install;
mod launch;
pub mod record;

pub use install::{InstallError, folder, install, version};
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
}

impl RealCli {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Its command's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// The CLI of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cli| cli.name() == name)
    }

    /// Its package on npm.
    pub fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::OpenCode => "opencode-ai",
        }
    }

    /// The script of its package that npm does not run unasked: it puts the platform's binary in
    /// its place and downloads nothing.
    fn post_install(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("install.cjs"),
            Self::OpenCode => Some("postinstall.mjs"),
            Self::Codex | Self::Gemini => None,
        }
    }

    /// Where it is installed; none when it is not.
    pub fn program(self) -> Option<std::path::PathBuf> {
        let program = folder().join("node_modules/.bin").join(self.name());
        program.exists().then_some(program)
    }
}
