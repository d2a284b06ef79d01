//! What makes a loop a task loop, from flags and settings.

use std::path::{Component, Path, PathBuf};

use descartes_core::tasks::lists::read_list;
use descartes_core::tasks::{FoundGates, find_task_file, project_gates, scud_gates, tags_of_files};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::fleet::check_remote;
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};
use descartes_plans::lists::TaskList;
use descartes_plans::scud::{self, Form};
use descartes_plans::spec::{LoopSpecConfig, check_template};
use descartes_store::config::{IterationLimit, Setting, Settings};
use descartes_store::trust::Subject;
use descartes_text::finding::nearest;

use super::command_context::{CommandContext, ProjectConfig};
use super::prompt::{folder_of, read_text};
use crate::args::TRUST_CONFIG;
use crate::args::start::{FlagGroup, GitArgs, GraphArgs, StartArgs};
use crate::error::CliError;
use crate::session::engines::WorkersAddress;
use crate::trust::{self, Project, ScudGates};

/// The task file of a SCUD tag.
pub fn scud_source(dir: &Path, tag: &str) -> Result<TaskFile, CliError> {
    find_source(dir, tag).map_err(|error| match tag.trim().contains(char::is_whitespace) {
        // As other plugins' commands take it.
        true => error.hinted(format!(
            "if that is the task itself: descartes loop start --prompt {}",
            shell_words::quote(tag)
        )),
        false => error,
    })
}

fn find_source(dir: &Path, tag: &str) -> Result<TaskFile, CliError> {
    let Some(file) = find_task_file(dir, tag) else {
        let tags = tags_of_files(dir);
        if !tags.is_empty() {
            return Err(no_tag(&dir.display().to_string(), tag, &tags));
        }
        return Err(CliError::refused(
            format!("there are no SCUD tasks in {} or above it", dir.display()),
            format!(
                "a file with a first task: {}; tasks elsewhere: --working-dir DIR",
                scud::first_task_command(Path::new(".scud/tasks/tasks.scg"), tag)
            ),
        ));
    };
    check_tag(&file, tag)?;
    Ok(TaskFile::Scud {
        tag: tag.to_owned(),
        file,
    })
}

/// Flags of a task loop mean nothing to a loop with one prompt.
pub fn refuse_flags(args: &GraphArgs) -> Result<(), CliError> {
    match args.given().first() {
        Some(flag) => Err(CliError::usage(
            format!("{flag} is for task loops, and there are no tasks"),
            format!("name the tasks with --scud-tag TAG, or omit {flag}"),
        )),
        None => Ok(()),
    }
}

/// What is committed in a loop over tasks, and when, is the tasks' own.
pub fn refuse_git_flags(args: &GitArgs) -> Result<(), CliError> {
    let commits =
        "the work of each task is committed when it is proven, and lands as one commit per wave";
    let tags = "the wave commits record what was proven";
    let given = [
        ("--auto-commit", args.auto_commit, commits),
        ("--commit-template", args.commit_template.is_some(), commits),
        ("--tag-green", args.tag_green, tags),
    ];
    match given.iter().find(|(_, given, _)| *given) {
        Some((flag, _, instead)) => Err(CliError::usage(
            format!("{flag} is for loops with one prompt: {instead}"),
            format!("omit {flag}"),
        )),
        None => Ok(()),
    }
}

/// A tag that is not in a file which can be read was mistyped; what else may be wrong with the
/// file is told when its tasks are loaded.
fn check_tag(file: &Path, tag: &str) -> Result<(), CliError> {
    let name = file.file_name().map(|name| name.to_string_lossy());
    let form = name.and_then(|name| Form::of_file_name(&name));
    let text = descartes_store::safe_open::read_user_text(file);
    let Some((form, text)) = form.zip(text.ok()) else {
        return Ok(());
    };
    let Ok(read) = scud::parse(&text, &form) else {
        return Ok(());
    };
    let names: Vec<String> = read.tag_names().map(str::to_owned).collect();
    if names.is_empty() && text.trim().is_empty() {
        return Err(CliError::refused(
            format!("{}: there are no tasks in it yet", file.display()),
            match form {
                Form::Scg => format!("a first one: {}", scud::first_task_command(file, tag)),
                _ => "add tasks to it, for example with `scud parse`".to_owned(),
            },
        ));
    }
    if names.is_empty() || names.iter().any(|name| name == tag) {
        return Ok(());
    }
    Err(no_tag(&file.display().to_string(), tag, &names))
}

fn no_tag(place: &str, tag: &str, names: &[String]) -> CliError {
    CliError::refused(
        format!("{place}: there is no tag `{tag}`"),
        match nearest(tag, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean --scud-tag {near}?"),
            None => format!("known tags: {}", names.join(", ")),
        },
    )
}

