//! `descartes install` and `descartes uninstall`: commands and tools for Claude Code as a plugin, and the
//! MCP server in the settings of other programs.

mod claude;
mod clients;
mod entry;
mod folder;
mod insertion;
mod jsonc;
mod record;
mod settings_text;
mod toml_entry;

use crate::args::install::{InstallArgs, Tool};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::within;

/// Runs `install`.
pub fn install(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    match args.tool {
        Tool::Claude => {
            asks_nothing(args, "install")?;
            claude::install(args, ctx)
        }
        _ => {
            // What an agent enters there would run beside every later one.
            within::refuse_from_within("descartes install")?;
            entry::install(args, ctx)
        }
    }
}

/// Runs `uninstall`.
pub fn uninstall(args: &InstallArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    match args.tool {
        Tool::Claude => {
            asks_nothing(args, "uninstall")?;
            claude::uninstall(args, ctx)
        }
        _ => {
            within::refuse_from_within("descartes uninstall")?;
            entry::uninstall(args, ctx)
        }
    }
}

fn asks_nothing(args: &InstallArgs, verb: &str) -> Result<(), CliError> {
    match args.yes {
        false => Ok(()),
        true => Err(CliError::usage(
            "--yes does not apply to claude: a plugin is files of its own, and nothing is asked",
            format!("descartes {verb} claude{}", args.place().typed()),
        )),
    }
}
