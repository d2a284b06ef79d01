//! `--dry-run`: the command, the prompt and the plan. Nothing is started or written.

use descartes_agents::agent::PromptMode;
use descartes_core::host::{self, HostSettings, OnExistingState};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_store::config::Source;
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE};
use descartes_text::units::show_size;

use super::plan_rows::{gates, limits, permissions};
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::start::Start;
use crate::style::Tone;

pub fn run(
    start: &Start,
    existing: OnExistingState,
    settings: &HostSettings,
    printer: &Printer,
) -> Result<(), CliError> {
    if start.config.tasks.is_some() {
        return super::task_plan::run(&start.config, &start.dir, settings, printer).map(drop);
    }
    let prompt = first_prompt(start, printer)?;
    let delivery = start
        .agent
        .invocation
        .deliver(&start.agent.profile, &prompt, "PROMPT-FILE")
        .map_err(|error| {
            CliError::usage(error.to_string(), "pass it another way with --prompt-mode")
        })?;
    let shown = |word: &String| match *word == prompt {
        true => "PROMPT".to_owned(),
        false => word.clone(),
    };
    let command: Vec<String> = delivery.argv.iter().map(shown).collect();
    let title = |text: &str| printer.out.text(Tone::Strong, text);
    printer.line(&title("Command"));
    printer.line(&format!("  {}", shell_words::join(&command)));
    printer.line(&format!("  {}", way(delivery.mode)));
    printer.line(&title("Prompt of iteration 1"));
    for line in prompt.lines() {
        printer.line(&format!("  {line}"));
    }
    printer.line(&title("Plan"));
    for (label, text) in plan(start, existing, settings)? {
        printer.line(&format!("  {label:<18}{text}"));
    }
    let rows = start.layers.rows();
    let set: Vec<_> = rows
        .iter()
        .filter(|row| row.source != Source::Default)
        .collect();
    if !set.is_empty() {
        printer.line(&title("Set by"));
        for row in set {
            printer.line(&format!("  {:<18}{}", row.key, row.source));
        }
    }
    Ok(())
}

fn way(mode: PromptMode) -> &'static str {
    match mode {
        PromptMode::Arg => "the prompt is an argument",
        PromptMode::Stdin => "the prompt is passed on standard input",
        PromptMode::Env => "the prompt is passed in the variable PROMPT",
        PromptMode::File => "the prompt is passed in a file whose path is an argument",
        PromptMode::None => "the prompt is not passed",
    }
}

/// The prompt as iteration 1 will get it.
fn first_prompt(start: &Start, printer: &Printer) -> Result<String, CliError> {
    let config = &start.config;
    if !config.wants_prompt() {
        return Ok(String::new());
    }
    let understood = start.agent.invocation.stream.is_understood();
    let (prompt, warning) = host::first_prompt(config, &start.dir, understood)?;
    if let Some(warning) = &warning {
        printer.warning(warning);
    }
    Ok(prompt)
}

fn plan(
    start: &Start,
    existing: OnExistingState,
    settings: &HostSettings,
) -> Result<Vec<(&'static str, String)>, CliError> {
    let config = &start.config;
    let default = start.dir.join(PROJECT_FOLDER).join(STATE_FILE);
    let state_file = config.state_file.clone().unwrap_or(default);
    let mut rows = vec![
        ("backend", config.backend.backend_type.clone()),
        ("working dir", start.dir.display().to_string()),
        ("state file", state_file.display().to_string()),
    ];
    match host::over_existing(settings, &state_file, existing, config) {
        Ok(kept) => rows.extend(kept.map(|words| ("", words))),
        Err(refused) => {
            rows.push(("", refused.to_string()));
            rows.extend(refused.hint().map(|hint| ("", hint)));
        }
    }
    rows.push(("done when", done_when(config)));
    rows.extend(gates(config));
    rows.push(("permissions", permissions(config).to_owned()));
    rows.push(("sandbox", host::foreseen_level(config, settings)));
    rows.extend(limits(config));
    let size = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), show_size);
    rows.push(("log of each", size(config.max_log_bytes)));
    rows.push(("snapshots", size(config.max_snapshot_bytes)));
    let fallback = config.fallback.iter();
    rows.extend(fallback.map(|agent| ("fallback", agent.clone())));
    rows.extend(git(config));
    Ok(rows)
}

fn done_when(config: &IterativeLoopConfig) -> String {
    let gates = !config.verify.is_empty();
    match (&config.completion_promise, gates) {
        (Some(promise), true) => {
            format!("<promise>{promise}</promise> is claimed and every gate passes")
        }
        (Some(promise), false) => format!("<promise>{promise}</promise> is claimed"),
        (None, true) => "every gate passes".to_owned(),
        (None, false) => "the agent exits with code 0".to_owned(),
    }
}

fn git(config: &IterativeLoopConfig) -> Vec<(&'static str, String)> {
    let git = &config.git;
    [
        git.create_branch
            .then(|| ("branch", git.branch_template.clone())),
        git.auto_commit
            .then(|| ("commit each", git.commit_template.clone())),
        git.tag_green
            .then(|| ("tag when green", "descartes/{name}/{iteration}".to_owned())),
    ]
    .into_iter()
    .flatten()
    .collect()
}
