//! The program `descartes-fleet`: found, and asked.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use descartes_bridge::engine_command::{EngineCommand, EngineReport};
use descartes_bridge::program::{FleetProgram, PROGRAM_VARIABLE};

use crate::error::{CliError, at};
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;

/// One command, one report.
pub fn ask(command: &EngineCommand, ctx: &CommandContext) -> Result<EngineReport, CliError> {
    let program = find(ctx)?;
    let path = program.path();
    let mut child = Command::new(path)
        .arg("engine")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(at("start", path))?;
    let text = serde_json::to_vec(command)
        .map_err(|error| CliError::system("write a command", error.into()))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&text).map_err(at("write to", path))?;
    }
    let output = child.wait_with_output().map_err(at("read from", path))?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        CliError::refused(
            format!("{} did not answer as it should: {error}", path.display()),
            "install descartes and descartes-fleet of one version",
        )
    })
}

/// Beside this program, or where it is named.
fn find(ctx: &CommandContext) -> Result<FleetProgram, CliError> {
    let named = ctx.environment.raw(PROGRAM_VARIABLE).map(Path::new);
    FleetProgram::find(named, &this_program()).map_err(|error| {
        let text = error.to_string();
        let again = "install descartes and descartes-fleet of one version";
        let (message, hint) = text.split_once("; ").unwrap_or((&text, again));
        CliError::refused(message, hint)
    })
}
