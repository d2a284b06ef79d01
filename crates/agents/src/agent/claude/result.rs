//! Claude's final word. Its `subtype` says "success" for errors of the provider too.

use super::line::ClaudeLine;
use crate::agent::failure::failure;
use crate::agent::{Failure, FailureKind, MicroUsd, RunResult, Usage};

pub(super) fn result(line: &ClaudeLine<'_>) -> RunResult {
    RunResult {
        error: error(line),
        text: line.result.owned(),
        usage: usage(line),
        cost: line.total_cost_usd.0.and_then(MicroUsd::from_usd),
        turns: line.num_turns.count(),
    }
}

fn error(line: &ClaudeLine<'_>) -> Option<Failure> {
    let good = line.subtype.is("success") || line.is_error.0 == Some(false);
    let bad = line.is_error.0 == Some(true)
        || line.api_error_status.0.is_some()
        || line.subtype.or_empty().starts_with("error");
    if good && !bad {
        return None;
    }
    let status = line
        .api_error_status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    let told = failure(&message(line), status);
    let kind = match line.subtype.or_empty() {
        "error_max_turns" | "error_max_budget_usd" => FailureKind::OwnLimit,
        "error_during_execution" if told.kind == FailureKind::Other => FailureKind::Interrupted,
        _ => told.kind,
    };
    Some(Failure { kind, ..told })
}

fn message(line: &ClaudeLine<'_>) -> String {
    if let Some(text) = line.result.owned() {
        return text;
    }
    let errors = line.errors.0.iter().filter_map(|error| error.as_deref());
    let plain: Vec<&str> = errors
        .filter(|error| !error.starts_with("[ede_diagnostic]"))
        .collect();
    match (plain.is_empty(), line.subtype.as_deref()) {
        (false, _) => plain.join("\n"),
        (true, Some(subtype)) => subtype.replace('_', " "),
        (true, None) => "the result reports neither success nor error".to_owned(),
    }
}

/// By model where told: that counts side calls too.
fn usage(line: &ClaudeLine<'_>) -> Option<Usage> {
    let own = line.usage.0.map(|tokens| tokens.usage());
    let all = Some(line.model_usage.0).filter(|usage| usage.total() >= own.and_then(|u| u.total()));
    all.filter(|usage| !usage.is_unknown()).or(own)
}
