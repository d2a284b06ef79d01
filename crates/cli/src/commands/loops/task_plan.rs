//! What a task loop would do: its waves, its gates, its limits. Nothing is started or written.

use std::path::Path;

use descartes_core::tasks::open_source;
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};
use descartes_plans::graph::render;

use crate::error::CliError;
use crate::printer::Printer;
use crate::style::Tone;

pub fn run(config: &IterativeLoopConfig, dir: &Path, printer: &Printer) -> Result<i32, CliError> {
    let Some(tasks) = &config.tasks else {
        return Ok(0);
    };
    let loaded = open_source(tasks, dir)?
        .load()
        .map_err(descartes_core::host::HostError::from)?;
    let title = |text: &str| printer.out.text(Tone::Strong, text);
    printer.line(&title("Command"));
    printer.line(&format!("  {}", config.command_line()));
    printer.line(&title("Waves"));
    for line in render::text(&loaded.plan, &loaded.plan.effective_statuses()).lines() {
        printer.line(&format!("  {line}"));
    }
    printer.line(&title("Plan"));
    for (label, text) in rows(config, tasks) {
        printer.line(&format!("  {label:<18}{text}"));
    }
    Ok(0)
}

fn attempts(tasks: &TasksConfig) -> String {
    match &tasks.source {
        TaskFile::Scud { .. } | TaskFile::List { .. } | TaskFile::Tracker(_) => {
            format!("{} for each task", tasks.max_iterations_per_task)
        }
        TaskFile::Roadmap { defaults, .. } => format!(
            "{} for a looping task, 1 plus its retries for any other, unless the task sets its own",
            defaults.iterations
        ),
    }
}

fn rows(config: &IterativeLoopConfig, tasks: &TasksConfig) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&str, String)> = config
        .verify
        .iter()
        .map(|gate| ("gate", gate.clone()))
        .collect();
    rows.push(("attempts", attempts(tasks)));
    rows.push(("iterations", format!("at most {}", config.limit_label())));
    rows.push((
        "place",
        match tasks.place {
            WorkPlace::InPlace => "in this checkout, one at a time".to_owned(),
            WorkPlace::Worktrees => format!("in worktrees, {} at a time", tasks.parallel),
        },
    ));
    rows
}
