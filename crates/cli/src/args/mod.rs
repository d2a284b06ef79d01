//! The command line, one file a group of commands.

pub mod agents;
pub mod free_text;
pub mod install;
pub mod loops;
pub mod query;
pub mod report;
pub mod resume;
pub mod setup;
pub mod start;
#[cfg(test)]
mod table;
pub mod tasks;
pub mod values;
mod verbless;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use verbless::with_verb;

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
    after_help = "Begin with `descartes demo`: a whole loop in a few seconds, no key needed."
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
    /// See all loops in the terminal, follow them and steer them
    Watch(loops::WatchArgs),
    /// Run the tasks of a Markdown roadmap
    Roadmap(Box<tasks::RoadmapArgs>),
    /// Show what an agent would be told about a task
    Spec(Box<tasks::SpecArgs>),
    /// Show where every piece of work is: branches, worktrees, what waits to land
    Work(tasks::WorkArgs),
    /// Show waves and dependencies of tasks
    Graph(tasks::GraphShowArgs),
    /// Write one page that tells all about a loop: the morning's report
    Report(report::ReportArgs),
    /// Open the desktop window: all loops, one of them in full, and the ways to steer it
    Gui(setup::GuiArgs),
    /// Ask the history of all loops in SQL
    Query(query::QueryArgs),
    /// See a whole loop in a few seconds: no key, no network
    Demo(setup::DemoArgs),
    /// Write a prompt, notes and a config for a project
    Init(setup::InitArgs),
    /// Bring commands for loops to Claude Code
    Install(install::InstallArgs),
    /// Take those commands away again
    Uninstall(install::InstallArgs),
    /// Remove what old loops left behind, listing it first
    Clean(loops::CleanArgs),
    /// List the agents that are known: which are installed, which version, tested or not
    Agents(agents::AgentsArgs),
    /// Check git, agents, disk, configuration and leftovers
    Doctor(setup::DoctorArgs),
    /// Look at the configuration
    Config(setup::ConfigArgs),
    /// Let this project's own config start programs and widen rights; show it, take it back
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
    /// Go on with a loop that was stopped, cancelled or killed
    Resume(Box<resume::ResumeArgs>),
    /// Show how a loop stands
    Status(loops::StatusArgs),
    /// List loops, newest first
    List(loops::ListArgs),
    /// Show what became of each iteration
    History(loops::HistoryArgs),
    /// Show what the agent printed
    Logs(loops::LogsArgs),
    /// See it in the terminal, follow it and steer it
    Watch(loops::WatchArgs),
    /// End a loop and everything it started
    Cancel(loops::CancelArgs),
    /// Hold a loop before its next iteration
    Pause(loops::PauseArgs),
    /// Let a paused loop go on
    Unpause(loops::PauseArgs),
    /// Put a note into the next iteration's prompt, once
    Say(loops::SayArgs),
    /// Change limits, budgets, gates, prompt or model
    Set(Box<loops::SetArgs>),
    /// Show what an iteration changed in the work tree
    Diff(loops::DiffArgs),
    /// Put the work tree back to the end of an iteration
    Rewind(loops::RewindArgs),
}
