//! `install` and `uninstall`.

use clap::{Args, ValueEnum};

/// What both were given.
#[derive(Args, Clone, Debug)]
pub struct InstallArgs {
    /// The program to install for
    #[arg(value_name = "TOOL")]
    pub tool: Tool,
    /// Install for this project, in its own folder of that program's settings
    #[arg(long)]
    project: bool,
    /// Install for you, in your own settings (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Also replace or remove files and entries that were edited by hand
    #[arg(long)]
    pub force: bool,
    /// Do not ask before a settings file is changed
    #[arg(short, long)]
    pub yes: bool,
}

/// A program that descartes brings commands to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// Claude Code: commands and tools, as a plugin
    Claude,
    /// Codex: tools, in its config.toml
    Codex,
    /// Gemini CLI: tools, in its settings.json
    Gemini,
    /// OpenCode: tools, in its opencode.json
    Opencode,
    /// Cursor: tools, in its mcp.json
    Cursor,
}

/// Whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The project's.
    Project,
    /// The person's.
    User,
}

impl Place {
    /// As it is typed; the person's goes without saying.
    pub fn typed(self) -> &'static str {
        match self {
            Self::Project => " --project",
            Self::User => "",
        }
    }
}

impl InstallArgs {
    /// Whose they are.
    pub fn place(&self) -> Place {
        match self.project {
            true => Place::Project,
            false => Place::User,
        }
    }
}
