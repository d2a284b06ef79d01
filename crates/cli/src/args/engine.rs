//! `engine`: what many machines meet at.

use clap::{Args, Subcommand};

/// `engine`.
#[derive(Args, Clone, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct EngineArgs {
    #[command(subcommand)]
    pub verb: EngineVerb,
}

/// What is done with an engine.
#[derive(Subcommand, Clone, Debug)]
pub enum EngineVerb {
    /// Start an engine on this machine, with keys and a config of its own
    Start(EngineStartArgs),
    /// Try whether an engine does what leases need, and how fast its disk is
    Check(EngineCheckArgs),
    /// Show whether the engine of this machine runs, who has a key, and which workers are there
    Status(EngineStatusArgs),
    /// Stop the engine of this machine; its keys and data stay
    Stop,
    /// Make a key for a worker and print the line to type there
    JoinToken(EngineKeyArgs),
    /// Take a worker's key away, and cut its connection
    Revoke(EngineKeyArgs),
}

/// `engine start`.
#[derive(Args, Clone, Debug, Default)]
pub struct EngineStartArgs {
    /// Where it listens; beyond this machine always with TLS [default: as before, else 127.0.0.1:4222]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The name or address by which workers reach it [default: where it listens, else this machine's name]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// All servers of its cluster, this one too, where they reach each other: three or five, with port 6222 where
    /// none is named [default: as before, else none]
    #[arg(long, value_name = "HOST,HOST,HOST", value_delimiter = ',')]
    pub cluster: Vec<String>,
}

/// `engine check`.
#[derive(Args, Clone, Debug, Default)]
pub struct EngineCheckArgs {
    /// Its address [default: that of the engine of this machine]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `engine status`.
#[derive(Args, Clone, Debug, Default)]
pub struct EngineStatusArgs {
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `engine join-token` and `engine revoke`.
#[derive(Args, Clone, Debug, Default)]
pub struct EngineKeyArgs {
    /// The worker's name
    #[arg(value_name = "NAME")]
    pub name: String,
}
