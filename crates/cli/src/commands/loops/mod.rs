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
use crate::settings::command_context::CommandContext;

/// Runs a verb and gives its exit code.
pub fn run(verb: LoopVerb, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    match verb {
        LoopVerb::Start(args) => start::run(&args, ctx, printer),
        LoopVerb::Resume(args) => resume::run(&args, ctx, printer),
        LoopVerb::Status(args) => status::run(&args, ctx, printer),
        LoopVerb::List(args) => list::run(args, ctx, printer),
        LoopVerb::History(args) => history::run(&args, ctx, printer),
        LoopVerb::Logs(args) => logs::run(&args, ctx, printer),
        LoopVerb::Watch(args) => watch::run(&args, watch::First::Here, ctx, printer),
        LoopVerb::Cancel(args) => cancel::run(&args, ctx, printer),
        LoopVerb::Pause(args) => steer::pause(&args, ctx, printer),
        LoopVerb::Unpause(args) => steer::unpause(&args, ctx, printer),
        LoopVerb::Say(args) => steer::say(&args, ctx, printer),
        LoopVerb::Set(args) => steer::set(&args, ctx, printer),
        LoopVerb::Diff(args) => diff::run(&args, ctx, printer),
        LoopVerb::Rewind(args) => rewind::run(&args, ctx, printer),
    }
}
