//! Opencode's `run --format json`. It has no final event: a step that ends with `stop` is
//! one, unless another step follows.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess};

use super::dialect::{Dialect, Out, values};
use super::failure::failure;
use super::lenient::{self, Flag, Lenient, Num, Obj, Preview, Str};
use super::tool::{self, ToolInput};
use super::{
    AgentEvent, Denial, Failure, FailureKind, MicroUsd, Piece, RunResult, ToolOutcome, Usage,
    UsageScope,
};
use crate::provider_limit::{self, LimitKind, LimitTold};

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpencodeLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    timestamp: Num,
    #[serde(borrow, rename = "sessionID")]
    session: Str<'a>,
    #[serde(borrow)]
    part: Obj<OpencodePart<'a>>,
    #[serde(borrow)]
    error: Obj<ErrorTold<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpencodePart<'a> {
    #[serde(borrow, rename = "messageID")]
    message: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    reason: Str<'a>,
    tokens: Obj<OpencodeTokens>,
    cost: Num,
    #[serde(borrow)]
    tool: Str<'a>,
    #[serde(borrow, rename = "callID")]
    call: Str<'a>,
    #[serde(borrow)]
    state: Obj<OpencodeState<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpencodeState<'a> {
    #[serde(borrow)]
    status: Str<'a>,
    #[serde(borrow)]
    input: Obj<ToolInput<'a>>,
    output: Preview,
    #[serde(borrow)]
    error: Str<'a>,
    metadata: Obj<Metadata>,
    time: Obj<OpencodeTimes>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    exit: Num,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OpencodeTimes {
    start: Num,
    end: Num,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OpencodeTokens {
    input: Num,
    output: Num,
    reasoning: Num,
    cache: Obj<Cache>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: Num,
    write: Num,
}

impl OpencodeTokens {
    /// Opencode counts thoughts beside the output.
    fn usage(self) -> Usage {
        let cache = self.cache.0.unwrap_or_default();
        let reasoning = self.reasoning.count();
        Usage {
            input: self.input.count(),
            output: self
                .output
                .count()
                .map(|said| said.saturating_add(reasoning.unwrap_or(0))),
            cache_read: cache.read.count(),
            cache_write: cache.write.count(),
            reasoning,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorTold<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    data: Obj<ErrorData<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorData<'a> {
    #[serde(borrow)]
    message: Str<'a>,
    #[serde(rename = "statusCode")]
    status: Num,
    #[serde(rename = "isRetryable")]
    retryable: Flag,
    #[serde(borrow, rename = "responseHeaders")]
    headers: Headers<'a>,
    #[serde(borrow, rename = "responseBody")]
    body: Str<'a>,
}

#[derive(Default)]
struct Headers<'a>(Vec<(Str<'a>, Str<'a>)>);

impl<'de: 'a, 'a> Lenient<'de> for Headers<'a> {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut headers = Vec::new();
        while let Some(entry) = map.next_entry()? {
            headers.push(entry);
        }
        Ok(Self(headers))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Headers<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        lenient::read(from)
    }
}

/// What has to be remembered from line to line.
#[derive(Default)]
pub(super) struct OpenCode {
    session: Option<String>,
    id: Option<String>,
    message: Option<u32>,
}

impl Dialect for OpenCode {
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error> {
        for line in values::<OpencodeLine<'_>>(json)? {
            self.take(&line, out);
        }
        Ok(())
    }
}

impl OpenCode {
    fn take(&mut self, line: &OpencodeLine<'_>, out: &mut Out<'_>) {
        self.begin(line, out);
        let part = line.part.0.as_ref();
        match (line.kind.or_empty(), part) {
            ("step_start", _) => out.push(AgentEvent::Step),
            ("text", Some(part)) => self.say(part, out),
            ("reasoning", Some(part)) => out.push(AgentEvent::Thinking {
                text: part.text.or_empty().to_owned(),
            }),
            ("tool_use", Some(part)) => tool_use(part, out),
            ("step_finish", Some(part)) => step_finish(part, out),
            ("error", _) => {
                if let Some(error) = &line.error.0 {
                    failed(error, line, out);
                }
            }
            (kind, _) => out.unknown(kind),
        }
    }

