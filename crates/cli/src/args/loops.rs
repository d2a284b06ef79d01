//! The verbs that look at a loop or steer it.

use std::path::PathBuf;

use clap::Args;
use descartes_text::units::Secs;

use super::resume::{ChangeArgs, WhichLoop};
use super::values;

/// `loop status`.
#[derive(Args, Clone, Debug, Default)]
pub struct StatusArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Keep updating it until the loop is over
    #[arg(short, long)]
    pub watch: bool,
    /// Print it as JSON; with --watch one line per change
    #[arg(long)]
    pub json: bool,
}

/// `loop list`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ListArgs {
    /// List all loops of this user on this machine, not only those of this directory
    #[arg(short, long)]
    pub all: bool,
    /// Also list the loops of tasks, below the task loop they belong to
    #[arg(long)]
    pub children: bool,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// `loop history`.
#[derive(Args, Clone, Debug, Default)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Show only the last N
    #[arg(short = 'n', long, value_name = "N", value_parser = values::number)]
    pub last: Option<u32>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// An iteration and a loop: what is a number is the iteration.
#[derive(Args, Clone, Debug, Default)]
pub struct IterationOf {
    /// The iteration [default: the newest], and the loop's id or name [default: the one of this directory]
    #[arg(value_name = "N|LOOP", num_args = 0..=2)]
    pub words: Vec<String>,
    /// Its state file
    #[arg(short, long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,
}

/// `loop logs`.
#[derive(Args, Clone, Debug, Default)]
pub struct LogsArgs {
    #[command(flatten)]
    pub of: IterationOf,
    /// Keep printing new output, from iteration to iteration, until the loop is over
    #[arg(short, long)]
    pub follow: bool,
    /// Show only the last LINES lines
    #[arg(short = 'n', long, value_name = "LINES", value_parser = values::number)]
    pub lines: Option<u32>,
    /// Print the raw bytes: standard output to standard output, standard error to standard error
    #[arg(long)]
    pub raw: bool,
    /// Include what the agent thought
    #[arg(long, visible_alias = "show-thinking", conflicts_with = "raw")]
    pub thinking: bool,
    /// Show only standard error
    #[arg(long)]
    pub stderr: bool,
    /// Print one JSON object per line
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
}

/// `watch` and `loop watch`.
#[derive(Args, Clone, Debug, Default)]
pub struct WatchArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Leave the mouse to the terminal (no mouse support)
    #[arg(long)]
    pub no_mouse: bool,
}

/// `loop cancel`.
#[derive(Args, Clone, Debug, Default)]
pub struct CancelArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Kill the agent at once, without a grace period
    #[arg(long)]
    pub now: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// `loop pause` and `loop unpause`.
#[derive(Args, Clone, Debug, Default)]
pub struct PauseArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// How long to wait for an answer, and its form.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct AnswerArgs {
    /// Wait until it has taken effect
    #[arg(long)]
    pub wait: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// `loop say`.
#[derive(Args, Clone, Debug, Default)]
pub struct SayArgs {
    /// The note, in quotes
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: String,
    #[command(flatten)]
    pub which: WhichLoop,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// `loop set`.
#[derive(Args, Clone, Debug, Default)]
pub struct SetArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// End a wait for the provider or after failures and try again now
    #[arg(long)]
    pub retry_now: bool,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// `loop diff`.
#[derive(Args, Clone, Debug, Default)]
pub struct DiffArgs {
    #[command(flatten)]
    pub of: IterationOf,
    /// Print one line per file instead of the patch
    #[arg(long)]
    pub stat: bool,
    /// Print the exact patch for `git apply`: nothing cleaned or masked
    #[arg(long, conflicts_with = "stat")]
    pub raw: bool,
    /// Print the changed files as JSON
    #[arg(long, conflicts_with_all = ["stat", "raw"])]
    pub json: bool,
}

/// `loop rewind`.
#[derive(Args, Clone, Debug, Default)]
pub struct RewindArgs {
    /// The iteration to go back to the end of (0: before the first), or the name of a safety copy
    #[arg(value_name = "N|COPY")]
    pub to: Option<String>,
    #[command(flatten)]
    pub which: WhichLoop,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Restore the whole repository, not only what lies below the loop's working directory
    #[arg(long)]
    pub whole_repository: bool,
    /// List the safety copies, newest last
    #[arg(long, visible_alias = "list", conflicts_with_all = ["to", "yes", "whole_repository"])]
    pub copies: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub json: bool,
}

/// `loop workers`.
#[derive(Args, Clone, Debug, Default)]
pub struct LoopWorkersArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
}

/// `clean`.
#[derive(Args, Clone, Copy, Debug)]
pub struct CleanArgs {
    /// Only loops whose last activity is older than this
    #[arg(long, value_name = "DUR", default_value_t = Self::OLDER, value_parser = values::duration)]
    pub older: Secs,
    /// Also remove their journals, and with them their history
    #[arg(long)]
    pub whole: bool,
    /// Also remove the safety copies of `loop rewind`, which are kept otherwise
    #[arg(long)]
    pub safety_copies: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Print what was found or removed as JSON
    #[arg(long)]
    pub json: bool,
}

impl CleanArgs {
    /// The age that is meant where none is given.
    pub const OLDER: Secs = Secs::new(30 * 24 * 60 * 60);
}