/// Makes a loop a task loop; answers with what a person should know.
pub fn put(
    config: &mut IterativeLoopConfig,
    source: TaskFile,
    args: &GraphArgs,
    settings: &Settings,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Vec<String>, CliError> {
    let roadmap = matches!(source, TaskFile::Roadmap { .. });
    let mut said = Vec::new();
    if config.verify.is_empty() && !roadmap {
        said.push(default_gates(config, &source, ctx, dir)?);
    }
    let has_gates = !config.verify.is_empty() || every_task_has_gates(&source);
    if !has_gates && !roadmap && config.completion_promise.is_none() {
        return Err(CliError::usage(
            "without a promise and without a gate, no task can ever count as done",
            "add --verify, or omit --no-promise",
        ));
    }
    let limit = settings.max_iterations.from_flag();
    config.max_iterations = match limit.or(settings.max_total_iterations.value) {
        // A roadmap's tasks have limits of their own.
        _ if roadmap && limit.is_none() => None,
        Some(IterationLimit(limit)) => limit,
        None => Some(100),
    };
    if settings.max_iterations_per_task.value == Some(0) {
        return Err(CliError::usage(
            "--max-iterations-per-task 0 would do nothing",
            "use 1 or more",
        ));
    }
    let absolute = |path: &PathBuf| ctx.absolute(path);
    let in_place = settings.in_place.get().unwrap_or(false);
    if in_place && settings.parallel.value.is_some_and(|tasks| tasks > 1) {
        return Err(CliError::usage(
            "--in-place runs one task at a time",
            "omit --parallel or --in-place",
        ));
    }
    for (what, file) in [("the plan", &args.plan), ("the notes", &args.handoff)] {
        if let Some(file) = file {
            read_text(what, &ctx.absolute(file))?;
        }
    }
    check_worktree_copy(&settings.worktree_copy)?;
    let mut tasks = TasksConfig {
        plan_path: args.plan.as_ref().map(absolute),
        handoff_path: args.handoff.as_ref().map(absolute),
        use_sub_agents: !args.no_sub_agents,
        place: match in_place {
            true => WorkPlace::InPlace,
            false => WorkPlace::Worktrees,
        },
        spec: LoopSpecConfig {
            max_spec_tokens: Some(config.max_spec_tokens),
            spec_template: template(settings, ctx, dir)?,
            ..LoopSpecConfig::default()
        },
        trust_marks: args.trust_marks,
        ..TasksConfig::new(source)
    };
    settings.apply_to_tasks(&mut tasks);
    tasks.parallel = tasks.parallel.max(1);
    tasks.workers = workers(tasks.workers.take(), tasks.place, ctx, dir)?;
    tasks.git_remote = git_remote(&tasks, settings)?;
    config.tasks = Some(Box::new(tasks));
    Ok(said)
}

/// The engine of the workers, as the journal may know it: its key is kept apart.
fn workers(
    given: Option<String>,
    place: WorkPlace,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Option<String>, CliError> {
    match given {
        None => Ok(None),
        Some(_) if place == WorkPlace::InPlace => Err(CliError::usage(
            "workers on other machines work in clones of their own, not in place",
            "omit --workers or --in-place",
        )),
        Some(given) => {
            let address = WorkersAddress::parse(&given)?;
            address.keep_key(&ctx.root(dir)).map(Some)
        }
    }
}

/// The repository by which the work of workers travels.
fn git_remote(tasks: &TasksConfig, settings: &Settings) -> Result<Option<String>, CliError> {
    match (&tasks.git_remote, &tasks.workers) {
        (Some(given), Some(_)) => match check_remote(given) {
            Ok(()) => Ok(Some(given.clone())),
            Err(fault) => Err(CliError::usage(fault.to_string(), fault.hint())),
        },
        (Some(_), None) if settings.git_remote.from_flag().is_some() => Err(CliError::usage(
            "--git-remote is for the work of workers on other machines",
            "add --workers URL, or omit --git-remote",
        )),
        _ => Ok(None),
    }
}

/// Whether the gates of SCUD's own config would be run: nobody named any other.
pub fn uses_scud_gates(
    args: &StartArgs,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<ScudGates, CliError> {
    if args.scud.scud_tag.is_none() || !args.done.verify.is_empty() {
        return Ok(ScudGates::Unused);
    }
    let layers = ctx.with(ProjectConfig::AsWritten).layers(dir)?;
    let own = layers.settings.verify.value;
    Ok(match own.is_none_or(|gates| gates.is_empty()) {
        true => ScudGates::Used,
        false => ScudGates::Unused,
    })
}

/// The gates of SCUD's config, once they are trusted, else what the project's files make likely.
fn found_gates(ctx: &CommandContext, dir: &Path) -> Result<Option<FoundGates>, CliError> {
    let Some(found) = scud_gates(dir)? else {
        return Ok(project_gates(dir));
    };
    let keys = trust::scud_powers(&found.commands);
    if !ctx.trusts(dir, Subject::ScudGates, &keys) {
        let project = Project::look(dir, ScudGates::Used, ctx)?;
        return Err(trust::refusal(&project, dir, ctx, Some(TRUST_CONFIG)));
    }
    Ok(Some(FoundGates {
        commands: found.commands,
        source: format!("[swarm.backpressure] in {}", found.file.display()),
    }))
}

/// The gates that the project brings along; said aloud, also where there are none.
fn default_gates(
    config: &mut IterativeLoopConfig,
    source: &TaskFile,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<String, CliError> {
    let said = match found_gates(ctx, dir)? {
        Some(found) => {
            let words = format!(
                "no --verify: the gate is `{}`, from {}",
                found.commands.join("`, `"),
                found.source
            );
            config.verify = found.commands;
            words
        }
        None => gates_of_list(source).unwrap_or_else(|| {
            "no gate was given or found: a task counts as done by its agent's promise alone"
                .to_owned()
        }),
    };
    Ok(said)
}

/// A list of another tool. What is wrong with it is told when it is loaded.
fn list_of(source: &TaskFile) -> Option<TaskList> {
    let TaskFile::List {
        path,
        format,
        options,
        tag,
    } = source
    else {
        return None;
    };
    let read = read_list(path, *format, *options, tag.as_deref(), &[]);
    read.ok().map(|read| read.list)
}

/// Whether the list itself brings a gate for each of its tasks.
fn every_task_has_gates(source: &TaskFile) -> bool {
    list_of(source).is_some_and(|list| {
        let mut work = list.tasks.iter().filter(|task| !task.container);
        work.all(|task| !list.gates_of(task).is_empty())
    })
}

/// What is said of the gates that a list of another tool brings along.
fn gates_of_list(source: &TaskFile) -> Option<String> {
    let list = list_of(source)?;
    let of_all: Vec<&str> = list.gates.iter().map(|gate| &*gate.command).collect();
    if !of_all.is_empty() {
        let gates = of_all.join("`, `");
        return Some(format!("no --verify: the gate is `{gates}`, from the list"));
    }
    let mut tasks = list.tasks.iter();
    tasks.any(|task| !task.gates.is_empty()).then(|| {
        "no --verify: a task that brings no gate of its own counts as done by its agent's promise alone"
            .to_owned()
    })
}

/// What is copied lies in the project and lands at the same place of a worktree.
fn check_worktree_copy(copied: &Setting<Vec<String>>) -> Result<(), CliError> {
    let inside = |name: &&String| {
        let mut parts = Path::new(name).components();
        parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match copied.value.iter().flatten().find(|name| !inside(name)) {
        None => Ok(()),
        Some(name) => Err(CliError::usage(
            format!(
                "{}: worktree_copy: {name:?} is not inside the project",
                copied.source
            ),
            "name files and folders of the project, for example \".env\"",
        )),
    }
}

/// A text, or the name of a file that holds it.
pub fn template(
    settings: &Settings,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Option<String>, CliError> {
    let template = &settings.spec_template;
    let Some(given) = template.get() else {
        return Ok(None);
    };
    let text = match (given.contains('{'), template.from_flag()) {
        (true, Some(typed)) => unescaped(&typed),
        (true, None) => given,
        (false, _) => {
            let folder = folder_of(template, ctx, dir);
            read_text("the spec template", &folder.join(&given))?
        }
    };
    check_template(&text).map_err(|error| {
        CliError::usage(
            error.to_string(),
            "for example --spec-template '{task} {plan} {custom} {verification}'",
        )
    })?;
    Ok(Some(text))
}

/// A text that was typed: `\n` and `\t` are meant as the characters that nobody can type there.
fn unescaped(typed: &str) -> String {
    let mut out = String::with_capacity(typed.len());
    let mut chars = typed.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(next @ ('n' | 't' | '\\'))) => {
                chars.next();
                out.push(match next {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn line_breaks_can_be_typed_in_a_template() {
        let table = [
            (r"{task}\n\n{plan}", "{task}\n\n{plan}"),
            (r"a\tb\\n", "a\tb\\n"),
            (r"\d and a\", r"\d and a\"),
            ("real\nline", "real\nline"),
        ];
        for (typed, meant) in table {
            assert_eq!(unescaped(typed), meant);
        }
    }
}
