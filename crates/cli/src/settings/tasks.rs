//! What makes a loop a task loop, from flags and settings.

use std::path::{Component, Path, PathBuf};

use descartes_core::tasks::{FoundGates, find_task_file, project_gates, scud_gates, tags_of_files};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::finding::nearest;
use descartes_kernel::outcome::exit;
use descartes_kernel::scud::{self, Form};
use descartes_kernel::spec::{LoopSpecConfig, check_template};
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};
use descartes_store::config::{Layers, Source};
use descartes_store::trust::Subject;

use super::command_context::{CommandContext, ProjectConfig};
use super::prompt::read_text;
use super::start::value;
use crate::args::start::{GitArgs, GraphArgs, StartArgs};
use crate::error::CliError;
use crate::trust::{self, Project, ScudGates};

/// The task file of a SCUD tag.
pub fn scud_source(dir: &Path, tag: &str) -> Result<TaskFile, CliError> {
    let Some(file) = find_task_file(dir, tag) else {
        let tags = tags_of_files(dir);
        if !tags.is_empty() {
            return Err(no_tag(&dir.display().to_string(), tag, &tags));
        }
        return Err(CliError::Background {
            message: format!("there are no SCUD tasks in {} or above it", dir.display()),
            causes: Vec::new(),
            hints: vec![
                "make them with `scud init`, or name the project with --working-dir".to_owned(),
            ],
            code: exit::REFUSED,
        });
    };
    check_tag(&file, tag)?;
    Ok(TaskFile::Scud {
        tag: tag.to_owned(),
        file,
    })
}

/// Flags of a task loop mean nothing to a loop with one prompt.
pub fn refuse_flags(args: &GraphArgs) -> Result<(), CliError> {
    let given = [
        ("--plan", args.plan.is_some()),
        ("--handoff", args.handoff.is_some()),
        (
            "--max-iterations-per-task",
            args.max_iterations_per_task.is_some(),
        ),
        ("--no-sub-agents", args.no_sub_agents),
        ("--no-auto-commit-waves", args.no_auto_commit_waves),
        ("--no-wave-barrier", args.no_wave_barrier),
        ("--spec-template", args.spec_template.is_some()),
        ("--in-place", args.in_place),
        ("--parallel", args.parallel.is_some()),
        ("--trust-marks", args.trust_marks),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(CliError::usage(
            format!("{flag} is for a loop over tasks, and there are none"),
            format!("name the tasks with --scud-tag TAG, or leave {flag} away"),
        )),
        None => Ok(()),
    }
}

