//! The `descartes-gui` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let code = descartes_gui::launch::run(&words);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
