//! Claude's smaller events, each told by itself.

use std::time::Duration;

use jiff::Timestamp;

use super::line::{Block, ClaudeLine, ClaudeMessage, RateLimit};
use crate::agent::dialect::Out;
use crate::agent::failure::failure;
use crate::agent::lenient::{Num, Str};
use crate::agent::{AgentEvent, Failure, FailureKind, ToolOutcome, Usage, UsageScope};
use crate::provider_limit::{LimitKind, LimitTold};

pub(super) fn step_usage(usage: Usage, out: &mut Out<'_>) {
    if !usage.is_unknown() {
        out.push(AgentEvent::Usage {
            scope: UsageScope::Step,
            usage,
            cost: None,
        });
    }
}

pub(super) fn think(text: &Str<'_>, out: &mut Out<'_>) {
    if let Some(text) = text.owned() {
        out.push(AgentEvent::Thinking { text });
    }
}

pub(super) fn subagent(text: &Str<'_>, out: &mut Out<'_>) {
    if let Some(text) = text.owned() {
        out.push(AgentEvent::Subagent { text });
    }
}

/// Words that claude puts in the model's mouth: an error, or a remark.
pub(super) fn synthetic(line: &ClaudeLine<'_>, message: &ClaudeMessage<'_>, out: &mut Out<'_>) {
    let blocks = message
        .content
        .0
        .iter()
        .filter_map(|block| block.0.as_ref());
    let words: Vec<&str> = blocks.filter_map(|block| block.text.as_deref()).collect();
    let message = words.join("\n");
    let event = match line.error.as_deref() {
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

pub(super) fn answer(block: &Block<'_>, out: &mut Out<'_>) {
    let failed = block.is_error.0 == Some(true);
    let preview = block.content.0.clone();
    let exit = preview
        .strip_prefix("Exit code ")
        .filter(|_| failed)
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    out.push(AgentEvent::ToolResult {
        id: block.tool_use_id.or_empty().to_owned(),
        outcome: ToolOutcome::of(exit, Some(!failed)),
        duration: None,
        preview,
    });
}

pub(super) fn retry(line: &ClaudeLine<'_>) -> AgentEvent {
    let number = |n: Num| n.count().and_then(|n| u32::try_from(n).ok());
    let why = match (line.error_status.count(), line.error.as_deref()) {
        (Some(status), Some(error)) => format!("{status} {error}"),
        (Some(status), None) => status.to_string(),
        (None, error) => error.unwrap_or("unknown").to_owned(),
    };
    AgentEvent::Retry {
        attempt: number(line.attempt),
        max: number(line.max_retries),
        after: line.retry_delay_ms.count().map(Duration::from_millis),
        why,
    }
}

pub(super) fn rate_limit(info: &RateLimit<'_>, out: &mut Out<'_>) {
    let window = info
        .rate_limit_type
        .as_deref()
        .unwrap_or("usage")
        .replace('_', " ");
    let until = info
        .resets_at
        .int()
        .and_then(|at| Timestamp::from_second(at).ok());
    let told = |words: String| LimitTold {
        kind: LimitKind::Usage,
        until,
        words,
    };
    match info.status.or_empty() {
        // With paid overage the requests go on.
        "rejected" if info.is_using_overage.0 != Some(true) => out.push(AgentEvent::Limit {
            told: told(format!("{window} limit reached")),
        }),
        "allowed_warning" => out.push(AgentEvent::LimitWarning {
            told: told(format!("{window} limit is near")),
            used_percent: info
                .utilization
                .0
                .map(|used| (used * 100.0).clamp(0.0, 255.0) as u8),
        }),
        _ => {}
    }
}
