//! Commands around loops: trying, setting up, looking after.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `gui`.
#[derive(Args, Clone, Debug, Default)]
pub struct GuiArgs {
    /// The loop to show first: its id or name
    #[arg(value_name = "LOOP")]
    pub name: Option<String>,
    /// Use the light theme
    #[arg(long, conflicts_with = "dark")]
    pub light: bool,
    /// Use the dark theme
    #[arg(long)]
    pub dark: bool,
}

/// `demo`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DemoArgs {
    /// Skip the pauses that make it easier to watch
    #[arg(long)]
    pub fast: bool,
    /// Print events as JSON lines instead of the human view
    #[arg(long)]
    pub json: bool,
}

/// `init`.
#[derive(Args, Clone, Debug, Default)]
pub struct InitArgs {
    /// The project
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Show what would be written; write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `doctor`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// `config`.
#[derive(Args, Clone, Copy, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What to do with the configuration.
#[derive(Subcommand, Clone, Copy, Debug)]
pub enum ConfigVerb {
    /// Print every setting with its value and its source
    Show {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every setting with its default and meaning, as a config file
    Defaults,
}

/// `trust`.
#[derive(Args, Clone, Debug, Default)]
pub struct TrustArgs {
    /// Trust it without asking
    #[arg(long, conflicts_with_all = ["show", "revoke"])]
    pub yes: bool,
    /// Show what needs trust and whether it is trusted; change nothing
    #[arg(long, conflicts_with = "revoke")]
    pub show: bool,
    /// Stop trusting this project
    #[arg(long)]
    pub revoke: bool,
    /// Print what --show shows as JSON
    #[arg(long, requires = "show")]
    pub json: bool,
    /// The project [default: here]
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
}

/// `completions`.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Args, Clone, Debug, Default)]
pub struct ManArgs {
    /// Write one page for each command into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
