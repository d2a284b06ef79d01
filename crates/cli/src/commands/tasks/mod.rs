//! Commands around graphs of tasks.

pub mod graph;
pub mod import;
pub mod land;
pub mod roadmap;
mod roadmap_check;
mod roadmap_status;
pub mod spec;
mod task_list;
pub mod work;

use descartes_core::tasks::active_tag;
use descartes_kernel::tasks::TasksConfig;

use crate::args::tasks::{ListArgs, WhichTasks};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::settings::tasks::scud_source;

/// The tasks that are meant: a roadmap, a tag, or the tag that SCUD has set as the active one.
fn tasks_of(which: &WhichTasks, ctx: &CommandContext) -> Result<TasksConfig, CliError> {
    let source = match (&which.roadmap, &which.scud_tag) {
        (Some(path), _) => task_list::task_file(Some(path), &ListArgs::default(), ctx)?,
        (None, Some(tag)) => scud_source(&ctx.here, tag)?,
        (None, None) => match active_tag(&ctx.here) {
            Some(tag) => scud_source(&ctx.here, &tag)?,
            None => {
                return Err(CliError::usage(
                    "which tasks?",
                    "use --scud-tag TAG or --roadmap FILE",
                ));
            }
        },
    };
    Ok(TasksConfig::new(source))
}
