//! `descartes gui`: a program of its own, so that the command line stays lean.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::agents;
use crate::args::setup::GuiArgs;
use crate::error::{CliError, at};
use crate::session::order::this_program;
use crate::settings::surroundings::Surroundings;

const WINDOW: &str = "descartes-gui";

/// Becomes the window; comes back only where it cannot.
pub fn run(args: &GuiArgs, around: &Surroundings) -> Result<i32, CliError> {
    let Some(program) = window(around) else {
        return Err(CliError::Refused {
            message: format!("the desktop window is not installed: no `{WINDOW}` here or in PATH"),
            hints: vec![
                format!("install it: cargo install {WINDOW}"),
                "or, in a checkout of descartes: cargo install --path crates/gui".to_owned(),
            ],
        });
    };
    let mut command = Command::new(&program);
    command.args(args.light.then_some("--light"));
    command.args(args.dark.then_some("--dark"));
    command.args(&args.name);
    Err(at("start", &program)(command.exec()))
}

/// Beside this program, else in the path.
fn window(around: &Surroundings) -> Option<PathBuf> {
    let beside = this_program().with_file_name(WINDOW);
    match beside.is_file() {
        true => Some(beside),
        false => agents::installed::program(WINDOW, around),
    }
}
