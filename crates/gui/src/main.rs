//! The `descartes-gui` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let code = descartes_gui::launch::run(&words);
    descartes_store::debug_log::flush(std::time::Duration::from_secs(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
