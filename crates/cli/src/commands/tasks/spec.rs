//! `descartes spec TASK`: what its agent would be told, and what each part of it weighs.

use std::path::PathBuf;

use descartes_core::host::HostError;
use descartes_core::tasks::{TaskBrief, found_gates, open_source, task_spec};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::finding::nearest;
use descartes_kernel::outcome::exit;
use descartes_kernel::prompt::first_prompt;
use descartes_kernel::spec::Part;
use descartes_kernel::tasks::{TaskFile, TasksConfig};
use descartes_store::config::Layers;
use serde_json::json;

use super::tasks_of;
use crate::args::tasks::{SpecArgs, WhichTasks};
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::settings::start::{promise, value};
use crate::settings::tasks::template;

/// Runs it.
pub fn run(args: &SpecArgs, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    let mut tasks = tasks_of(&args.which, ctx)?;
    // As the loop would have it; nothing of it is run here.
    let layers = ctx.with(ProjectConfig::AsWritten).layers(&ctx.here)?;
    tasks.plan_path = args.plan.as_ref().map(|file| ctx.absolute(file));
    tasks.handoff_path = args.handoff.as_ref().map(|file| ctx.absolute(file));
    tasks.spec.max_spec_tokens = match args.max_spec_tokens {
        Some(given) => Some(given),
        None => value(&layers, "max_spec_tokens")?.or(tasks.spec.max_spec_tokens),
    };
    let typed = args.spec_template.as_deref();
    tasks.spec.spec_template = template(typed, &layers, ctx, &ctx.here)?;
    if let TaskFile::Roadmap { defaults, .. } = &mut tasks.source
        && let Some(promise) = value::<String>(&layers, "completion_promise")?
    {
        defaults.promise = promise;
    }
    let loaded = open_source(&tasks, &ctx.here)?
        .load()
        .map_err(HostError::from)?;
    let Some(brief) = loaded.briefs.get(args.task.as_str()) else {
        let ids = loaded.briefs.keys().map(|id| &**id);
        let hint = match nearest(&args.task, ids) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("see them with: descartes graph{}", as_typed(&args.which)),
        };
        return Err(CliError::Background {
            message: format!("there is no task `{}`", args.task),
            causes: Vec::new(),
            hints: vec![hint],
            code: exit::REFUSED,
        });
    };
    let gates = gates_of(args, brief, &tasks, &layers, ctx)?;
    let spec_files = match args.spec_file.is_empty() {
        true => value::<Vec<PathBuf>>(&layers, "spec_file")?.unwrap_or_default(),
        false => args.spec_file.clone(),
    };
    let config = IterativeLoopConfig {
        spec_files,
        ..IterativeLoopConfig::default()
    };
    let mut spec = task_spec(
        &tasks,
        &config,
        &ctx.here,
        &brief.text,
        &loaded.guidance,
        &gates,
    );
    let promise = match &tasks.source {
        TaskFile::Roadmap { .. } => brief.promise.clone(),
        TaskFile::Scud { .. } => promise(&layers)?,
    };
    let told = value(&layers, "promise_hint")?.unwrap_or(true);
    spec.text = first_prompt(&spec.text, promise.as_deref().filter(|_| told));
    if args.json {
        let value = json!({
            "text": spec.text, "tokens": spec.tokens, "parts": spec.parts, "warnings": spec.warnings,
        });
        printer.json(&value.to_string());
        return Ok(0);
    }
    printer.line(&spec.text);
    for part in &spec.parts {
        let name = match &part.part {
            Part::Task => "task",
            Part::Plan => "plan",
            Part::Handoff => "notes",
            Part::File(name) => name,
            Part::Frame => "frame",
        };
        let cut = match part.kept == part.tokens {
            true => String::new(),
            false => format!(" of {}", part.tokens),
        };
        printer.note(&format!("{name}: {}{cut} tokens", part.kept));
    }
    printer.note(&format!("{} tokens in all", spec.tokens));
    for warning in &spec.warnings {
        printer.warning(warning);
    }
    Ok(0)
}

/// Gates of the task itself, then those of the loop.
fn gates_of(
    args: &SpecArgs,
    brief: &TaskBrief,
    tasks: &TasksConfig,
    layers: &Layers,
    ctx: &CommandContext,
) -> Result<Vec<String>, CliError> {
    let mut own = args.verify.clone();
    if own.is_empty() {
        own = value(layers, "verify")?.unwrap_or_default();
    }
    if own.is_empty() && matches!(tasks.source, TaskFile::Scud { .. }) {
        let found = found_gates(&ctx.here)?;
        own = found.map(|found| found.commands).unwrap_or_default();
    }
    let mut gates = brief.gates.clone();
    for gate in own {
        if !gates.contains(&gate) {
            gates.push(gate);
        }
    }
    Ok(gates)
}

/// The flags that name the same tasks again.
fn as_typed(which: &WhichTasks) -> String {
    let quoted = |word: &str| shell_words::quote(word).into_owned();
    match (&which.roadmap, &which.scud_tag) {
        (Some(file), _) => format!(" --roadmap {}", quoted(&file.display().to_string())),
        (None, Some(tag)) => format!(" --scud-tag {}", quoted(tag)),
        (None, None) => String::new(),
    }
}
