//! JSON of any shape, read by the field paths of a profile.

mod event;
mod map;
mod path;

use std::time::Duration;

use jiff::Timestamp;

use self::event::{JsonlEvent, instant, is_good};
pub use self::map::{
    ErrorRule, EventRule, Framing, JsonlMap, LimitRule, ResultRule, RetryRule, Rules, SessionRule,
    TextRule, ToolResultRule, ToolRule, UsageRule,
};
pub use self::path::PathError;
use super::dialect::{Dialect, JsonLines, Out, StreamParser, read_json};
use super::failure::failure;
use super::json::{JsonValue, head};
use super::lines::{Line, StreamLines};
use super::recent::Recent;
use super::{
    AgentEvent, Denial, Failure, FailureKind, MicroUsd, Piece, RunResult, ToolOutcome, Trouble,
    Usage, UsageScope, tool,
};
use crate::provider_limit::{self, LimitKind, ReportedLimit};

/// The scope of tokens that are told as a part of the result.
const IN_RESULT: &str = "result";

/// The reader of one value by field paths.
pub(super) struct JsonlParser {
    map: JsonlMap,
    voice: MessageInProgress,
    calls: Recent<OpenCall>,
}

/// A tool call that was not answered yet.
struct OpenCall {
    id: String,
    denial: Denial,
    began: Option<Timestamp>,
}

impl JsonlParser {
    pub fn boxed(map: &JsonlMap) -> Result<Box<dyn StreamParser>, PathError> {
        map.check()?;
        let parser = Self {
            map: map.clone(),
            voice: MessageInProgress::default(),
            calls: Recent::default(),
        };
        Ok(match map.framing {
            Framing::Lines => Box::new(JsonLines::new(parser)),
            Framing::Document => Box::new(Document {
                parser,
                held: StreamLines::default(),
                trouble: Trouble::default(),
            }),
        })
    }
}

impl Dialect for JsonlParser {
    const MANY_OBJECTS: bool = false;

    fn take(&mut self, value: &JsonValue<'_>, out: &mut Out<'_>) {
        let map = &self.map;
        let event = JsonlEvent::new(map, value);
        let before = out.events.len();
        begins(map, &event, out);
        self.voice.tell(map, &event, out);
        let words = out.events.len();
        tool_calls(&mut self.calls, map, &event, out);
        tool_results(&mut self.calls, map, &event, out);
        if out.events.len() > words || event.matching(&map.other).next().is_some() {
            self.voice.end();
        }
        accounts(map, &event, out);
        ends(map, &event, out);
        if out.events.len() == before && !event.is_known(map) {
            out.unknown(event.kind.as_deref().unwrap_or("without a kind"));
        }
    }
}

/// The message that is being told.
#[derive(Default)]
struct MessageInProgress {
    message: Option<String>,
    number: Option<u32>,
    /// So many bytes of it came in pieces.
    pieces: usize,
}

impl MessageInProgress {
    fn tell(&mut self, map: &JsonlMap, event: &JsonlEvent<'_>, out: &mut Out<'_>) {
        for (rules, piece) in [(&map.delta, Piece::Delta), (&map.text, Piece::Block)] {
            for rule in event.matching(rules) {
                if let Some(text) = event.text(&rule.path) {
                    self.say(event.text(&rule.message), piece, text, out);
                }
            }
        }
    }

    /// What is said after this is another message.
    fn end(&mut self) {
        (self.message, self.pieces) = (None, 0);
    }

    /// A message told in pieces may come again in whole: by its id it is known.
    fn say(&mut self, id: Option<String>, piece: Piece, text: String, out: &mut Out<'_>) {
        let same = match (&id, piece) {
            (Some(_), _) => id == self.message,
            (None, Piece::Block) => false,
            (None, _) => self.pieces > 0,
        };
        if !same {
            self.message = id;
            self.number = Some(self.number.map_or(0, |number| number + 1));
            self.pieces = 0;
        }
        if piece == Piece::Block && same && self.pieces == text.len() {
            self.pieces = 0;
            return;
        }
        self.pieces = if piece == Piece::Delta {
            self.pieces + text.len()
        } else {
            0
        };
        let message = self.number.unwrap_or(0);
        out.push(AgentEvent::Text {
            message,
            piece,
            text,
        });
    }
}

