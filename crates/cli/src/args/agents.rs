//! `agents`: which there are, how one is run, whether it works here.

use clap::{Args, Subcommand};
use descartes_kernel::config::Permissions;
use descartes_text::units::Secs;

use super::values;

/// `agents`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentsArgs {
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub verb: Option<AgentsVerb>,
}

/// What to do with an agent.
#[derive(Subcommand, Clone, Debug)]
pub enum AgentsVerb {
    /// Print an agent's profile as TOML, with the config files applied
    Show {
        /// The agent
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Run a tiny task with an agent in a temporary folder and report what worked
    Test(TestArgs),
}

/// `agents test`.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// The agent
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What the agent may do without asking [default: edit]
    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>())]
    pub permissions: Option<Permissions>,
    /// The model, passed with the agent's own flag
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// How long it may take [default: 5m]
    #[arg(long, value_name = "DUR", value_parser = values::duration)]
    pub timeout: Option<Secs>,
    /// An environment variable for the agent only; repeatable
    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
    pub env: Vec<values::Variable>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}
