//! `loop start`: every flag. A flag that is not given stays empty here; defaults come from
//! the settings, which know the layers below.

use std::path::PathBuf;

use clap::Args;
use descartes_kernel::config::{Permissions, PromptMode};
use descartes_kernel::promise::PromiseMatch;
use descartes_kernel::units::Secs;

use super::values::{self, IterationLimit, SizeLimit, Variable};

/// Tasks at the same time where `--parallel` says no number.
pub const BARE_PARALLEL: &str = "4";

/// What `loop start` was given.
#[derive(Args, Clone, Debug, Default)]
pub struct StartArgs {
    #[command(flatten)]
    pub task: TaskArgs,
    #[command(flatten)]
    pub done: DoneArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
    #[command(flatten)]
    pub prompt: PromptArgs,
    #[command(flatten)]
    pub git: GitArgs,
    #[command(flatten)]
    pub scud: ScudArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// What is to be done.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Task")]
pub struct TaskArgs {
    /// The agent: any command, quoted as in a shell, run without one
    #[arg(short, long, value_name = "CMD")]
    pub command: Option<String>,
    /// The task
    #[arg(short, long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// The task from a file, read again at every iteration; `-` reads standard input once
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
}

/// How the loop knows that the work is done.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Done when")]
pub struct DoneArgs {
    /// A gate: a shell command that must pass before the work counts as done; repeatable
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Time limit of each gate [default: 30m]
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub verify_timeout: Option<Secs>,
    /// What the agent prints, as <promise>TEXT</promise>, when it is done [default: COMPLETE]
    #[arg(long, value_name = "TEXT", conflicts_with = "no_promise")]
    pub completion_promise: Option<String>,
    /// No promise: the gates alone decide, or exit code 0 without gates
    #[arg(long)]
    pub no_promise: bool,
    /// How the promise must stand in the output [default: by backend]
    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromiseMatch>(PromiseMatch::NAMES))]
    pub promise_match: Option<PromiseMatch>,
    /// Whether the first prompt tells the agent how to say it [default: by backend]
    #[arg(long, value_name = "WHEN", value_parser = values::switch())]
    pub promise_hint: Option<bool>,
    /// Silence after the promise that ends an iteration [default: 10s]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub promise_grace: Option<Secs>,
    /// What the agent prints, tagged alike, when it cannot be done [default: BLOCKED]
    #[arg(long, value_name = "TEXT")]
    pub abort_promise: Option<String>,
}

/// What ends the loop before that.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Iterations, or `unlimited` [default: 20]
    #[arg(short, long, value_name = "N", value_parser = values::iterations)]
    pub max_iterations: Option<IterationLimit>,
    /// Time budget of the whole loop
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub max_duration: Option<Secs>,
    /// Cost budget of the whole loop
    #[arg(long, value_name = "USD", value_parser = values::usd)]
    pub max_cost: Option<f64>,
    /// Token budget of the whole loop
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub max_tokens: Option<u64>,
    /// Time limit of one iteration
    #[arg(long, value_name = "DUR", value_parser = values::time_limit)]
    pub timeout: Option<Secs>,
    /// Silence without work that ends an iteration as hung [default: 30m]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub idle_timeout: Option<Secs>,
    /// Failed iterations in a row that end the loop [default: 5]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_failures: Option<u32>,
    /// Iterations without progress before a nudge, twice as many end the loop; 0: off [default: by backend]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub stall_after: Option<u32>,
    /// Between asking processes to end and killing them [default: 5s; less for some agents]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub kill_grace: Option<Secs>,
    /// Log kept of one iteration, or `unlimited` [default: 2GB]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_log: Option<SizeLimit>,
    /// Snapshots of the work tree kept for `loop diff` and `loop rewind`, or `unlimited` [default: 2GB]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_snapshots: Option<SizeLimit>,
}

/// How the agent is started.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Agent")]
pub struct AgentArgs {
    /// claude, codex, gemini, opencode, generic, or a profile [default: guessed]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// The model, passed in the backend's own way
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What the agent may do without asking [default: agent]
    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>(Permissions::NAMES))]
    pub permissions: Option<Permissions>,
    /// An agent that takes over when those before it are limited or failing; repeatable
    #[arg(long, value_name = "AGENT")]
    pub fallback: Vec<String>,
    /// A variable for the agent alone, never written anywhere; without a value it is inherited, which
    /// no list of processes shows; repeatable
    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
    pub env: Vec<Variable>,
    /// How the prompt reaches the agent [default: by backend]
    #[arg(long, value_name = "HOW", value_parser = values::one_of::<PromptMode>(PromptMode::NAMES))]
    pub prompt_mode: Option<PromptMode>,
}

