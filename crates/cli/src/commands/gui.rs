//! `descartes gui`: a program of its own, so that the command line stays lean.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::agents::installed::{self, VersionAnswer};
use crate::args::setup::GuiArgs;
use crate::error::{CliError, at};
use crate::session::program::this_program;
use crate::settings::command_context::CommandContext;

const WINDOW: &str = "descartes-gui";

/// What it answers when it is asked for its version. The name alone says little: registries have
/// programs of this name that are not ours.
const ANSWER: &str = concat!(
    "descartes-gui ",
    env!("CARGO_PKG_VERSION"),
    " (window of descartes loops)"
);

/// Becomes the window; comes back only where it cannot.
pub fn run(args: &GuiArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let program = window(ctx)?;
    let mut command = Command::new(&program);
    command.args(args.light.then_some("--light"));
    command.args(args.dark.then_some("--dark"));
    command.args(&args.name);
    Err(at("start", &program)(command.exec()))
}

/// Beside this program, else in the path; only one that answers as ours does is started.
fn window(ctx: &CommandContext) -> Result<PathBuf, CliError> {
    let beside = this_program().with_file_name(WINDOW);
    let beside = Some(beside).filter(|path| path.is_file());
    let in_path = installed::program(WINDOW, ctx);
    let mut others = Vec::new();
    for program in beside.into_iter().chain(in_path) {
        let answer = installed::printed(&program, &["--version".to_owned()]);
        let line = match &answer {
            VersionAnswer::Text(text) => text.lines().next(),
            VersionAnswer::Nothing | VersionAnswer::Late => None,
        };
        match line {
            Some(ANSWER) => return Ok(program),
            Some(line) => others.push(format!("{} says `{line}`", program.display())),
            None => others.push(format!("{} does not report its version", program.display())),
        }
    }
    let message = match others.as_slice() {
        [] => format!("the desktop window is not installed: no `{WINDOW}` here or in PATH"),
        others => format!(
            "no `{WINDOW}` here or in PATH belongs to this version of descartes: {}",
            others.join("; ")
        ),
    };
    Err(CliError::refused(
        message,
        "install it in a checkout of descartes: cargo install --path crates/gui",
    )
    .hinted("the same in a terminal: descartes watch"))
}
