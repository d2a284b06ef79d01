//! `loop resume`: which loop, and what changes from here on.

use std::path::PathBuf;

use clap::Args;
use descartes_kernel::config::{ConfigChange, Permissions, PromptMode};
use descartes_kernel::sandbox::SandboxLevel;
use descartes_store::config::{FlagType, IterationLimit};
use descartes_text::units::Secs;

use super::values::{self, Variable};

/// What `loop resume` was given.
#[derive(Args, Clone, Debug, Default)]
pub struct ResumeArgs {
    #[command(flatten)]
    pub which: WhichLoop,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub agent: AgentChangeArgs,
    /// An environment variable for the agent only; values are not stored, so pass them again, or
    /// omit the value to inherit it; repeatable
    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
    pub env: Vec<Variable>,
    /// Resume in this directory a project that was moved or copied here; a copy becomes an independent loop
    #[arg(long)]
    pub here: bool,
    /// Resume in that directory, as --here does in this one
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
    /// In a task loop: try blocked tasks again, with all their attempts
    #[arg(long)]
    pub retry_blocked: bool,
    /// In a task loop: accept the marks that others set on tasks while it ran
    #[arg(long)]
    pub trust_marks: bool,
    /// In a task loop with workers: meet them at this engine from here on, since the one before is gone
    #[arg(long, value_name = "URL")]
    pub workers: Option<String>,
    /// First drop damaged lines from the journal; a copy of it is kept
    #[arg(long)]
    pub repair: bool,
    /// Accept an edited state file as it is, even where it loosens gates, limits or permissions
    #[arg(long)]
    pub accept_edits: bool,
    /// Trust the project's own config as it is, for this run only (for CI)
    #[arg(long)]
    pub trust_config: bool,
    /// Run in the background and print the loop's id
    #[arg(long)]
    pub detach: bool,
    /// Also show what the agent thinks
    #[arg(long, alias = "thinking")]
    pub show_thinking: bool,
    /// Print events as JSON lines instead of the human view
    #[arg(long)]
    pub json: bool,
}

/// Which loop is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct WhichLoop {
    /// The loop's id or name [default: the one of this directory]
    #[arg(value_name = "LOOP", conflicts_with = "state_file")]
    pub id: Option<String>,
    /// Its state file
    #[arg(short, long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,
}

/// Limits, gates, prompt or model, changed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Changes")]
pub struct ChangeArgs {
    /// Maximum iterations in total, or `unlimited`
    #[arg(short, long, value_name = "N", value_parser = values::iterations)]
    pub max_iterations: Option<IterationLimit>,
    /// Time budget for the whole loop
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub max_duration: Option<Secs>,
    /// Cost budget for the whole loop
    #[arg(long, value_name = "USD", value_parser = values::usd)]
    pub max_cost: Option<f64>,
    /// Token budget for the whole loop
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub max_tokens: Option<u64>,
    /// Time limit for one iteration
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub timeout: Option<Secs>,
    /// Time without output or activity after which an iteration counts as hung and is ended
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub idle_timeout: Option<Secs>,
    /// Failed iterations in a row that end the loop
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_failures: Option<u32>,
    /// Iterations without progress before a nudge; 0: off
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub stall_after: Option<u32>,
    /// Gates, replacing all existing ones; repeatable
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Time limit for each gate
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub verify_timeout: Option<Secs>,
    /// The task
    #[arg(short, long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// The task from a file; `-` reads standard input once
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

/// All but the prompt, which may have to be read.
impl From<&ChangeArgs> for ConfigChange {
    fn from(args: &ChangeArgs) -> Self {
        Self {
            max_iterations: args.max_iterations.map(|limit| limit.0),
            max_duration_secs: args.max_duration,
            max_cost_usd: args.max_cost,
            max_tokens: args.max_tokens,
            iteration_timeout_secs: args.timeout,
            idle_timeout_secs: args.idle_timeout,
            max_failures: args.max_failures,
            stall_after: args.stall_after,
            verify: args.verify.given(),
            verify_timeout_secs: args.verify_timeout,
            model: args.model.clone(),
            ..Self::default()
        }
    }
}

/// How the agent is started from here on.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Changes")]
pub struct AgentChangeArgs {
    /// Another agent: claude, codex, gemini, opencode, or a profile; a command of your own is kept and
    /// treated as this agent
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// What the agent may do without asking
    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>())]
    pub permissions: Option<Permissions>,
    /// How far agents and gates are confined
    #[arg(long, value_name = "LEVEL", value_parser = values::one_of::<SandboxLevel>())]
    pub sandbox: Option<SandboxLevel>,
    /// Also writable in the sandbox from here on; repeatable
    #[arg(long, value_name = "PATH")]
    pub sandbox_write: Vec<PathBuf>,
    /// Readable in the sandbox from here on, though it would be hidden; repeatable
    #[arg(long, value_name = "PATH")]
    pub sandbox_read: Vec<PathBuf>,
    /// How the prompt is passed to the agent
    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromptMode>())]
    pub prompt_mode: Option<PromptMode>,
}