/// What is added to the prompt.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Prompt")]
pub struct PromptArgs {
    /// Later iterations get the bare prompt; only gate failures and your notes are added
    #[arg(long, overrides_with = "iteration_context")]
    pub fresh_context: bool,
    /// Later iterations are told where they stand (the default)
    #[arg(long, overrides_with = "fresh_context")]
    pub iteration_context: bool,
    /// A file whose text stands before the prompt at every iteration; repeatable
    #[arg(long, value_name = "FILE")]
    pub spec_file: Vec<PathBuf>,
    /// Budget of those files, in tokens [default: 5000]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_spec_tokens: Option<u32>,
}

/// What is done in git.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Git")]
pub struct GitArgs {
    /// Commit after each iteration; not with --scud-tag
    #[arg(long)]
    pub auto_commit: bool,
    /// Message of those commits [default: loop: iteration {iteration}]; not with --scud-tag
    #[arg(long, value_name = "T")]
    pub commit_template: Option<String>,
    /// Make and switch to a branch first
    #[arg(long)]
    pub branch: bool,
    /// Name of that branch [default: loop/{timestamp}]
    #[arg(long, value_name = "T")]
    pub branch_template: Option<String>,
    /// Tag descartes/{name}/{iteration} when all gates are green; not with --scud-tag
    #[arg(long)]
    pub tag_green: bool,
}

/// A whole graph of tasks instead of one prompt.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Tasks")]
pub struct ScudArgs {
    /// Run the tasks of this SCUD tag, wave by wave; no prompt is needed
    #[arg(long, value_name = "TAG", conflicts_with_all = ["prompt", "prompt_file"])]
    pub scud_tag: Option<String>,
    #[command(flatten)]
    pub tasks: GraphArgs,
}

/// How a graph of tasks is run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Tasks")]
pub struct GraphArgs {
    /// An implementation plan: a task's section of it goes into its spec
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Notes of an earlier run, for every task
    #[arg(long, value_name = "FILE")]
    pub handoff: Option<PathBuf>,
    /// Attempts at a task [default: 3]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_iterations_per_task: Option<u32>,
    /// Give one agent a whole wave, instead of a fresh one to each task
    #[arg(long)]
    pub no_sub_agents: bool,
    /// Land each task as a commit of its own, and not one a wave; with --in-place commit nothing
    #[arg(long)]
    pub no_auto_commit_waves: bool,
    /// Start a task as soon as what it depends on is merged
    #[arg(long)]
    pub no_wave_barrier: bool,
    /// How a task is told: a text or file with {task}, {plan}, {custom}, {verification}
    #[arg(long, value_name = "TEXT|FILE")]
    pub spec_template: Option<String>,
    /// Work in this tree, one task at a time, instead of in worktrees
    #[arg(long)]
    pub in_place: bool,
    /// Tasks at the same time, each in a worktree of its own [default: 1, bare: 4]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = BARE_PARALLEL, value_parser = values::number)]
    pub parallel: Option<u32>,
    /// Count tasks that somebody else marks while the loop runs as the mark says
    #[arg(long)]
    pub trust_marks: bool,
}

/// Where it happens.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where")]
pub struct PlaceArgs {
    /// Where the agent works [default: here]
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
    /// The state file [default: .descartes/loop-state.json there]
    #[arg(short, long, value_name = "FILE")]
    pub state_file: Option<PathBuf>,
    /// A name for lists and views [default: made up]
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub name: Option<String>,
    /// Start anew over any state file, also that of a loop that can go on; the old one is kept beside it
    #[arg(long)]
    pub force: bool,
    /// Start it inside another loop: it ends with that loop's iteration
    #[arg(long)]
    pub nested: bool,
    /// Take the project's own config as it is, for this run alone: for CI
    #[arg(long)]
    pub trust_config: bool,
}

/// How it is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct ShowArgs {
    /// Print the command, the prompt and the plan; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run in the background and print the loop's id
    #[arg(long)]
    pub detach: bool,
    /// Show what the agent thinks, too
    #[arg(long, alias = "thinking")]
    pub show_thinking: bool,
    /// Print events as JSON lines instead of the human view
    #[arg(long)]
    pub json: bool,
}
