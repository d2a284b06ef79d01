//! `descartes mcp`: the verbs as tools for agents and editors.

use std::io;
use std::path::Path;
use std::sync::Arc;

use descartes_kernel::config::Permissions;
use descartes_kernel::outcome::exit;
use descartes_mcp::{AgentFlags, McpError, McpOptions, Nesting, serve};
use descartes_store::layout::PROJECT_FOLDER;
use jiff::Timestamp;

use super::loops::which;
use crate::args::mcp::McpArgs;
use crate::env::Stream;
use crate::error::CliError;
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;
use crate::within;

pub fn run(args: &McpArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    if Stream::of(&io::stdin()) == Stream::Terminal {
        return Err(CliError::usage(
            "`descartes mcp` talks to a program over standard input, and that is a terminal",
            "to enter it into a program: descartes install codex, gemini, opencode, cursor or claude",
        ));
    }
    let folder = ctx.dir(args.working_dir.as_deref());
    let folder = std::fs::canonicalize(&folder).map_err(|error| {
        CliError::usage(
            format!("cannot use {}: {error}", folder.display()),
            "name a folder: descartes mcp --working-dir DIR",
        )
    })?;
    let allow_nested = args.allow_nested;
    let options = McpOptions {
        loops: which::loops(ctx, &folder)?,
        agent: agent(args),
        max_loops: args.max_loops,
        may_start: {
            let folder = folder.clone();
            Arc::new(move || nesting(allow_nested, &folder))
        },
        program: this_program(),
        folder,
    };
    serve(options)?;
    Ok(0)
}

fn agent(args: &McpArgs) -> AgentFlags {
    AgentFlags {
        command: args.command.clone(),
        backend: args.backend.clone(),
        model: args.model.clone(),
        permissions: args.permissions.map(|what| permissions(what).to_owned()),
        sandbox: args.sandbox.map(|level| level.as_str().to_owned()),
    }
}

fn permissions(what: Permissions) -> &'static str {
    match what {
        Permissions::Agent => "agent",
        Permissions::Edit => "edit",
        Permissions::All => "all",
    }
}

/// Whether the server runs within a loop, and may start one there. Asked at every start: the program
/// above it may have become part of a loop since.
fn nesting(allowed: bool, folder: &Path) -> Result<Nesting, (String, String)> {
    match within::enclosing_loop(allowed) {
        Ok(within::Here::Outside) => Ok(Nesting::Outside),
        Ok(within::Here::Inside) => {
            let name = format!("nested-{}.json", Timestamp::now().as_nanosecond());
            let state_file = folder.join(PROJECT_FOLDER).join(name);
            Ok(Nesting::Inside { state_file })
        }
        Err(message) => Err((
            message,
            "do the work yourself; a person can allow it: descartes mcp --allow-nested".to_owned(),
        )),
    }
}

impl From<McpError> for CliError {
    fn from(error: McpError) -> Self {
        let hint = match &error {
            McpError::Client(_) => Some(
                "an MCP client starts it; to enter it into one: descartes install codex".to_owned(),
            ),
            McpError::Runtime(_) | McpError::Broken(_) => None,
        };
        Self::of_server(error.to_string(), hint, exit::ERROR)
    }
}
