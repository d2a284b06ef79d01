//! Claude's final word. Its `subtype` says "success" for errors of the provider too.

use super::tokens::tokens;
use crate::agent::failure::failure;
use crate::agent::json::JsonValue;
use crate::agent::{Failure, FailureKind, MicroUsd, RunResult, Usage};

pub(super) fn result(line: &JsonValue<'_>) -> RunResult {
    RunResult {
        error: error(line),
        text: line["result"].owned(),
        usage: usage(line),
        cost: line["total_cost_usd"].number().and_then(MicroUsd::from_usd),
        turns: line["num_turns"].count(),
    }
}

fn error(line: &JsonValue<'_>) -> Option<Failure> {
    let (subtype, failed) = (line["subtype"].or_empty(), line["is_error"].flag());
    let status = &line["api_error_status"];
    let good = subtype == "success" || failed == Some(false);
    let bad = failed == Some(true) || status.number().is_some() || subtype.starts_with("error");
    if good && !bad {
        return None;
    }
    let told = failure(&message(line), status.small());
    let kind = match subtype {
        "error_max_turns" | "error_max_budget_usd" => FailureKind::OwnLimit,
        "error_during_execution" if told.kind == FailureKind::Other => FailureKind::Interrupted,
        _ => told.kind,
    };
    Some(Failure { kind, ..told })
}

fn message(line: &JsonValue<'_>) -> String {
    if let Some(text) = line["result"].owned() {
        return text;
    }
    if let Some(text) = line["error"]["message"].owned() {
        return text;
    }
    let errors = line["errors"].list().iter().filter_map(JsonValue::text);
    let plain: Vec<&str> = errors
        .filter(|error| !error.starts_with("[ede_diagnostic]"))
        .collect();
    match (plain.is_empty(), line["subtype"].text()) {
        (false, _) => plain.join("\n"),
        (true, Some(subtype)) => subtype.replace('_', " "),
        (true, None) => "the result reports neither success nor error".to_owned(),
    }
}

/// By model where told: that counts side calls and agents of the agent too.
fn usage(line: &JsonValue<'_>) -> Option<Usage> {
    let own = line["usage"].is_object().then(|| tokens(&line["usage"]));
    let models = line["modelUsage"].entries().iter();
    let all = models.fold(Usage::default(), |sum, (_, of)| sum.plus(&tokens(of)));
    let more = all.total() >= own.and_then(|own| own.total());
    Some(all).filter(|_| more && !all.is_unknown()).or(own)
}