fn begins(map: &JsonlMap, event: &JsonlEvent<'_>, out: &mut Out<'_>) {
    for rule in event.matching(&map.session) {
        let [id, model, version] =
            [&rule.id, &rule.model, &rule.version].map(|path| event.text(path));
        if id.is_some() || model.is_some() || version.is_some() {
            out.push(AgentEvent::Session { id, model, version });
        }
    }
    if event.matching(&map.step).next().is_some() {
        out.push(AgentEvent::Step);
    }
    for rule in event.matching(&map.thinking) {
        if let Some(text) = event.text(&rule.path) {
            out.push(AgentEvent::Thinking { text });
        }
    }
}

fn tool_calls(
    calls: &mut Recent<OpenCall>,
    map: &JsonlMap,
    event: &JsonlEvent<'_>,
    out: &mut Out<'_>,
) {
    for rule in event.matching(&map.tool) {
        let Some(name) = event.text(&rule.name) else {
            continue;
        };
        let id = event.text(&rule.id).unwrap_or_default();
        let input = event.object(&rule.input);
        let summary = match event.text(&rule.input) {
            Some(line) => tool::one_line(&format!("{name} {line}"), 160),
            None => tool::summary(&name, input, None),
        };
        calls.add(OpenCall {
            id: id.clone(),
            denial: Denial {
                tool: name.clone(),
                rule: tool::rule(&name, input),
            },
            began: instant(&event.plain(&rule.at)),
        });
        out.push(AgentEvent::ToolCall { id, name, summary });
    }
}

fn tool_results(
    calls: &mut Recent<OpenCall>,
    map: &JsonlMap,
    event: &JsonlEvent<'_>,
    out: &mut Out<'_>,
) {
    for rule in event.matching(&map.tool_result) {
        let id = event.text(&rule.id).unwrap_or_default();
        let output = event.plain(&rule.output);
        let error = event.text(&rule.error).unwrap_or_default();
        let call = calls.take(|call| call.id == id);
        let began = call.as_ref().and_then(|call| call.began);
        let is_denied = rule.denied.0.iter().any(|words| error.contains(words));
        if let Some(call) = call.filter(|_| is_denied) {
            out.push(AgentEvent::Denied(call.denial));
        }
        let told = || {
            let rest = output.text()?.strip_prefix(rule.exit_after.as_deref()?)?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[..digits].parse().ok()
        };
        let ok = is_good(&event.plain(&rule.ok))
            .or_else(|| is_good(&event.plain(&rule.failed)).map(|failed| !failed));
        let exit = event.number(&rule.exit).map(|code| code as i64);
        let preview = match event::text(output.clone()) {
            Some(output) => head(&output, 400).to_owned(),
            None => Some(event.preview(&rule.output))
                .filter(|preview| !preview.is_empty())
                .unwrap_or_else(|| tool::one_line(&error, 400)),
        };
        out.push(AgentEvent::ToolResult {
            id,
            outcome: ToolOutcome::of(exit.or_else(told), ok),
            duration: began.and_then(|began| {
                let end = instant(&event.plain(&rule.at))?;
                Duration::try_from(end.duration_since(began)).ok()
            }),
            preview,
        });
    }
}

fn accounts(map: &JsonlMap, event: &JsonlEvent<'_>, out: &mut Out<'_>) {
    for rule in event.matching(&map.usage) {
        let (usage, cost) = (usage(event, rule), cost(event, rule));
        let scope = match rule.scope.as_deref() {
            Some(IN_RESULT) => continue,
            Some("run") => UsageScope::Run,
            _ => UsageScope::Step,
        };
        if !usage.is_unknown() || cost.is_some() {
            out.push(AgentEvent::Usage { scope, usage, cost });
        }
    }
    for rule in event.matching(&map.retry) {
        let small = |path| event.count(path).and_then(|n| u32::try_from(n).ok());
        out.push(AgentEvent::Retry {
            attempt: small(&rule.attempt),
            max: small(&rule.max),
            after: event.count(&rule.after_ms).map(Duration::from_millis),
            why: event.text(&rule.why).unwrap_or_default(),
        });
    }
    for rule in event.matching(&map.limit) {
        let (until, words) = (event.plain(&rule.until), event.text(&rule.words));
        if until != JsonValue::Null || words.is_some() {
            out.push(AgentEvent::Limit {
                told: limit(instant(&until), words),
            });
        }
    }
}

