//! The `descartes` binary: keeps a coding agent working until the job is proven done.

mod app;
mod args;
mod commands;
mod env;
mod error;
mod notify;
mod printer;
mod session;
mod settings;
mod style;
mod trust;
mod view;
mod watch;
mod within;

use std::process::ExitCode;
use std::time::Duration;

/// A standard error that takes nothing more is not waited for any longer.
const LAST_LOG_LINES: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    descartes_proc::hear_of_children();
    descartes_proc::fit_into_address_space();
    let code = app::run(std::env::args_os().collect());
    descartes_store::debug_log::flush(LAST_LOG_LINES);
    // Codes are 0 to 255; anything else would be an error of ours.
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
