//! `roadmap`, `spec`, `work`, `graph`: commands around graphs of tasks.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::start::{AgentArgs, DoneArgs, GraphArgs, LimitArgs, PlaceArgs, SandboxArgs, ShowArgs};
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
    /// Run its tasks in dependency order, continuing an earlier run
    Run(Box<RoadmapRunArgs>),
    /// Show its tasks and what is running now
    Status(RoadmapFileArgs),
    /// Forget the state of earlier runs; the file itself is not changed
    Reset(RoadmapResetArgs),
    /// Report everything in the file that would not work as written
    Check(RoadmapFileArgs),
}

/// How a task list of another tool is read and run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Task lists of other tools")]
pub struct ListArgs {
    /// The format, where two fit, or an issue tracker: roadmap, openspec, kiro, spec-kit, plan, checklist, passes-json, task-master, backlog, tk, ccpm, tickets, bmad; beads, github, gitlab, or a `[source.NAME]` of the config
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// The label of the issues to work on (github, gitlab, beads)
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Tell the tracker, or a list that has a status for it, which task is being worked on
    #[arg(long)]
    pub claim: bool,
    /// Close each issue when its work has landed here, before it is pushed (github, gitlab)
    #[arg(long)]
    pub close_issues: bool,
    /// What one agent is given: one task, or a whole phase, group or parent
    #[arg(long, value_name = "WHAT", default_value = "task")]
    pub by: ByWhat,
    /// Run the user stories of spec-kit side by side, after the foundational phase
    #[arg(long)]
    pub stories: bool,
    /// Run optional tasks, too
    #[arg(long)]
    pub optional: bool,
    /// Pass over tasks that only a person can do, instead of being held by them
    #[arg(long)]
    pub skip_human: bool,
}

/// What one agent is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ByWhat {
    /// One task.
    #[default]
    Task,
    /// A phase, group or parent with all its tasks.
    Section,
}

/// A roadmap's file.
#[derive(Args, Clone, Debug)]
pub struct RoadmapFileArgs {
    /// The roadmap, or the task list of another tool: a file or its folder [with --source: this folder]
    #[arg(value_name = "PATH", required_unless_present = "source")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub list: ListArgs,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `roadmap reset`.
#[derive(Args, Clone, Debug)]
pub struct RoadmapResetArgs {
    /// The roadmap, or the task list of another tool: a file or its folder [with --source: this folder]
    #[arg(value_name = "PATH", required_unless_present = "source")]
    pub file: Option<PathBuf>,
    /// The format or tracker, as for `roadmap run`
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// The label of the issues that were worked on
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `roadmap run`. What the flags it shares with `loop start` do otherwise here is said here.
#[derive(Args, Clone, Debug)]
#[command(
    mut_arg("state_file", |arg| arg.help("The state file [default: .descartes/roadmap-FILE.json there]")),
    mut_arg("max_iterations", |arg| arg.help(
        "Iterations of all tasks together, or `unlimited` [default: unlimited]"
    )),
    mut_arg("completion_promise", |arg| arg.help(
        "The promise of looping tasks that do not set their own, same as --ralph-default-promise"
    ).conflicts_with("ralph_default_promise")),
    mut_arg("stall_after", |arg| arg.help(
        "Attempts at a task without progress before a nudge; twice as many block it; 0: off \
         [default: 0]"
    )),
    // Refused for a roadmap of ours, with the reason.
    mut_arg("no_promise", |arg| arg.hide(true)),
    mut_arg("max_iterations_per_task", |arg| arg.help(
        "Attempts at a task of another tool's list (tasks of a roadmap have `max_iterations` or `retries`)"
    )),
)]
pub struct RoadmapRunArgs {
    /// The roadmap, or the task list of another tool: a file or its folder [with --source: this folder]
    #[arg(value_name = "PATH", required_unless_present = "source")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub list: ListArgs,
    /// The agent by name: claude, codex, gemini, opencode, or a profile
    #[arg(long, value_name = "NAME", conflicts_with = "backend")]
    pub cli: Option<String>,
    /// The agent: any command, quoted as in a shell
    #[arg(short, long, value_name = "CMD")]
    pub command: Option<String>,
    /// Attempts for looping tasks that do not set their own; other tasks have one, plus their `retries`
    #[arg(long, value_name = "N", default_value = "30", value_parser = values::number)]
    pub ralph_default_iterations: u32,
    /// The promise of looping tasks that do not set their own [default: COMPLETE]
    #[arg(long, value_name = "TEXT")]
    pub ralph_default_promise: Option<String>,
    /// When all tasks are done, ask an agent for one more, at most N times
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::number)]
    pub growth: u32,
    /// Continue an earlier run that ended with blocked tasks, and try those again
    #[arg(long, conflicts_with = "force")]
    pub retry_blocked: bool,
    /// Refuse a roadmap in which a task names its own agent (`agent`, `cli`)
    #[arg(long)]
    pub no_task_agents: bool,
    /// Create a branch and switch to it first; the work lands there
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
    pub sandbox: SandboxArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub show: ShowArgs,
}

/// `import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// The plan: a file, or the folder of a tool
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The roadmap to write, or - for standard output [default: ROADMAP-NAME.md here]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Which tasks are meant.
#[derive(Args, Clone, Debug, Default)]
pub struct WhichTasks {
    /// A SCUD tag [default: the active one]
    #[arg(long, value_name = "TAG", conflicts_with = "roadmap")]
    pub scud_tag: Option<String>,
    /// A roadmap, or the task list of another tool
    #[arg(long, value_name = "PATH")]
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
    /// A file to include with every task; repeatable
    #[arg(long, value_name = "FILE")]
    pub spec_file: Vec<PathBuf>,
    /// Token budget for the whole spec [default: 5000]
    #[arg(long, value_name = "N", value_parser = values::number)]
    pub max_spec_tokens: Option<u32>,
    /// An implementation plan; the task's section of it goes into the spec
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Notes from an earlier run
    #[arg(long, value_name = "FILE")]
    pub handoff: Option<PathBuf>,
    /// Layout of a task's spec: a text or file with {task}, {plan}, {custom}, {verification}
    #[arg(long, value_name = "TEXT|FILE")]
    pub spec_template: Option<String>,
    /// Print the text and the sizes as JSON
    #[arg(long)]
    pub json: bool,
}

/// `work`.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    /// What to do with the work
    #[command(subcommand)]
    pub verb: Option<WorkVerb>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// What is done with work.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkVerb {
    /// Land finished work that could not land earlier in your branch: merge, gates, fast-forward
    Land(LandArgs),
}

/// `work land`.
#[derive(Args, Clone, Debug)]
pub struct LandArgs {
    /// The tag or roadmap whose work to land [default: all that is waiting here]
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
    /// The output format
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
