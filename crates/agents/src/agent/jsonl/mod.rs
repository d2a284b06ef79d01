//! JSON of any shape, read by the field paths of a profile.

mod compiled;
mod map;
mod path;

use std::time::Duration;

use jiff::Timestamp;

use self::compiled::{Compiled, FoundField, Matched};
pub use self::map::{
    ErrorRule, Framing, JsonlMap, LimitRule, ResultRule, RetryRule, Rule, Rules, SessionRule,
    StepRule, TextRule, ToolResultRule, ToolRule, UsageRule, When,
};
pub use self::path::PathError;
use super::dialect::{Dialect, JsonLines, Out, StreamParser, read_json};
use super::failure::failure;
use super::lines::LONGEST;
use super::{
    AgentEvent, Failure, FailureKind, MicroUsd, Piece, RunResult, ToolOutcome, Trouble, Usage,
    UsageScope, tool,
};
use crate::provider_limit::{self, LimitKind, LimitTold};

/// The reader of one value by field paths.
pub(super) struct JsonlParser {
    map: Compiled,
    voice: MessageInProgress,
}

/// The message that is being told.
#[derive(Default)]
struct MessageInProgress {
    message: Option<String>,
    number: Option<u32>,
    /// So many bytes of it came in pieces.
    pieces: usize,
}

impl JsonlParser {
    pub fn boxed(map: &JsonlMap) -> Result<Box<dyn StreamParser>, PathError> {
        let parser = Self {
            map: Compiled::new(map)?,
            voice: MessageInProgress::default(),
        };
        Ok(match map.framing {
            Framing::Lines => Box::new(JsonLines::new(parser)),
            Framing::Document => Box::new(Document {
                parser,
                held: Vec::new(),
                over: false,
                trouble: Trouble::default(),
            }),
        })
    }
}

impl Dialect for JsonlParser {
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error> {
        let values = self.map.paths.read(json)?;
        let found = FoundField::new(&self.map, &values);
        let before = out.events.len();
        self.voice.tell(&found, out);
        if out.events.len() == before && !found.is_known() {
            out.unknown(found.kind().unwrap_or("without a kind"));
        }
        Ok(())
    }
}

