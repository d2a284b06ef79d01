//! `mcp`.

use std::path::PathBuf;

use clap::Args;
use descartes_kernel::config::Permissions;
use descartes_kernel::sandbox::SandboxLevel;

use super::values;

/// What `mcp` was given.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "An MCP client starts it: enter it with `descartes install codex|gemini|opencode|cursor|claude`."
)]
pub struct McpArgs {
    /// Where loops are started [default: here]
    #[arg(short, long, value_name = "DIR")]
    pub working_dir: Option<PathBuf>,
    /// Start a loop only while fewer than N run
    #[arg(long, value_name = "N", default_value = "4", value_parser = values::number)]
    pub max_loops: u32,
    /// Also start loops from within a loop: those end with that loop's iteration
    #[arg(long)]
    pub allow_nested: bool,
    /// The agent of the loops that it starts: any command [default: the config's]
    #[arg(short, long, value_name = "CMD")]
    pub command: Option<String>,
    /// The agent by name: claude, codex, gemini, opencode, or a profile [default: the config's]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Its model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What that agent may do without asking [default: the config's]
    #[arg(long, value_name = "WHAT", value_parser = values::one_of::<Permissions>())]
    pub permissions: Option<Permissions>,
    /// Confine the agents and gates of these loops [default: the config's]
    #[arg(long, value_name = "LEVEL", value_parser = values::one_of::<SandboxLevel>())]
    pub sandbox: Option<SandboxLevel>,
}
