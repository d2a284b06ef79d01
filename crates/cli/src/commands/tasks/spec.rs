//! `descartes spec TASK`: what its agent would be told, and what each part of it weighs.

use descartes_core::host::HostError;
use descartes_core::tasks::{TaskBrief, found_gates, open_source, task_spec};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::prompt::first_prompt;
use descartes_kernel::tasks::{TaskFile, TasksConfig};
use descartes_plans::spec::Part;
use descartes_store::config::{FlagType, Settings};
use descartes_text::finding::nearest;
use serde_json::json;

use super::tasks_of;
use crate::args::tasks::{SpecArgs, WhichTasks};
use crate::error::CliError;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::settings::start::promise;
use crate::settings::tasks::template;

pub fn run(args: &SpecArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let mut tasks = tasks_of(&args.which, ctx)?;
    // As the loop would have it; nothing of it is run here.
    let written = ctx.with(ProjectConfig::AsWritten).layers(&ctx.here)?;
    let mut settings = written.settings;
    put_over(args, &mut settings);
    tasks.plan_path = args.plan.as_ref().map(|file| ctx.absolute(file));
    tasks.handoff_path = args.handoff.as_ref().map(|file| ctx.absolute(file));
    tasks.spec.max_spec_tokens = settings
        .max_spec_tokens
        .get()
        .or(tasks.spec.max_spec_tokens);
    tasks.spec.spec_template = template(&settings, ctx, &ctx.here)?;
    if let TaskFile::Roadmap { defaults, .. } = &mut tasks.source
        && let Some(promise) = settings.completion_promise.get()
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
        return Err(CliError::refused(
            format!("there is no task `{}`", args.task),
            hint,
        ));
    };
    let gates = gates_of(brief, &tasks, &settings, ctx)?;
    let config = IterativeLoopConfig {
        spec_files: settings.spec_file.get().unwrap_or_default(),
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
        TaskFile::Scud { .. } | TaskFile::List { .. } | TaskFile::Tracker(_) => promise(&settings),
    };
    let told = settings.promise_hint.get().unwrap_or(true);
    spec.text = first_prompt(&spec.text, promise.as_deref().filter(|_| told));
    if args.json {
        let value = json!({
            "text": spec.text, "tokens": spec.tokens, "parts": spec.parts, "warnings": spec.warnings,
        });
        ctx.printer.json(&value);
        return Ok(0);
    }
    ctx.printer.line(&spec.text);
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
        ctx.printer
            .note(&format!("{name}: {}{cut} tokens", part.kept));
    }
    ctx.printer
        .note(&format!("{} tokens in total", spec.tokens));
    for warning in &spec.warnings {
        ctx.printer.warning(warning);
    }
    Ok(0)
}

fn put_over(args: &SpecArgs, settings: &mut Settings) {
    settings.verify.put("--verify", args.verify.given());
    settings
        .spec_file
        .put("--spec-file", args.spec_file.given());
    let tokens = args.max_spec_tokens;
    settings.max_spec_tokens.put("--max-spec-tokens", tokens);
    let template = args.spec_template.clone();
    settings.spec_template.put("--spec-template", template);
}

/// Gates of the task itself, then those of the loop.
fn gates_of(
    brief: &TaskBrief,
    tasks: &TasksConfig,
    settings: &Settings,
    ctx: &CommandContext,
) -> Result<Vec<String>, CliError> {
    let mut own = settings.verify.get().unwrap_or_default();
    if own.is_empty() && !matches!(tasks.source, TaskFile::Roadmap { .. }) {
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
