//! `descartes loop …`: one file a verb. A new verb is a variant of `args::LoopVerb`, its
//! arguments beside it, and a file here.

mod dry_run;
mod resume;
mod start;

use crate::args::LoopVerb;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::surroundings::Surroundings;

/// Runs a verb and gives its exit code.
pub fn run(verb: LoopVerb, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    match verb {
        LoopVerb::Start(args) => start::run(&args, around, printer),
        LoopVerb::Resume(args) => resume::run(&args, around, printer),
    }
}
