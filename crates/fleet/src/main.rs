//! `descartes-fleet`: the one program of descartes that speaks the engine's protocol (NATS JetStream).
//!
//! `bridge` carries the calls of a coordinator or a worker between a pipe and the engine. It decides
//! nothing: who holds a task and what becomes of it is decided in `descartes`.

mod bridge;
mod engine;
mod nats;
mod sim;

use std::io::Write;
use std::process::ExitCode;

use descartes_bridge::program::VERSION_ANSWER;

const HELP: &str = "\
descartes-fleet COMMAND: what descartes starts to speak to the engine of a fleet

  version   prints the version
  bridge    JSON lines on its input and output, the engine on the other side
  sim       simulated workers or a simulated coordinator, for measures
  engine    one command for an engine as JSON on its input, the report on its output
";

/// As sysexits has it, and as descartes does.
const USAGE_ERROR: u8 = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["version" | "--version"] => shown(&format!("{VERSION_ANSWER}\n")),
        ["bridge"] => ended(bridge::run()),
        ["engine"] => match engine::run() {
            Ok(report) => shown(&report),
            Err(error) => ended(Err(error)),
        },
        ["sim"] => match sim::run() {
            Ok(report) => shown(&report),
            Err(error) => ended(Err(error)),
        },
        ["help" | "--help" | "-h"] => shown(HELP),
        _ => {
            tell(&format!("unknown arguments\n\n{HELP}"));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn shown(text: &str) -> ExitCode {
    let written = std::io::stdout().write_all(text.as_bytes());
    ended(written.map_err(|error| error.to_string()))
}

fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// To the terminal; where that is gone there is nobody to tell.
fn tell(error: &str) {
    drop(writeln!(std::io::stderr(), "error: {error}"));
}
