//! `descartes spec TASK`: what its agent would be told, and what each part of it weighs.

use descartes_core::host::HostError;
use descartes_core::tasks::{found_gates, open_source, task_spec};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::finding::nearest;
use descartes_kernel::outcome::exit;
use descartes_kernel::spec::{Part, check_template};
use serde_json::json;

use super::tasks_of;
use crate::args::tasks::{SpecArgs, WhichTasks};
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::prompt::read_text;
use crate::settings::surroundings::Surroundings;

/// Runs it.
pub fn run(args: &SpecArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let mut tasks = tasks_of(&args.which, around)?;
    tasks.plan_path = args.tasks.plan.as_ref().map(|file| around.absolute(file));
    tasks.handoff_path = args
        .tasks
        .handoff
        .as_ref()
        .map(|file| around.absolute(file));
    tasks.spec.max_spec_tokens = args.max_spec_tokens.or(tasks.spec.max_spec_tokens);
    if let Some(given) = &args.tasks.spec_template {
        let text = match given.contains('{') {
            true => given.clone(),
            false => read_text("the spec template", &around.absolute(given.as_ref()))?,
        };
        check_template(&text)
            .map_err(|error| CliError::usage(error.to_string(), "it must hold {task}"))?;
        tasks.spec.spec_template = Some(text);
    }
    let loaded = open_source(&tasks, &around.here)?
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
    let mut gates = brief.gates.clone();
    gates.extend(args.verify.iter().cloned());
    if gates.is_empty() {
        gates = found_gates(&around.here)
            .map(|found| found.commands)
            .unwrap_or_default();
    }
    let config = IterativeLoopConfig {
        spec_files: args.spec_file.clone(),
        ..IterativeLoopConfig::default()
    };
    let spec = task_spec(
        &tasks,
        &config,
        &around.here,
        &brief.text,
        &loaded.guidance,
        &gates,
    );
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

/// The flags that name the same tasks again.
fn as_typed(which: &WhichTasks) -> String {
    let quoted = |word: &str| shell_words::quote(word).into_owned();
    match (&which.roadmap, &which.scud_tag) {
        (Some(file), _) => format!(" --roadmap {}", quoted(&file.display().to_string())),
        (None, Some(tag)) => format!(" --scud-tag {}", quoted(tag)),
        (None, None) => String::new(),
    }
}
