//! The command line, one file a group of commands.

pub mod agents;
pub mod engine;
pub mod free_text;
#[cfg(test)]
mod hints;
pub mod install;
pub mod loops;
pub mod mcp;
pub mod query;
pub mod report;
pub mod resume;
pub mod sandbox;
pub mod serve;
pub mod setup;
pub mod start;
#[cfg(test)]
mod table;
pub mod tasks;
pub mod values;
mod verbless;
pub mod worker;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use verbless::with_verb;

/// The flag by which one run takes a project's config as it is.
pub const TRUST_CONFIG: &str = "--trust-config";

/// Keeps a coding agent working until the job is proven done.
#[derive(Parser, Debug)]
#[command(
    name = "descartes",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Start with `descartes demo`: a complete loop in a few seconds, no API key needed."
)]
pub struct Cli {
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an agent on one prompt until the work is proven done
    Loop(Box<LoopArgs>),
    /// Watch, follow and steer all loops in the terminal
    Watch(loops::WatchArgs),
    /// Run the tasks of a Markdown roadmap, or of another tool's task list
    Roadmap(Box<tasks::RoadmapArgs>),
    /// Make attempts at tasks for task loops on other machines
    Worker(worker::WorkerArgs),
    /// Make a roadmap of a plan that cannot be run in place
    Import(tasks::ImportArgs),
    /// Show what an agent would be told about a task
    Spec(Box<tasks::SpecArgs>),
    /// Show where the work of tasks is: branches, worktrees, and what is waiting to land
    Work(tasks::WorkArgs),
    /// Show the waves and dependencies of tasks
    Graph(tasks::GraphShowArgs),
    /// Write a one-page HTML report on a loop, for the morning after
    Report(report::ReportArgs),
    /// Open the desktop window: all loops, one of them in detail, with controls to steer it
    Gui(setup::GuiArgs),
    /// Serve all loops to a browser: pages, an API, events and metrics
    Serve(Box<serve::ServeArgs>),
    /// Serve the loops to agents and editors as MCP tools, over standard input and output
    Mcp(mcp::McpArgs),
    /// Start and check what many machines meet at, and hand out keys for workers
    Engine(engine::EngineArgs),
    /// Query the history of all loops with SQL
    Query(query::QueryArgs),
    /// Watch a complete loop in a few seconds: no API key, no network
    Demo(setup::DemoArgs),
    /// Write a prompt, notes and a config for a project
    Init(setup::InitArgs),
    /// Install commands and tools for loops into Claude Code, Codex, Gemini CLI, OpenCode or Cursor
    Install(install::InstallArgs),
    /// Remove them again
    Uninstall(install::InstallArgs),
    /// Remove what old loops left behind, listing it first
    Clean(loops::CleanArgs),
    /// List the known agents: which are installed, which version, tested or not
    Agents(agents::AgentsArgs),
    /// Check git, agents, disk, configuration and leftovers
    Doctor(setup::DoctorArgs),
    /// Run a command in the sandbox of agents and gates, or explain that sandbox
    Sandbox(Box<sandbox::SandboxVerbArgs>),
    /// Show the configuration
    Config(setup::ConfigArgs),
    /// Trust this project's own config to start programs and grant permissions; show or revoke that
    Trust(setup::TrustArgs),
    /// Print a completion script for a shell
    Completions(setup::CompletionsArgs),
    /// Print the manual page
    Man(setup::ManArgs),
}

/// `loop`.
#[derive(Args, Debug)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "`descartes loop --command …` without a verb is `loop start`."
)]
pub struct LoopArgs {
    #[command(subcommand)]
    pub verb: LoopVerb,
}

/// What to do with a loop.
#[derive(Subcommand, Debug)]
pub enum LoopVerb {
    /// Start a loop
    Start(Box<start::StartArgs>),
    /// Resume a loop that was stopped, cancelled or killed
    Resume(Box<resume::ResumeArgs>),
    /// Show the status of a loop
    Status(loops::StatusArgs),
    /// List loops, newest first
    List(loops::ListArgs),
    /// Show the result of each iteration
    History(loops::HistoryArgs),
    /// Show what the agent printed
    Logs(loops::LogsArgs),
    /// Watch, follow and steer it in the terminal
    Watch(loops::WatchArgs),
    /// End a loop and everything it started
    Cancel(loops::CancelArgs),
    /// Pause a loop before its next iteration
    Pause(loops::PauseArgs),
    /// Continue a paused loop
    Unpause(loops::PauseArgs),
    /// Add a note to the next iteration's prompt, once
    Say(loops::SayArgs),
    /// Change limits, budgets, gates, prompt or model
    Set(Box<loops::SetArgs>),
    /// Show what an iteration changed in the work tree
    Diff(loops::DiffArgs),
    /// Restore the work tree to the end of an iteration
    Rewind(loops::RewindArgs),
    /// Show the workers that make the attempts of a task loop, and what each does
    Workers(loops::LoopWorkersArgs),
}
