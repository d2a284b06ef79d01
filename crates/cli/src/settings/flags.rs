//! Flags as the topmost layer of the settings. A setting's key is its flag without dashes.

use descartes_kernel::units::Secs;
use descartes_store::config::Layers;
use toml::Value;

use crate::args::start::StartArgs;
use crate::args::values::{IterationLimit, SizeLimit};
use crate::error::CliError;

/// Puts every flag that was given over the other layers.
pub fn put(layers: &mut Layers, args: &StartArgs) -> Result<(), CliError> {
    let StartArgs {
        task,
        done,
        limits,
        agent,
        prompt,
        git,
        ..
    } = args;
    let file = |path: &std::path::PathBuf| Value::String(path.display().to_string());
    let given = [
        ("--prompt-file", task.prompt_file.as_ref().map(file)),
        ("--verify", texts(&done.verify)),
        ("--verify-timeout", done.verify_timeout.map(seconds)),
        (
            "--completion-promise",
            done.completion_promise.as_deref().map(text),
        ),
        ("--no-promise", yes(done.no_promise)),
        ("--promise-match", done.promise_match.map(word)),
        ("--promise-hint", done.promise_hint.map(Value::Boolean)),
        ("--promise-grace", done.promise_grace.map(seconds)),
        ("--abort-promise", done.abort_promise.as_deref().map(text)),
        ("--max-iterations", limits.max_iterations.map(iterations)),
        ("--max-duration", limits.max_duration.map(seconds)),
        ("--max-cost", limits.max_cost.map(Value::Float)),
        ("--max-tokens", limits.max_tokens.map(number)),
        ("--timeout", limits.timeout.map(seconds)),
        ("--idle-timeout", limits.idle_timeout.map(seconds)),
        ("--max-failures", limits.max_failures.map(number)),
        ("--stall-after", limits.stall_after.map(number)),
        ("--kill-grace", limits.kill_grace.map(seconds)),
        ("--max-log", limits.max_log.map(size)),
        ("--max-snapshots", limits.max_snapshots.map(size)),
        ("--backend", agent.backend.as_deref().map(text)),
        ("--model", agent.model.as_deref().map(text)),
        ("--permissions", agent.permissions.map(word)),
        ("--fallback", texts(&agent.fallback)),
        ("--prompt-mode", agent.prompt_mode.map(word)),
        ("--fresh-context", yes(prompt.fresh_context)),
        ("--spec-file", list(prompt.spec_file.iter().map(file))),
        ("--max-spec-tokens", prompt.max_spec_tokens.map(number)),
        ("--auto-commit", yes(git.auto_commit)),
        (
            "--commit-template",
            git.commit_template.as_deref().map(text),
        ),
        ("--branch", yes(git.branch)),
        (
            "--branch-template",
            git.branch_template.as_deref().map(text),
        ),
        ("--tag-green", yes(git.tag_green)),
    ];
    for (flag, value) in given {
        if let Some(value) = value {
            let key = flag.trim_start_matches('-').replace('-', "_");
            layers.set_flag(&key, flag, value)?;
        }
    }
    if prompt.iteration_context {
        layers.set_flag(
            "fresh_context",
            "--iteration-context",
            Value::Boolean(false),
        )?;
    }
    Ok(())
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn texts(texts: &[String]) -> Option<Value> {
    list(texts.iter().map(|one| text(one)))
}

fn list(values: impl Iterator<Item = Value>) -> Option<Value> {
    let values: Vec<Value> = values.collect();
    (!values.is_empty()).then_some(Value::Array(values))
}

fn yes(given: bool) -> Option<Value> {
    given.then_some(Value::Boolean(true))
}

/// Whole seconds as a number, others as a fraction.
fn seconds(Secs(duration): Secs) -> Value {
    match (i64::try_from(duration.as_secs()), duration.subsec_nanos()) {
        (Ok(whole), 0) => Value::Integer(whole),
        _ => Value::Float(duration.as_secs_f64()),
    }
}

fn number(number: impl Into<u64>) -> Value {
    Value::Integer(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

fn iterations(IterationLimit(limit): IterationLimit) -> Value {
    limit.map_or_else(|| Value::String("unlimited".to_owned()), number)
}

fn size(SizeLimit(limit): SizeLimit) -> Value {
    limit.map_or_else(|| Value::String("unlimited".to_owned()), number)
}

/// A kernel's choice by the name that files use.
fn word(choice: impl serde::Serialize) -> Value {
    Value::try_from(choice).unwrap_or_else(|_| Value::String(String::new()))
}
