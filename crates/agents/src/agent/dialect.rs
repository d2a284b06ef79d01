//! Push parsers of an agent's output, and what those of JSON lines have in common.

use serde::de::Error as _;

use super::json::{self, JsonValue, head};
use super::lines::{Line, StreamLines};
use super::{AgentEvent, Trouble};

const NOISE_BYTES: usize = 2048;

/// Reads an agent's output as it comes. However the bytes are split, the events are the
/// same; memory is bounded; nothing that an agent prints makes it fail.
pub trait StreamParser: Send {
    /// Takes the next bytes and appends what they say.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<AgentEvent>);
    /// The output has ended; a last line without its newline is read.
    fn finish(&mut self, out: &mut Vec<AgentEvent>);
    /// What could not be read so far.
    fn trouble(&self) -> &Trouble;
}

/// Where a dialect puts what it has understood.
pub(super) struct Out<'a> {
    pub events: &'a mut Vec<AgentEvent>,
    pub trouble: &'a mut Trouble,
}

impl Out<'_> {
    pub fn push(&mut self, event: AgentEvent) {
        self.events.push(event);
    }

    /// An event of a kind that is not known.
    pub fn unknown(&mut self, kind: &str) {
        let kind = head(kind, 80).to_owned();
        self.trouble.unknown(&kind);
        self.events.push(AgentEvent::Unknown { kind });
    }
}

/// One agent's way of writing JSON.
pub(super) trait Dialect: Send {
    /// Whether a line may hold several objects, one behind the other or in a list.
    const MANY_OBJECTS: bool = true;

    /// Reads one value.
    fn take(&mut self, value: &JsonValue<'_>, out: &mut Out<'_>);
}

/// Cuts bytes into lines and gives the ones that are JSON to a dialect.
pub(super) struct JsonLines<D> {
    lines: StreamLines,
    dialect: D,
    trouble: Trouble,
}

impl<D: Dialect> JsonLines<D> {
    pub fn new(dialect: D) -> Self {
        Self {
            lines: StreamLines::default(),
            dialect,
            trouble: Trouble::default(),
        }
    }
}

impl<D: Dialect> StreamParser for JsonLines<D> {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<AgentEvent>) {
        let trouble = &mut self.trouble;
        let mut out = Out { events, trouble };
        self.lines
            .push(bytes, |line| take(&mut self.dialect, line, &mut out));
    }

    fn finish(&mut self, events: &mut Vec<AgentEvent>) {
        let trouble = &mut self.trouble;
        let mut out = Out { events, trouble };
        self.lines
            .finish(|line| take(&mut self.dialect, line, &mut out));
    }

    fn trouble(&self) -> &Trouble {
        &self.trouble
    }
}

fn take(dialect: &mut impl Dialect, line: Line<'_>, out: &mut Out<'_>) {
    let Line::Whole(line) = line else {
        out.trouble.cut_lines += 1;
        return;
    };
    let line = line
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(line)
        .trim_ascii();
    match line.first() {
        None => {}
        Some(b'{' | b'[') => read_json(dialect, line, out),
        Some(_) => {
            out.trouble.noise_lines += 1;
            let start = &line[..line.len().min(NOISE_BYTES)];
            let text = String::from_utf8_lossy(start).into_owned();
            out.push(AgentEvent::Noise { text });
        }
    }
}

/// Of a line that is wrong nothing is told; one that can be mended is read mended.
pub(super) fn read_json<D: Dialect>(dialect: &mut D, json: &[u8], out: &mut Out<'_>) {
    let mended;
    let values = match values::<D>(json) {
        Err(_) if has_broken_text(json) => {
            mended = json::mended(json);
            values::<D>(mended.as_bytes())
        }
        values => values,
    };
    match values {
        Ok(values) => values.iter().for_each(|value| dialect.take(value, out)),
        Err(_) => out.trouble.bad_lines += 1,
    }
}

fn values<D: Dialect>(json: &[u8]) -> Result<Vec<JsonValue<'_>>, serde_json::Error> {
    let values = JsonValue::read(json)?;
    match (D::MANY_OBJECTS, values.len()) {
        (false, 1) => Ok(values),
        (false, _) => Err(serde_json::Error::custom("more than one value")),
        (true, _) => JsonValue::objects(values),
    }
}

fn has_broken_text(json: &[u8]) -> bool {
    let half = |start: &[u8]| memchr::memmem::find(json, start).is_some();
    std::str::from_utf8(json).is_err() || half(br"\ud") || half(br"\uD")
}
