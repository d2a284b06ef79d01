//! `descartes-fleet engine`: one command as JSON on its input, one report on its output.

mod certificate;
mod check;
mod cluster;
mod config;
mod failure;
mod parties;
mod server;
mod verbs;

use std::io::Read;

use descartes_bridge::engine_command::EngineReport;

/// Reads a command, carries it out and returns the line to print.
pub fn run() -> Result<String, String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    let command = serde_json::from_str(&text).map_err(|error| format!("not a command: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let report = runtime.block_on(verbs::carry_out(command));
    let report = report.unwrap_or_else(|failure| EngineReport::Failed {
        message: failure.message,
        hints: failure.hints,
    });
    let line = serde_json::to_string(&report).map_err(|error| error.to_string())?;
    Ok(format!("{line}\n"))
}
