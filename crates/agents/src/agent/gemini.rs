//! Gemini's stream-json. The prompt is echoed in it, and the model's words come in pieces.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::dialect::{Dialect, Out, values};
use super::failure::failure;
use super::lenient::{Flag, Num, Obj, Preview, Str};
use super::tool::{self, ToolInput};
use super::{AgentEvent, Denial, Failure, FailureKind, Piece, RunResult, ToolOutcome, Usage};

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    timestamp: Str<'a>,
    #[serde(borrow)]
    session_id: Str<'a>,
    #[serde(borrow)]
    model: Str<'a>,
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Str<'a>,
    delta: Flag,
    #[serde(borrow)]
    tool_name: Str<'a>,
    #[serde(borrow)]
    tool_id: Str<'a>,
    #[serde(borrow)]
    parameters: Obj<ToolInput<'a>>,
    #[serde(borrow)]
    status: Str<'a>,
    output: Preview,
    #[serde(borrow)]
    error: Obj<GeminiMessage<'a>>,
    #[serde(borrow)]
    severity: Str<'a>,
    #[serde(borrow)]
    message: Str<'a>,
    stats: Obj<Stats>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiMessage<'a> {
    #[serde(borrow)]
    message: Str<'a>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Stats {
    total_tokens: Num,
    input_tokens: Num,
    output_tokens: Num,
    cached: Num,
    input: Num,
}

impl Stats {
    /// `input_tokens` counts what came from a cache, `output_tokens` no thoughts: those are
    /// what is missing to the total.
    fn usage(self) -> Usage {
        let cache_read = self.cached.count();
        let all = self.input_tokens.count();
        let fresh = || all.map(|all| all.saturating_sub(cache_read.unwrap_or(0)));
        let said = self.output_tokens.count();
        let thought = self
            .total_tokens
            .count()
            .and_then(|total| total.checked_sub(all?.checked_add(said?)?))
            .filter(|thought| *thought > 0);
        Usage {
            input: self.input.count().or_else(fresh),
            output: said.map(|said| said + thought.unwrap_or(0)),
            cache_read,
            cache_write: None,
            reasoning: thought,
        }
    }
}

struct GeminiCall {
    id: String,
    name: String,
    rule: String,
    began: Option<Timestamp>,
}

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct Gemini {
    message: u32,
    /// Text came for the present message.
    open: bool,
    calls: VecDeque<GeminiCall>,
}

impl Dialect for Gemini {
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error> {
        for line in values::<GeminiLine<'_>>(json)? {
            self.take(&line, out);
        }
        Ok(())
    }
}

impl Gemini {
    fn take(&mut self, line: &GeminiLine<'_>, out: &mut Out<'_>) {
        match line.kind.or_empty() {
            "init" => out.push(AgentEvent::Session {
                id: line.session_id.owned(),
                model: line.model.owned(),
                version: None,
            }),
            "message" if line.role.is("assistant") => self.say(line, out),
            "message" if line.role.is("user") => self.close(),
            "tool_use" => self.call(line, out),
            "tool_result" => self.answer(line, out),
            "error" => out.push(told(line)),
            "result" => out.push(AgentEvent::Result(result(line))),
            "message" => out.unknown(&format!("message/{}", line.role.or_empty())),
            kind => out.unknown(kind),
        }
    }

    /// A tool call or a word of the user ends the message that is being written.
    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            self.message = self.message.saturating_add(1);
        }
    }

    fn say(&mut self, line: &GeminiLine<'_>, out: &mut Out<'_>) {
        let delta = line.delta.0 == Some(true);
        if !delta {
            self.close();
        }
        out.push(AgentEvent::Text {
            message: self.message,
            piece: if delta { Piece::Delta } else { Piece::Block },
            text: line.content.or_empty().to_owned(),
        });
        self.open = true;
        if !delta {
            self.close();
        }
    }

    fn call(&mut self, line: &GeminiLine<'_>, out: &mut Out<'_>) {
        self.close();
        let name = line.tool_name.or_empty();
        let input = line.parameters.0.clone().unwrap_or_default();
        let id = line.tool_id.or_empty().to_owned();
        self.calls.push_back(GeminiCall {
            id: id.clone(),
            name: name.to_owned(),
            rule: tool::rule(name, &input),
            began: time(&line.timestamp),
        });
        if self.calls.len() > 64 {
            self.calls.pop_front();
        }
        out.push(AgentEvent::ToolCall {
            id,
            name: name.to_owned(),
            summary: tool::summary(name, &input, None),
        });
    }

    fn answer(&mut self, line: &GeminiLine<'_>, out: &mut Out<'_>) {
        self.close();
        let id = line.tool_id.or_empty().to_owned();
        let call = self.calls.iter().position(|call| call.id == id);
        let call = call.and_then(|at| self.calls.remove(at));
        let error = line
            .error
            .0
            .as_ref()
            .map_or("", |error| error.message.or_empty());
        let denied = error.contains("denied by policy") || error.contains("Tool execution denied");
        if let (true, Some(call)) = (denied, &call) {
            out.push(AgentEvent::Denied(Denial {
                tool: call.name.clone(),
                rule: call.rule.clone(),
            }));
        }
        let exit = line.output.0.strip_prefix("Command exited with code: ");
        let exit = exit.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        out.push(AgentEvent::ToolResult {
            id,
            outcome: ToolOutcome::of(exit, Some(!line.status.is("error"))),
            duration: call.and_then(|call| between(call.began?, time(&line.timestamp)?)),
            preview: if line.output.0.is_empty() {
                tool::one_line(error, 400)
            } else {
                line.output.0.clone()
            },
        });
    }
}

fn time(text: &Str<'_>) -> Option<Timestamp> {
    text.as_deref()?.parse().ok()
}

fn between(from: Timestamp, to: Timestamp) -> Option<Duration> {
    Duration::try_from(to.duration_since(from)).ok()
}

fn told(line: &GeminiLine<'_>) -> AgentEvent {
    let message = line.message.or_empty();
    if line.severity.is("warning") {
        let message = message.to_owned();
        return AgentEvent::Warning { message };
    }
    AgentEvent::Failed(failure(message, None))
}

/// The process may exit with 0 all the same.
fn result(line: &GeminiLine<'_>) -> RunResult {
    let told = line
        .error
        .0
        .as_ref()
        .map_or("", |error| error.message.or_empty());
    let error = match line.status.or_empty() {
        "success" => None,
        _ if told.is_empty() => Some(Failure {
            kind: FailureKind::Other,
            message: String::new(),
        }),
        _ => Some(failure(told, None)),
    };
    RunResult {
        error,
        usage: line.stats.0.map(Stats::usage),
        ..RunResult::default()
    }
}

#[cfg(test)]
mod tests;
