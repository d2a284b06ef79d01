//! `descartes loop …`: one file a verb. A new verb is a variant of `args::LoopVerb`, its
//! arguments beside it, and a file here.

mod cancel;
pub mod diff;
mod dry_run;
mod history;
mod list;
mod logs;
mod resume;
mod rewind;
mod start;
mod status;
mod steer;
pub mod task_plan;
pub mod which;

use super::watch;
use crate::args::LoopVerb;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::surroundings::Surroundings;

/// Runs a verb and gives its exit code.
pub fn run(verb: LoopVerb, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    match verb {
        LoopVerb::Start(args) => start::run(&args, around, printer),
        LoopVerb::Resume(args) => resume::run(&args, around, printer),
        LoopVerb::Status(args) => status::run(&args, around, printer),
        LoopVerb::List(args) => list::run(args, around, printer),
        LoopVerb::History(args) => history::run(&args, around, printer),
        LoopVerb::Logs(args) => logs::run(&args, around, printer),
        LoopVerb::Watch(args) => watch::run(&args, watch::First::Here, around, printer),
        LoopVerb::Cancel(args) => cancel::run(&args, around, printer),
        LoopVerb::Pause(args) => steer::pause(&args, around, printer),
        LoopVerb::Unpause(args) => steer::unpause(&args, around, printer),
        LoopVerb::Say(args) => steer::say(&args, around, printer),
        LoopVerb::Set(args) => steer::set(&args, around, printer),
        LoopVerb::Diff(args) => diff::run(&args, around, printer),
        LoopVerb::Rewind(args) => rewind::run(&args, around, printer),
    }
}
