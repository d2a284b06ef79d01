//! What a task loop would do: its waves, its gates, its limits. Nothing is started or written.

use std::path::Path;

use descartes_core::host::{self, HostSettings};
use descartes_core::tasks::{Loaded, TaskBrief, open_source};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};
use descartes_plans::graph::{TaskStatus, render};

use super::plan_rows;
use crate::error::CliError;
use crate::printer::Printer;
use crate::style::Tone;
use crate::view::words;

/// Tasks that are named where several have the same gates and limits, and such groups that are shown.
const NAMED: usize = 8;
const GROUPS: usize = 40;

pub fn run(
    config: &IterativeLoopConfig,
    dir: &Path,
    settings: &HostSettings,
    printer: &Printer,
) -> Result<i32, CliError> {
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
    let lines = task_lines(config, &loaded);
    if !lines.is_empty() {
        printer.line(&title("Tasks"));
    }
    for line in lines {
        printer.line(&format!("  {line}"));
    }
    printer.line(&title("Plan"));
    for (label, text) in rows(config, tasks, settings) {
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

/// What holds for each open task beside the plan of the loop; tasks for which the same holds stand together.
fn task_lines(config: &IterativeLoopConfig, loaded: &Loaded) -> Vec<String> {
    let statuses = loaded.plan.effective_statuses();
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for (task, status) in loaded.plan.graph().nodes().iter().zip(statuses) {
        let brief = loaded.briefs.get(&task.id);
        let Some(brief) =
            brief.filter(|_| matches!(status, TaskStatus::Pending | TaskStatus::InProgress))
        else {
            continue;
        };
        let text = task_words(config, brief);
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((ids, _)) => ids.push(&task.id),
            None => groups.push((vec![&task.id], text)),
        }
    }
    let more = groups.len().saturating_sub(GROUPS);
    let mut lines: Vec<String> = groups
        .iter()
        .take(GROUPS)
        .map(|(ids, text)| format!("{}: {text}", some_of(ids)))
        .collect();
    if more > 0 {
        lines.push(format!("and {more} more, each with its own"));
    }
    lines
}

fn some_of(ids: &[&str]) -> String {
    let named = ids.iter().take(NAMED).copied().collect::<Vec<_>>();
    match ids.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn task_words(config: &IterativeLoopConfig, brief: &TaskBrief) -> String {
    let mut parts: Vec<String> = brief
        .agent
        .iter()
        .map(|agent| format!("agent {agent}"))
        .collect();
    let gates = brief.gates.iter().map(|gate| format!("gate `{gate}`"));
    parts.extend(gates);
    if brief.gates.is_empty() && config.verify.is_empty() {
        parts.push("no gate".to_owned());
    }
    let own = config.iteration_timeout_secs.map(|limit| limit.0);
    let timeout = own.or(brief.timeout);
    parts.extend(timeout.map(|limit| format!("each attempt at most {}", words::seconds(limit))));
    let total = brief.max_time;
    parts.extend(total.map(|limit| format!("all attempts at most {}", words::seconds(limit))));
    parts.extend(
        brief
            .sandbox
            .map(|level| format!("sandbox at least {}", level.as_str())),
    );
    parts.join(", ")
}

fn rows(
    config: &IterativeLoopConfig,
    tasks: &TasksConfig,
    settings: &HostSettings,
) -> Vec<(&'static str, String)> {
    let mut rows = plan_rows::gates(config);
    if config.verify.is_empty() {
        rows.push(("gate", "none for every task: each task's own".to_owned()));
    }
    rows.push(("permissions", plan_rows::permissions(config).to_owned()));
    rows.push(("sandbox", host::foreseen_level(config, settings)));
    rows.push(("attempts", attempts(tasks)));
    rows.extend(plan_rows::limits(config));
    rows.push((
        "place",
        match tasks.place {
            WorkPlace::InPlace => "in this checkout, one at a time".to_owned(),
            WorkPlace::Worktrees => format!("in worktrees, {} at a time", tasks.parallel),
        },
    ));
    rows.push((
        "lands on",
        match config.git.create_branch {
            true => format!("a new branch, {}", config.git.branch_template),
            false => "the branch that is checked out".to_owned(),
        },
    ));
    rows
}
