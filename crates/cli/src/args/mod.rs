//! The command line, one file a group of commands.

pub mod resume;
pub mod setup;
pub mod start;
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
    /// See a whole loop in a few seconds: no key, no network
    Demo(setup::DemoArgs),
    /// Write a prompt, notes and a config for a project
    Init(setup::InitArgs),
    /// Check git, agents, disk, configuration and leftovers
    Doctor(setup::DoctorArgs),
    /// Look at the configuration
    Config(setup::ConfigArgs),
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
}