impl MessageInProgress {
    fn tell(&mut self, found: &FoundField<'_>, out: &mut Out<'_>) {
        for rule in found.matching(&found.map.session) {
            let [id, model, version] = rule.texts(["id", "model", "version"]);
            if id.is_some() || model.is_some() || version.is_some() {
                out.push(AgentEvent::Session { id, model, version });
            }
        }
        if found.matching(&found.map.step).next().is_some() {
            out.push(AgentEvent::Step);
        }
        for rule in found.matching(&found.map.thinking) {
            if let Some(text) = rule.text("path") {
                out.push(AgentEvent::Thinking { text });
            }
        }
        for rule in found.matching(&found.map.delta) {
            if let Some(text) = rule.text("path") {
                self.say(rule.text("message"), Piece::Delta, text, out);
            }
        }
        for rule in found.matching(&found.map.text) {
            if let Some(text) = rule.text("path") {
                self.say(rule.text("message"), Piece::Block, text, out);
            }
        }
        let before = out.events.len();
        tools(found, out);
        if out.events.len() > before {
            // What is said after a tool call is another message.
            (self.message, self.pieces) = (None, 0);
        }
        accounts(found, out);
        ends(found, out);
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

fn tools(found: &FoundField<'_>, out: &mut Out<'_>) {
    for rule in found.matching(&found.map.tool) {
        let Some(name) = rule.text("name") else {
            continue;
        };
        let summary = match rule.text("input") {
            Some(line) if line.starts_with("$ ") => line,
            Some(line) => tool::one_line(&format!("{name} {line}"), 160),
            None => name.clone(),
        };
        let id = rule.text("id").unwrap_or_default();
        out.push(AgentEvent::ToolCall { id, name, summary });
    }
    for rule in found.matching(&found.map.tool_result) {
        let ok = rule.get("ok").map(|value| value.is_good());
        let outcome = ToolOutcome::of(rule.number("exit").map(|code| code as i64), ok);
        out.push(AgentEvent::ToolResult {
            id: rule.text("id").unwrap_or_default(),
            outcome,
            duration: None,
            preview: super::lenient::head(&rule.text("output").unwrap_or_default(), 400).to_owned(),
        });
    }
}

fn accounts(found: &FoundField<'_>, out: &mut Out<'_>) {
    for rule in found.matching(&found.map.usage) {
        let usage = usage(&rule);
        let cost = rule.number("cost").and_then(MicroUsd::from_usd);
        let scope = if rule.run_scope() {
            UsageScope::Run
        } else {
            UsageScope::Step
        };
        if !usage.is_unknown() || cost.is_some() {
            out.push(AgentEvent::Usage { scope, usage, cost });
        }
    }
    for rule in found.matching(&found.map.retry) {
        let small = |name| rule.count(name).and_then(|n| u32::try_from(n).ok());
        out.push(AgentEvent::Retry {
            attempt: small("attempt"),
            max: small("max"),
            after: rule.count("after_ms").map(Duration::from_millis),
            why: rule.text("why").unwrap_or_default(),
        });
    }
    for rule in found.matching(&found.map.limit) {
        let (until, words) = (rule.get("until"), rule.text("words"));
        if until.is_some() || words.is_some() {
            out.push(AgentEvent::Limit {
                told: limit(until.and_then(|v| v.instant()), words),
            });
        }
    }
}

fn usage(rule: &Matched<'_>) -> Usage {
    let cache_read = rule.count("cache_read");
    let (all, output) = (rule.count("input_all"), rule.count("output"));
    let apart = rule
        .count("total")
        .and_then(|total| total.checked_sub(all?.checked_add(output?)?));
    Usage {
        input: rule
            .count("input")
            .or_else(|| Some(all?.saturating_sub(cache_read.unwrap_or(0)))),
        output: output.map(|output| output.saturating_add(apart.unwrap_or(0))),
        cache_read,
        cache_write: rule.count("cache_write"),
        reasoning: rule.count("reasoning").or(apart),
    }
}

fn limit(until: Option<Timestamp>, words: Option<String>) -> LimitTold {
    let words = words.unwrap_or_else(|| "limit reached".to_owned());
    LimitTold {
        kind: provider_limit::kind_in_error(&words).unwrap_or(LimitKind::Usage),
        until,
        words: provider_limit::shorten(&words),
    }
}

fn ends(found: &FoundField<'_>, out: &mut Out<'_>) {
    for rule in found.matching(&found.map.error) {
        if let Some(message) = rule.text("message") {
            let status = rule
                .count("status")
                .and_then(|status| u16::try_from(status).ok());
            out.push(AgentEvent::Failed(failure(&message, status)));
        }
    }
    for rule in found.matching(&found.map.result) {
        if !rule.says_anything() {
            continue;
        }
        let error = rule.text("error");
        let bad = rule.get("failed").is_some_and(|value| value.is_true())
            || rule.get("ok").is_some_and(|value| !value.is_good())
            || error.is_some();
        out.push(AgentEvent::Result(RunResult {
            error: bad.then(|| match error {
                Some(message) => failure(&message, None),
                None => Failure {
                    kind: FailureKind::Other,
                    message: String::new(),
                },
            }),
            text: rule.text("text"),
            turns: rule.count("turns"),
            ..RunResult::default()
        }));
    }
}

/// Output that is one JSON value in all, maybe behind lines that are none.
struct Document {
    parser: JsonlParser,
    held: Vec<u8>,
    over: bool,
    trouble: Trouble,
}

impl StreamParser for Document {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<AgentEvent>) {
        if self.over || self.held.len() + bytes.len() > LONGEST {
            self.over = true;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self, out: &mut Vec<AgentEvent>) {
        self.trouble.cut_lines += u64::from(std::mem::take(&mut self.over));
        let held = std::mem::take(&mut self.held);
        let begins =
            |at: &usize| matches!(held[*at], b'{' | b'[') && (*at == 0 || held[*at - 1] == b'\n');
        let json = match (0..held.len()).find(begins) {
            Some(at) => &held[at..],
            None if held.trim_ascii().is_empty() => return,
            None => {
                self.trouble.noise_lines += 1;
                return;
            }
        };
        let Self {
            parser, trouble, ..
        } = self;
        read_json(
            parser,
            json.trim_ascii(),
            &mut Out {
                events: out,
                trouble,
            },
        );
    }

    fn trouble(&self) -> &Trouble {
        &self.trouble
    }
}

#[cfg(test)]
mod tests;