/// What is committed in a loop over tasks, and when, is the tasks' own.
pub fn refuse_git_flags(args: &GitArgs) -> Result<(), CliError> {
    let commits =
        "the work of each task is committed when it is proven, and lands as one commit a wave";
    let tags = "the commits of waves tell what was proven";
    let given = [
        ("--auto-commit", args.auto_commit, commits),
        ("--commit-template", args.commit_template.is_some(), commits),
        ("--tag-green", args.tag_green, tags),
    ];
    match given.iter().find(|(_, given, _)| *given) {
        Some((flag, _, instead)) => Err(CliError::usage(
            format!("{flag} is for a loop with one prompt: {instead}"),
            format!("leave {flag} away"),
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
    if names.is_empty() || names.iter().any(|name| name == tag) {
        return Ok(());
    }
    Err(no_tag(&file.display().to_string(), tag, &names))
}

fn no_tag(place: &str, tag: &str, names: &[String]) -> CliError {
    CliError::Refused {
        message: format!("{place}: there is no tag `{tag}`"),
        hints: vec![match nearest(tag, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean --scud-tag {near}?"),
            None => format!("there are: {}", names.join(", ")),
        }],
    }
}

/// Makes a loop a task loop; answers with what a person should know.
pub fn put(
    config: &mut IterativeLoopConfig,
    source: TaskFile,
    args: &GraphArgs,
    layers: &Layers,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Vec<String>, CliError> {
    let roadmap = matches!(source, TaskFile::Roadmap { .. });
    let mut said = Vec::new();
    if config.verify.is_empty() && !roadmap {
        said.push(default_gates(config, ctx, dir)?);
    }
    if config.verify.is_empty() && !roadmap && config.completion_promise.is_none() {
        return Err(CliError::usage(
            "without a promise and without a gate, no task can be found done",
            "add --verify, or leave --no-promise away",
        ));
    }
    let given = layers.limit("max_iterations");
    let own = given.filter(|limit| matches!(limit.source, Source::Flag(_)));
    let limit = own.or_else(|| layers.limit("max_total_iterations"));
    config.max_iterations = match limit.map(|limit| limit.value) {
        Some(limit) => limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
        None => Some(100),
    };
    if roadmap && own_limit(layers).is_none() {
        // A roadmap's tasks have limits of their own.
        config.max_iterations = None;
    }
    let attempts = match args.max_iterations_per_task {
        Some(0) => {
            return Err(CliError::usage(
                "--max-iterations-per-task 0 would do nothing",
                "give a number from 1",
            ));
        }
        Some(attempts) => attempts,
        None => value(layers, "max_iterations_per_task")?.unwrap_or(3),
    };
    let absolute = |path: &PathBuf| ctx.absolute(path);
    let in_place = args.in_place || value(layers, "in_place")?.unwrap_or(false);
    let parallel = match args.parallel {
        Some(parallel) => parallel,
        None => value(layers, "parallel")?.unwrap_or(1),
    };
    if in_place && parallel > 1 {
        return Err(CliError::usage(
            "--in-place runs one task at a time",
            "leave --parallel away, or --in-place",
        ));
    }
    for (what, file) in [("the plan", &args.plan), ("the notes", &args.handoff)] {
        if let Some(file) = file {
            read_text(what, &ctx.absolute(file))?;
        }
    }
    let barrier: bool = value(layers, "wave_barrier")?.unwrap_or(true);
    let commits: bool = value(layers, "auto_commit_waves")?.unwrap_or(true);
    config.tasks = Some(Box::new(TasksConfig {
        plan_path: args.plan.as_ref().map(absolute),
        handoff_path: args.handoff.as_ref().map(absolute),
        max_iterations_per_task: attempts,
        use_sub_agents: !args.no_sub_agents,
        auto_commit_waves: commits && !args.no_auto_commit_waves,
        wave_barrier: barrier && !args.no_wave_barrier,
        parallel: parallel.max(1),
        place: match in_place {
            true => WorkPlace::InPlace,
            false => WorkPlace::Worktrees,
        },
        spec: LoopSpecConfig {
            max_spec_tokens: Some(config.max_spec_tokens),
            spec_template: template(args.spec_template.as_deref(), layers, ctx, dir)?,
            ..LoopSpecConfig::default()
        },
        worktree_copy: worktree_copy(layers)?,
        worktree_setup: value(layers, "worktree_setup")?,
        trust_marks: args.trust_marks,
        gate_caches: value(layers, "gate_caches")?
            .unwrap_or_else(descartes_kernel::tasks::gate_caches),
        ..TasksConfig::new(source)
    }));
    Ok(said)
}

fn own_limit(layers: &Layers) -> Option<Option<u64>> {
    let limit = layers.limit("max_iterations")?;
    matches!(limit.source, Source::Flag(_)).then_some(limit.value)
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
    let own = value::<Vec<String>>(&layers, "verify")?.unwrap_or_default();
    Ok(match own.is_empty() {
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
        return Err(trust::refusal(&project, dir, ctx, Some(trust::FLAG)));
    }
    Ok(Some(FoundGates {
        commands: found.commands,
        source: format!("[swarm.backpressure] in {}", found.file.display()),
    }))
}

/// The gates that the project brings along; said aloud, also where there are none.
fn default_gates(
    config: &mut IterativeLoopConfig,
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
        None => {
            "no gate was given or found: a task is done by its agent's promise alone".to_owned()
        }
    };
    Ok(said)
}

/// What is copied lies in the project and lands at the same place of a worktree.
fn worktree_copy(layers: &Layers) -> Result<Vec<String>, CliError> {
    let Some(found) = layers.get::<Vec<String>>("worktree_copy") else {
        return Ok(Vec::new());
    };
    let inside = |name: &String| {
        let parts = Path::new(name).components();
        parts
            .into_iter()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match found.value.iter().find(|name| !inside(name)) {
        None => Ok(found.value),
        Some(name) => Err(CliError::usage(
            format!(
                "{}: worktree_copy: {name:?} does not lie in the project",
                found.source
            ),
            "name files and folders of the project, for example \".env\"",
        )),
    }
}

/// A text, or the name of a file that holds it.
pub fn template(
    typed: Option<&str>,
    layers: &Layers,
    ctx: &CommandContext,
    dir: &Path,
) -> Result<Option<String>, CliError> {
    // A path in a config file is relative to the project.
    let (given, folder) = match typed {
        Some(given) => (Some(given.to_owned()), ctx.here.as_path()),
        None => (value(layers, "spec_template")?, dir),
    };
    let Some(given) = given else { return Ok(None) };
    let text = match (given.contains('{'), typed) {
        (true, Some(typed)) => unescaped(typed),
        (true, None) => given,
        (false, _) => read_text("the spec template", &folder.join(&given))?,
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
