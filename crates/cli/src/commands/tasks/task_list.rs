//! The list that a path means: a roadmap of ours, or another tool's, told by its place and content; or the
//! issues of a tracker.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use descartes_core::tasks::lists::{
    FindError, FoundList, FoundTracker, find, is_installed, source_names,
};
use descartes_kernel::start_over::is_of_other_list;
use descartes_kernel::tasks::{RoadmapDefaults, TaskFile, TrackerTasks};
use descartes_plans::lists::trackers::{Outward, TrackerCommands, beads_program, custom_commands};
use descartes_plans::lists::{By, ListFormat, ListOptions};
use descartes_store::layout::PROJECT_FOLDER;
use descartes_store::safe_open::read_user_text;
use descartes_store::state_file;
use sha2::{Digest, Sha256};

use crate::args::tasks::{ByWhat, ListArgs};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
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
            claim: self.claim,
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

    /// The name of a source that is in the config.
    pub fn custom(&self) -> Option<&str> {
        let name = self.source.as_deref()?;
        (!source_names().contains(&name)).then_some(name)
    }

    fn outward(&self) -> Outward {
        Outward {
            claim: self.claim,
            close: self.close_issues,
        }
    }

    /// Flags that mean nothing to what was found.
    fn refuse_flags(&self, format: Option<ListFormat>) -> Result<(), CliError> {
        let is_tracker = format.is_some_and(ListFormat::is_tracker);
        let has_label = is_tracker && format != Some(ListFormat::Command);
        let is_forge = matches!(format, Some(ListFormat::GitHub | ListFormat::GitLab));
        if self.claim && !format.is_some_and(ListFormat::can_claim) {
            return Err(CliError::usage(
                "--claim is for issue trackers and lists that say what is worked on, and this is another list",
                "omit --claim",
            ));
        }
        let wrong = [
            ("--label", self.label.is_some() && !has_label),
            ("--close-issues", self.close_issues && !is_forge),
        ];
        match wrong.into_iter().find(|(_, wrong)| *wrong) {
            None => Ok(()),
            Some((flag, _)) => Err(CliError::usage(
                format!("{flag} is for issue trackers that have it, and this is another list"),
                format!("omit {flag}, or name the tracker: --source github"),
            )),
        }
    }
}

/// What is typed to mean a list: its path, or the tracker with its label.
pub fn typed(file: Option<&Path>, args: &ListArgs) -> String {
    let quote = |text: &str| shell_words::quote(text).into_owned();
    let mut words: Vec<String> = Vec::new();
    words.extend(file.map(|file| quote(&file.display().to_string())));
    for (flag, value) in [("--source", &args.source), ("--label", &args.label)] {
        words.extend(
            value
                .as_ref()
                .map(|value| format!("{flag} {}", quote(value))),
        );
    }
    words.join(" ")
}

/// The tasks that a command is about. What the config says of trackers must be trusted by then.
pub fn task_file(
    file: Option<&Path>,
    args: &ListArgs,
    ctx: &CommandContext,
) -> Result<TaskFile, CliError> {
    let path = file.map_or_else(|| ctx.here.clone(), |file| ctx.absolute(file));
    if let Some(name) = args.custom()
        && let Some(tracker) = custom_tracker(name, &path, args, ctx)?
    {
        args.refuse_flags(Some(ListFormat::Command))?;
        return Ok(tracker);
    }
    if !path.is_dir() {
        read_text("the roadmap", &path)?;
    }
    let found = find(&path, args.source.as_deref()).map_err(refused)?;
    args.refuse_flags(match &found {
        FoundList::Roadmap(_) => None,
        FoundList::List { format, .. } => Some(*format),
        FoundList::Tracker(tracker) => Some(tracker.format),
    })?;
    match found {
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
        FoundList::Tracker(found) => tracker(found, args),
    }
}

fn refused(error: FindError) -> CliError {
    CliError::refused(error.message, error.hint)
}

/// A tracker that is known here.
fn tracker(found: FoundTracker, args: &ListArgs) -> Result<TaskFile, CliError> {
    let (name, label) = (found.format.as_str(), args.label.as_deref());
    let is_forge = matches!(found.format, ListFormat::GitHub | ListFormat::GitLab);
    if is_forge && label.is_none_or(|label| label.trim().is_empty()) {
        return Err(CliError::usage(
            format!(
                "which issues of {name}? An agent works on those that a person has labelled for it"
            ),
            format!("name the label: --source {name} --label ready-for-agent"),
        ));
    }
    let program = match found.format {
        ListFormat::Beads => {
            let metadata = found.dir.join(".beads/metadata.json");
            let metadata = read_user_text(&metadata).unwrap_or_default();
            let known = beads_program(&metadata);
            known.into_iter().find(|program| is_installed(program))
        }
        _ => Some(""),
    };
    let commands =
        program.map(|program| TrackerCommands::of(found.format, program, label, args.outward()));
    Ok(TaskFile::Tracker(TrackerTasks {
        path: found.dir.join(name),
        name: name.to_owned(),
        format: found.format,
        options: args.options(),
        label: label.map(str::to_owned),
        commands: commands.unwrap_or_default(),
    }))
}

/// A tracker of the config; none where the config has none of that name.
fn custom_tracker(
    name: &str,
    path: &Path,
    args: &ListArgs,
    ctx: &CommandContext,
) -> Result<Option<TaskFile>, CliError> {
    let dir = match path.is_dir() {
        true => path,
        false => path.parent().unwrap_or(path),
    };
    let settings = ctx.layers(dir)?.settings;
    let Some(entry) = settings.source.get(name) else {
        return Ok(None);
    };
    let wrong = |why: String| {
        CliError::usage(
            format!("{}: `[source.{name}]`: {why}", entry.source),
            "see docs/task-lists.md, or: descartes config show",
        )
    };
    let table = entry.value.as_table();
    let table = table.ok_or_else(|| wrong("expected a table".to_owned()))?;
    Ok(Some(TaskFile::Tracker(TrackerTasks {
        path: dir.join(name),
        name: name.to_owned(),
        format: ListFormat::Command,
        options: args.options(),
        label: None,
        commands: custom_commands(table).map_err(wrong)?,
    })))
}

/// Where a run of these tasks keeps its state, unless told otherwise: by the list's name, and where a list of the
/// same name in another folder has that, by its place, too.
pub fn state_path(tasks: &TaskFile, dir: &Path) -> PathBuf {
    let name = match tasks {
        TaskFile::List { .. } | TaskFile::Tracker(_) => tasks.tag(),
        _ => {
            let stem = tasks.path().file_stem();
            stem.map_or_else(
                || "tasks".into(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        }
    };
    let list = tasks.path();
    let file = |name: &str| {
        let name = format!("roadmap-{name}.json");
        dir.join(PROJECT_FOLDER).join(name)
    };
    let is_list = |path: &Path| {
        let same = path.canonicalize().ok().zip(list.canonicalize().ok());
        same.is_some_and(|(one, other)| one == other)
    };
    let is_others = |path: &Path| {
        let config = state_file::load(path).ok().map(|known| known.state.config);
        config.is_some_and(|old| {
            let old_list = old.tasks.as_ref().map(|tasks| tasks.source.path());
            !old_list.is_some_and(|old| is_list(old)) && is_of_other_list(&old, list, dir)
        })
    };
    let place = list.strip_prefix(dir).unwrap_or(list);
    let hash = Sha256::digest(place.as_os_str().as_bytes());
    let short: String = hash[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let (plain, own) = (file(&name), file(&format!("{name}-{short}")));
    match own.exists() || is_others(&plain) {
        true => own,
        false => plain,
    }
}