    fn begin(&mut self, line: &OpencodeLine<'_>, out: &mut Out<'_>) {
        let id = line.session.owned();
        if id.is_some() && id != self.session {
            self.session.clone_from(&id);
            out.push(AgentEvent::Session {
                id,
                model: None,
                version: None,
            });
        }
    }

    fn say(&mut self, part: &OpencodePart<'_>, out: &mut Out<'_>) {
        let same =
            part.message.as_deref().is_some() && part.message.as_deref() == self.id.as_deref();
        if !same {
            self.id = part.message.owned();
            self.message = Some(self.message.map_or(0, |number| number + 1));
        }
        out.push(AgentEvent::Text {
            message: self.message.unwrap_or(0),
            piece: Piece::Block,
            text: part.text.or_empty().to_owned(),
        });
    }
}

/// A tool is told when it has ended: call and result at once.
fn tool_use(part: &OpencodePart<'_>, out: &mut Out<'_>) {
    let name = part.tool.or_empty();
    let id = part.call.or_empty();
    let Some(state) = &part.state.0 else { return };
    let input = state.input.0.clone().unwrap_or_default();
    out.push(AgentEvent::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        summary: tool::summary(name, &input, None),
    });
    let error = state.error.or_empty();
    if error.contains("rejected permission to use") || error.contains("a rule which prevents you") {
        out.push(AgentEvent::Denied(Denial {
            tool: name.to_owned(),
            rule: tool::rule(name, &input),
        }));
    }
    let exit = state.metadata.0.and_then(|metadata| metadata.exit.int());
    let span = state.time.0.unwrap_or_default();
    let took = span
        .end
        .count()
        .and_then(|end| end.checked_sub(span.start.count()?));
    let failed = state.status.is("error");
    out.push(AgentEvent::ToolResult {
        id: id.to_owned(),
        outcome: ToolOutcome::of(exit, Some(!failed)),
        duration: took.map(Duration::from_millis),
        preview: if failed {
            tool::one_line(error, 400)
        } else {
            state.output.0.clone()
        },
    });
}

fn step_finish(part: &OpencodePart<'_>, out: &mut Out<'_>) {
    out.push(AgentEvent::Usage {
        scope: UsageScope::Step,
        usage: part.tokens.0.unwrap_or_default().usage(),
        cost: part.cost.0.and_then(MicroUsd::from_usd),
    });
    let message = format!("the step ended with reason \"{}\"", part.reason.or_empty());
    let error = match part.reason.or_empty() {
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

fn failed(error: &ErrorTold<'_>, line: &OpencodeLine<'_>, out: &mut Out<'_>) {
    let name = error.name.or_empty();
    let empty = ErrorData::default();
    let data = error.data.0.as_ref().unwrap_or(&empty);
    let status = data
        .status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    let mut told = failure(data.message.as_deref().unwrap_or(name), status);
    if told.kind == FailureKind::Other {
        told.kind = match failure(name, None).kind {
            FailureKind::Other if name == "ProviderAuthError" => {
                FailureKind::Provider(LimitKind::Login)
            }
            FailureKind::Other if data.retryable.0 == Some(true) => {
                FailureKind::Provider(LimitKind::Overload)
            }
            kind => kind,
        };
    }
    if let FailureKind::Provider(kind @ (LimitKind::Rate | LimitKind::Usage)) = told.kind {
        let words = provider_limit::shorten(&told.message);
        let until = reset(data, line);
        out.push(AgentEvent::Limit {
            told: LimitTold { kind, until, words },
        });
    }
    out.push(AgentEvent::Failed(told));
}

/// The provider's headers, else the body of its answer, counted from the event's own time.
fn reset(data: &ErrorData<'_>, line: &OpencodeLine<'_>) -> Option<Timestamp> {
    let at = line
        .timestamp
        .int()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
    let headers = data.headers.0.iter();
    let headers = headers.filter_map(|(key, value)| Some((key.as_deref()?, value.as_deref()?)));
    let utc = jiff::tz::TimeZone::UTC;
    provider_limit::reset_in_headers(headers, at)
        .or_else(|| provider_limit::reset_in(data.body.or_empty(), at, &utc))
}

#[cfg(test)]
mod tests;