fn cost(event: &JsonlEvent<'_>, rule: &UsageRule) -> Option<MicroUsd> {
    event.number(&rule.cost).and_then(MicroUsd::from_usd)
}

fn usage(event: &JsonlEvent<'_>, rule: &UsageRule) -> Usage {
    let cache_read = event.count(&rule.cache_read);
    let (all, output) = (event.count(&rule.input_all), event.count(&rule.output));
    let apart = event
        .count(&rule.total)
        .and_then(|total| total.checked_sub(all? + output?))
        .filter(|apart| *apart > 0);
    Usage {
        input: event
            .count(&rule.input)
            .or_else(|| Some(all?.saturating_sub(cache_read.unwrap_or(0)))),
        output: output.map(|output| output + apart.unwrap_or(0)),
        cache_read,
        cache_write: event.count(&rule.cache_write),
        reasoning: event.count(&rule.reasoning).or(apart),
    }
}

fn limit(until: Option<Timestamp>, words: Option<String>) -> ReportedLimit {
    let words = words.unwrap_or_else(|| "limit reached".to_owned());
    ReportedLimit {
        kind: provider_limit::kind_in_error(&words).unwrap_or(LimitKind::Usage),
        until,
        words: provider_limit::shorten(&words),
    }
}

fn ends(map: &JsonlMap, event: &JsonlEvent<'_>, out: &mut Out<'_>) {
    for rule in event.matching(&map.error) {
        if let Some(message) = event.text(&rule.message) {
            let status = event.count(&rule.status);
            let status = status.and_then(|status| u16::try_from(status).ok());
            out.push(AgentEvent::Failed(failure(&message, status)));
        }
    }
    for rule in event.matching(&map.warning) {
        if let Some(message) = event.text(&rule.message) {
            out.push(AgentEvent::Warning { message });
        }
    }
    for rule in event.results(map) {
        let totals = event
            .matching(&map.usage)
            .find(|usage| usage.scope.as_deref() == Some(IN_RESULT));
        out.push(AgentEvent::Result(RunResult {
            error: error(event, rule),
            text: event.text(&rule.text),
            turns: event.count(&rule.turns),
            usage: totals
                .map(|rule| usage(event, rule))
                .filter(|usage| !usage.is_unknown()),
            cost: totals.and_then(|rule| cost(event, rule)),
        }));
    }
}

fn error(event: &JsonlEvent<'_>, rule: &ResultRule) -> Option<Failure> {
    let is_bad = rule.outcome.as_deref() == Some("failed")
        || event.plain(&rule.failed).flag() == Some(true)
        || is_good(&event.plain(&rule.ok)) == Some(false);
    match event.text(&rule.error) {
        Some(message) => Some(failure(&message, None)),
        None => is_bad.then(|| Failure {
            kind: FailureKind::Other,
            message: String::new(),
        }),
    }
}

/// Output that is one JSON value in all, maybe behind lines that are none.
struct Document {
    parser: JsonlParser,
    held: StreamLines,
    trouble: Trouble,
}

impl StreamParser for Document {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<AgentEvent>) {
        self.held.hold(bytes);
    }

    fn finish(&mut self, events: &mut Vec<AgentEvent>) {
        let Self {
            parser,
            held,
            trouble,
        } = self;
        held.finish(|whole| match whole {
            Line::Cut => trouble.cut_lines += 1,
            Line::Whole(text) => match document_in(text) {
                Some(json) => read_json(parser, json, &mut Out { events, trouble }),
                None => trouble.noise_lines += u64::from(!text.trim_ascii().is_empty()),
            },
        });
    }

    fn trouble(&self) -> &Trouble {
        &self.trouble
    }
}

/// From the first line on that begins like JSON.
fn document_in(text: &[u8]) -> Option<&[u8]> {
    let begins =
        |at: &usize| matches!(text[*at], b'{' | b'[') && (*at == 0 || text[*at - 1] == b'\n');
    let start = (0..text.len()).find(begins)?;
    Some(text[start..].trim_ascii())
}

#[cfg(test)]
mod tests;
