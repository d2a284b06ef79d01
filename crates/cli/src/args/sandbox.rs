//! `sandbox`: the sandbox of agents and gates, outside of a loop.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::start::SandboxArgs;

/// `sandbox`.
#[derive(Args, Clone, Debug, Default)]
#[command(arg_required_else_help = true, subcommand_negates_reqs = true)]
pub struct SandboxVerbArgs {
    #[command(subcommand)]
    pub verb: Option<SandboxVerb>,
    #[command(flatten)]
    pub which: WhichSandbox,
    /// The command to run in it
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What is done with it.
#[derive(Subcommand, Clone, Debug)]
pub enum SandboxVerb {
    /// Print what would be writable, readable and hidden, and why
    Explain(ExplainArgs),
}

/// `sandbox explain`.
#[derive(Args, Clone, Debug, Default)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub which: WhichSandbox,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which sandbox is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct WhichSandbox {
    /// The agent that it is for [default: guessed from the command, else the configured one]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// That of a gate: without the agent's logins
    #[arg(long)]
    pub gate: bool,
    /// A gate whose scripts are to be protected; repeatable
    #[arg(long, value_name = "CMD")]
    pub verify: Vec<String>,
    /// Where the agent works [default: here]
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
