//! Commands around graphs of tasks.

pub mod graph;
pub mod land;
pub mod roadmap;
mod roadmap_status;
pub mod spec;
pub mod work;

use std::path::{Path, PathBuf};

use descartes_core::tasks::active_tag;
use descartes_kernel::tasks::{RoadmapDefaults, TaskFile, TasksConfig};
use descartes_store::layout::PROJECT_FOLDER;

use crate::args::tasks::WhichTasks;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::settings::tasks::scud_source;

/// Where the run of a roadmap keeps its state, unless told otherwise.
fn state_path(file: &Path, dir: &Path) -> PathBuf {
    let stem = file
        .file_stem()
        .map_or_else(|| "tasks".into(), |stem| stem.to_string_lossy());
    dir.join(PROJECT_FOLDER)
        .join(format!("roadmap-{stem}.json"))
}

/// The tasks that are meant: a roadmap, a tag, or the tag that SCUD has set as the active one.
fn tasks_of(which: &WhichTasks, ctx: &CommandContext) -> Result<TasksConfig, CliError> {
    let source = match (&which.roadmap, &which.scud_tag) {
        (Some(file), _) => TaskFile::Roadmap {
            file: ctx.absolute(file),
            defaults: RoadmapDefaults::default(),
        },
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
