//! Opencode's `run --format json`. It has no final event: a step that ends with `stop` is
//! one, unless another step follows.

use std::time::Duration;

use super::dialect::{Dialect, Out};
use super::failure::failure;
use super::json::JsonValue;
use super::{
    AgentEvent, Denial, Failure, FailureKind, MicroUsd, Piece, RunResult, ToolOutcome, Usage,
    UsageScope, tool,
};
use crate::provider_limit::{self, LimitKind, ReportedLimit};
use jiff::Timestamp;

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct OpenCode {
    session: Option<String>,
    id: Option<String>,
    message: Option<u32>,
}

impl Dialect for OpenCode {
    fn take(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        self.begin(line, out);
        let part = &line["part"];
        match (line["type"].or_empty(), part.is_object()) {
            ("step_start", _) => out.push(AgentEvent::Step),
            ("text", true) => self.say(part, out),
            ("reasoning", true) => out.push(AgentEvent::Thinking {
                text: part["text"].or_empty().to_owned(),
            }),
            ("tool_use", true) => tool_use(part, out),
            ("step_finish", true) => step_finish(part, out),
            ("error", _) => failed(line, out),
            (kind, _) => out.unknown(kind),
        }
    }
}

impl OpenCode {
    fn begin(&mut self, line: &JsonValue<'_>, out: &mut Out<'_>) {
        let id = line["sessionID"].owned();
        if id.is_some() && id != self.session {
            self.session.clone_from(&id);
            out.push(AgentEvent::Session {
                id,
                model: None,
                version: None,
            });
        }
    }

    fn say(&mut self, part: &JsonValue<'_>, out: &mut Out<'_>) {
        let id = part["messageID"].text();
        if id.is_none() || id != self.id.as_deref() {
            self.id = part["messageID"].owned();
            self.message = Some(self.message.map_or(0, |number| number + 1));
        }
        out.push(AgentEvent::Text {
            message: self.message.unwrap_or(0),
            piece: Piece::Block,
            text: part["text"].or_empty().to_owned(),
        });
    }
}

/// Opencode counts thoughts beside the output.
fn usage(tokens: &JsonValue<'_>) -> Usage {
    let reasoning = tokens["reasoning"].count();
    let said = tokens["output"].count();
    Usage {
        input: tokens["input"].count(),
        output: said.map(|said| said + reasoning.unwrap_or(0)),
        cache_read: tokens["cache"]["read"].count(),
        cache_write: tokens["cache"]["write"].count(),
        reasoning,
    }
}

/// A tool is told when it has ended: call and result at once.
fn tool_use(part: &JsonValue<'_>, out: &mut Out<'_>) {
    let name = part["tool"].or_empty();
    let id = part["callID"].or_empty();
    let state = &part["state"];
    if !state.is_object() {
        return;
    }
    out.push(AgentEvent::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        summary: tool::summary(name, &state["input"], None),
    });
    let error = state["error"].or_empty();
    if error.contains("rejected permission to use") || error.contains("a rule which prevents you") {
        out.push(AgentEvent::Denied(Denial {
            tool: name.to_owned(),
            rule: tool::rule(name, &state["input"]),
        }));
    }
    let (start, end) = (&state["time"]["start"], &state["time"]["end"]);
    let took = end.count().and_then(|end| end.checked_sub(start.count()?));
    let failed = state["status"].is("error");
    out.push(AgentEvent::ToolResult {
        id: id.to_owned(),
        outcome: ToolOutcome::of(state["metadata"]["exit"].int(), Some(!failed)),
        duration: took.map(Duration::from_millis),
        preview: if failed {
            tool::one_line(error, 400)
        } else {
            state["output"].preview()
        },
    });
}

fn step_finish(part: &JsonValue<'_>, out: &mut Out<'_>) {
    out.push(AgentEvent::Usage {
        scope: UsageScope::Step,
        usage: usage(&part["tokens"]),
        cost: part["cost"].number().and_then(MicroUsd::from_usd),
    });
    let reason = part["reason"].or_empty();
    let message = format!("the step ended with reason \"{reason}\"");
    let error = match reason {
        "stop" => None,
        // An answer cut by its length is no error to opencode.
        "length" => {
            out.push(AgentEvent::Warning { message });
            None
        }
        "content-filter" | "error" => Some(Failure {
            kind: FailureKind::Other,
            message,
        }),
        _ => return,
    };
    out.push(AgentEvent::Result(RunResult {
        error,
        ..RunResult::default()
    }));
}

fn failed(line: &JsonValue<'_>, out: &mut Out<'_>) {
    // Kilo has errors of its own, in words alone.
    if let Some(words) = line["error"].text() {
        return out.push(AgentEvent::Failed(failure(words, None)));
    }
    if !line["error"].is_object() {
        return;
    }
    let (name, data) = (line["error"]["name"].or_empty(), &line["error"]["data"]);
    let message = data["message"].text().unwrap_or(name);
    let mut told = failure(message, data["statusCode"].small());
    if told.kind == FailureKind::Other {
        told.kind = match failure(name, None).kind {
            FailureKind::Other if name == "ProviderAuthError" => {
                FailureKind::Provider(LimitKind::Login)
            }
            FailureKind::Other if data["isRetryable"].flag() == Some(true) => {
                FailureKind::Provider(LimitKind::Overload)
            }
            kind => kind,
        };
    }
    if let FailureKind::Provider(kind @ (LimitKind::Rate | LimitKind::Usage)) = told.kind {
        let words = provider_limit::shorten(&told.message);
        let until = reset(data, line);
        out.push(AgentEvent::Limit {
            told: ReportedLimit { kind, until, words },
        });
    }
    out.push(AgentEvent::Failed(told));
}

/// The provider's headers, else the body of its answer, counted from the event's own time.
fn reset(data: &JsonValue<'_>, line: &JsonValue<'_>) -> Option<Timestamp> {
    let at = Timestamp::from_millisecond(line["timestamp"].int()?).ok()?;
    let headers = data["responseHeaders"].entries().iter();
    let headers = headers.filter_map(|(key, value)| Some((&**key, value.text()?)));
    let utc = jiff::tz::TimeZone::UTC;
    provider_limit::reset_in_headers(headers, at)
        .or_else(|| provider_limit::reset_in(data["responseBody"].or_empty(), at, &utc))
}

#[cfg(test)]
mod tests;
