//! `descartes loop …`: one file a verb. A new verb is a variant of `args::LoopVerb`, its
//! arguments beside it, and a file here.

mod cancel;
pub mod diff;
mod dry_run;
mod history;
mod list;
mod logs;
mod plan_rows;
mod remote_agents;
pub mod resume;
mod rewind;
mod start;
mod status;
mod steer;
pub mod task_plan;
pub mod which;
mod workers;

use super::watch;
use descartes_kernel::control::Command;

use crate::args::LoopVerb;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

/// Runs a verb and gives its exit code.
pub fn run(verb: LoopVerb, ctx: &CommandContext) -> Result<i32, CliError> {
    match verb {
        LoopVerb::Start(args) => start::run(&args, ctx),
        LoopVerb::Resume(args) => resume::run(&args, ctx),
        LoopVerb::Status(args) => status::run(&args, ctx),
        LoopVerb::List(args) => list::run(args, ctx),
        LoopVerb::History(args) => history::run(&args, ctx),
        LoopVerb::Logs(args) => logs::run(&args, ctx),
        LoopVerb::Watch(args) => watch::run(&args, watch::First::Here, ctx),
        LoopVerb::Cancel(args) => cancel::run(&args, ctx),
        LoopVerb::Pause(args) => steer::pause(&args, &Command::Pause, ctx),
        LoopVerb::Unpause(args) => steer::pause(&args, &Command::Unpause, ctx),
        LoopVerb::Say(args) => steer::say(&args, ctx),
        LoopVerb::Set(args) => steer::set(&args, ctx),
        LoopVerb::Diff(args) => diff::run(&args, ctx),
        LoopVerb::Rewind(args) => rewind::run(&args, ctx),
        LoopVerb::Workers(args) => workers::run(&args, ctx),
    }
}
