//! `roadmap`, `spec`, `work`, `graph`: commands around graphs of tasks.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::start::{AgentArgs, DoneArgs, GraphArgs, LimitArgs, PlaceArgs, ShowArgs};
use super::values;

/// `roadmap`.
#[derive(Args, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RoadmapArgs {
    #[command(subcommand)]
    pub verb: RoadmapVerb,
}

/// What to do with a roadmap.
#[derive(Subcommand, Debug)]
pub enum RoadmapVerb {
    /// Run its tasks in the order of their dependencies; goes on where an earlier run was
    Run(Box<RoadmapRunArgs>),
    /// Show its tasks and what runs now
    Status(RoadmapFileArgs),
    /// Forget what earlier runs know; the file stays as it is
    Reset(RoadmapFileArgs),
    /// Report everything in the file that would not do what it says
    Check(RoadmapFileArgs),
}

/// A roadmap's file.
#[derive(Args, Clone, Debug)]
pub struct RoadmapFileArgs {
    /// The roadmap
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `roadmap run`. What the flags it shares with `loop start` do otherwise here is said here.
#[derive(Args, Clone, Debug)]
#[command(
    mut_arg("state_file", |arg| arg.help("The state file [default: .descartes/roadmap-FILE.json there]")),
    mut_arg("max_iterations", |arg| arg.help("Iterations of all tasks together, or `unlimited` [default: unlimited]")),
    mut_arg("completion_promise", |arg| arg.help(
        "The promise of a looping task that does not say otherwise, as --ralph-default-promise"
    ).conflicts_with("ralph_default_promise")),
    mut_arg("stall_after", |arg| arg.help(
        "Attempts of a task without progress before a nudge, twice as many block it; 0: off [default: 0]"
    )),
    // Refused with the reason.
    mut_arg("no_promise", |arg| arg.hide(true)),
    mut_arg("max_iterations_per_task", |arg| arg.hide(true)),
)]
pub struct RoadmapRunArgs {
    /// The roadmap
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The agent by name: claude, codex, gemini, opencode, or a profile
    #[arg(long, value_name = "NAME", conflicts_with = "backend")]
    pub cli: Option<String>,
    /// The agent: any command, quoted as in a shell
    #[arg(short, long, value_name = "CMD")]
    pub command: Option<String>,
    /// Attempts of a looping task that does not say otherwise; any other has one, and its `retries`
    #[arg(long, value_name = "N", default_value = "30", value_parser = values::number)]
    pub ralph_default_iterations: u32,
    /// The promise of a looping task that does not say otherwise [default: COMPLETE]
    #[arg(long, value_name = "TEXT")]
    pub ralph_default_promise: Option<String>,
    /// When all tasks are done, ask an agent for one more, so often at most
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::number)]
    pub growth: u32,
    /// Go on with an earlier run that ended with blocked tasks, and try them again
    #[arg(long, conflicts_with = "force")]
    pub retry_blocked: bool,
    /// Make and switch to a branch first; the work lands there
    #[arg(long)]
    pub branch: bool,
    /// Name of that branch [default: loop/{timestamp}]
    #[arg(long, value_name = "T")]
    pub branch_template: Option<String>,
    #[command(flatten)]
    pub tasks: GraphArgs,
    #[command(flatten)]
    pub done: DoneArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// Which tasks are meant.
#[derive(Args, Clone, Debug, Default)]
pub struct WhichTasks {
    /// A SCUD tag [default: the active one]
    #[arg(long, value_name = "TAG", conflicts_with = "roadmap")]
    pub scud_tag: Option<String>,
    /// A roadmap
    #[arg(long, value_name = "FILE")]
    pub roadmap: Option<PathBuf>,
}

/// `spec`.
#[derive(Args, Clone, Debug)]
pub struct SpecArgs {
    /// The task
    #[arg(value_name = "TASK")]
    pub task: String,
    #[command(flatten)]
    pub which: WhichTasks,
    /// A gate, as for `loop start`; repeatable
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// A file that is told with every task; repeatable
    #[arg(long, value_name = "FILE")]
    pub spec_file: Vec<PathBuf>,
    /// Budget of the whole, in tokens [default: 5000]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_spec_tokens: Option<u32>,
    /// An implementation plan: the task's section of it goes into the spec
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Notes of an earlier run
    #[arg(long, value_name = "FILE")]
    pub handoff: Option<PathBuf>,
    /// How a task is told: a text or file with {task}, {plan}, {custom}, {verification}
    #[arg(long, value_name = "TEXT|FILE")]
    pub spec_template: Option<String>,
    /// Print text and sizes as JSON
    #[arg(long)]
    pub json: bool,
}

/// `work`.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    /// Something to do with it
    #[command(subcommand)]
    pub verb: Option<WorkVerb>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// What is done with work.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkVerb {
    /// Bring finished work that could not land into your branch: merge, gates, fast-forward
    Land(LandArgs),
}

/// `work land`.
#[derive(Args, Clone, Debug)]
pub struct LandArgs {
    /// The tag or roadmap whose work is meant [default: all that waits here]
    #[arg(value_name = "TAG")]
    pub tag: Option<String>,
    /// Print events as JSON lines
    #[arg(long)]
    pub json: bool,
}

/// `graph`.
#[derive(Args, Clone, Debug)]
pub struct GraphShowArgs {
    #[command(flatten)]
    pub which: WhichTasks,
    /// How it is drawn
    #[arg(long, value_name = "HOW", default_value = "text")]
    pub format: GraphFormat,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Waves in words.
    #[default]
    Text,
    /// Mermaid, for Markdown.
    Mermaid,
    /// A picture.
    Svg,
}
