//! `descartes completions SHELL`.

use clap::CommandFactory;

use crate::args::{Cli, setup::CompletionsArgs};
use crate::printer::Printer;

/// Prints the script.
pub fn run(args: CompletionsArgs, printer: &Printer) -> i32 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "descartes", &mut script);
    drop(printer.exact(&script));
    0
}
