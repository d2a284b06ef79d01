//! Claude's smaller events, each told by itself.

use std::time::Duration;

use jiff::Timestamp;

use crate::agent::dialect::Out;
use crate::agent::failure::failure;
use crate::agent::json::JsonValue;
use crate::agent::{AgentEvent, Failure, FailureKind, ToolOutcome, Usage, UsageScope};
use crate::provider_limit::{LimitKind, ReportedLimit};

/// The blocks of a message's content.
pub(super) fn blocks<'j, 'a>(
    message: &'j JsonValue<'a>,
) -> impl Iterator<Item = &'j JsonValue<'a>> {
    let content = message["content"].list().iter();
    content.filter(|block| block.is_object())
}

pub(super) fn step_usage(usage: Usage, out: &mut Out<'_>) {
    if !usage.is_unknown() {
        out.push(AgentEvent::Usage {
            scope: UsageScope::Step,
            usage,
            cost: None,
        });
    }
}

pub(super) fn think(text: &JsonValue<'_>, out: &mut Out<'_>) {
    if let Some(text) = text.owned() {
        out.push(AgentEvent::Thinking { text });
    }
}

pub(super) fn subagent(text: &JsonValue<'_>, out: &mut Out<'_>) {
    if let Some(text) = text.owned() {
        out.push(AgentEvent::Subagent { text });
    }
}

/// Words that claude puts in the model's mouth: an error, or a remark.
pub(super) fn synthetic(line: &JsonValue<'_>, out: &mut Out<'_>) {
    let words: Vec<&str> = blocks(&line["message"])
        .filter_map(|block| block["text"].text())
        .collect();
    let message = words.join("\n");
    let event = match line["error"].text() {
        None if !message.starts_with("API Error") => AgentEvent::Warning { message },
        tag => AgentEvent::Failed(match failure(&message, None) {
            told if told.kind == FailureKind::Other => Failure {
                kind: failure(tag.unwrap_or_default(), None).kind,
                ..told
            },
            told => told,
        }),
    };
    out.push(event);
}

pub(super) fn answer(block: &JsonValue<'_>, out: &mut Out<'_>) {
    let failed = block["is_error"].flag() == Some(true);
    let preview = block["content"].preview();
    let exit = preview
        .strip_prefix("Exit code ")
        .filter(|_| failed)
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    out.push(AgentEvent::ToolResult {
        id: block["tool_use_id"].or_empty().to_owned(),
        outcome: ToolOutcome::of(exit, Some(!failed)),
        duration: None,
        preview,
    });
}

pub(super) fn retry(line: &JsonValue<'_>) -> AgentEvent {
    let why = match (line["error_status"].count(), line["error"].text()) {
        (Some(status), Some(error)) => format!("{status} {error}"),
        (Some(status), None) => status.to_string(),
        (None, error) => error.unwrap_or("unknown").to_owned(),
    };
    AgentEvent::Retry {
        attempt: line["attempt"].small(),
        max: line["max_retries"].small(),
        after: line["retry_delay_ms"].count().map(Duration::from_millis),
        why,
    }
}

/// It says why on standard error alone.
pub(super) fn qwens_retry(data: &JsonValue<'_>) -> AgentEvent {
    AgentEvent::Retry {
        attempt: data["attempt"].small(),
        max: data["maxRetries"].small(),
        after: data["delayMs"].count().map(Duration::from_millis),
        why: String::new(),
    }
}

pub(super) fn rate_limit(info: &JsonValue<'_>, out: &mut Out<'_>) {
    let window = info["rateLimitType"].text().unwrap_or("usage");
    let window = window.replace('_', " ");
    let resets_at = info["resetsAt"].int();
    let until = resets_at.and_then(|at| Timestamp::from_second(at).ok());
    let told = |words: String| ReportedLimit {
        kind: LimitKind::Usage,
        until,
        words,
    };
    match info["status"].or_empty() {
        // With paid overage the requests go on.
        "rejected" if info["isUsingOverage"].flag() != Some(true) => out.push(AgentEvent::Limit {
            told: told(format!("{window} limit reached")),
        }),
        "allowed_warning" => out.push(AgentEvent::LimitWarning {
            told: told(format!("{window} limit is near")),
            used_percent: info["utilization"]
                .number()
                .map(|used| (used * 100.0).clamp(0.0, 255.0) as u8),
        }),
        _ => {}
    }
}
