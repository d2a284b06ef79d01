//! The list that a path means: a roadmap of ours, or another tool's, told by its place and content.

use std::path::{Path, PathBuf};

use descartes_core::tasks::lists::{FindError, FoundList, find};
use descartes_kernel::tasks::{RoadmapDefaults, TaskFile};
use descartes_plans::lists::{By, ListOptions};
use descartes_store::layout::PROJECT_FOLDER;

use crate::args::tasks::{ByWhat, ListArgs};
use crate::error::CliError;
use crate::settings::prompt::read_text;

impl ListArgs {
    pub fn options(&self) -> ListOptions {
        ListOptions {
            by: match self.by {
                ByWhat::Task => By::Task,
                ByWhat::Section => By::Section,
            },
            stories: self.stories,
            optional: self.optional,
            skip_human: self.skip_human,
        }
    }

    /// Flags that mean nothing to a roadmap of ours.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--by", self.by != ByWhat::Task),
            ("--stories", self.stories),
            ("--optional", self.optional),
            ("--skip-human", self.skip_human),
        ];
        let given = all.into_iter().filter(|(_, given)| *given);
        given.map(|(flag, _)| flag).collect()
    }
}

/// The tasks at a path, which is absolute.
pub fn task_file(path: &Path, args: &ListArgs) -> Result<TaskFile, CliError> {
    if !path.is_dir() {
        read_text("the roadmap", path)?;
    }
    match find(path, args.source.as_deref()).map_err(refused)? {
        FoundList::Roadmap(file) => Ok(TaskFile::Roadmap {
            file,
            defaults: RoadmapDefaults::default(),
        }),
        FoundList::List { path, format, tag } => Ok(TaskFile::List {
            path,
            format,
            options: args.options(),
            tag,
        }),
    }
}

fn refused(error: FindError) -> CliError {
    CliError::refused(error.message, error.hint)
}

/// Where a run of these tasks keeps its state, unless told otherwise.
pub fn state_path(tasks: &TaskFile, dir: &Path) -> PathBuf {
    let name = match tasks {
        TaskFile::List { .. } => tasks.tag(),
        _ => {
            let stem = tasks.path().file_stem();
            stem.map_or_else(
                || "tasks".into(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        }
    };
    dir.join(PROJECT_FOLDER)
        .join(format!("roadmap-{name}.json"))
}
