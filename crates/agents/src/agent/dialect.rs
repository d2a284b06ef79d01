//! Push parsers of an agent's output, and what those of JSON lines have in common.

use serde::Deserialize;

use super::lenient::head;
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

/// One agent's way of writing JSON lines.
pub(super) trait Dialect: Send {
    /// Reads one line of JSON. Of a line that is wrong nothing is told.
    fn read(&mut self, json: &[u8], out: &mut Out<'_>) -> Result<(), serde_json::Error>;
}

/// Reads the values on a line, of which there should be one: all must be well formed
/// before any is taken.
pub(super) fn values<'de, T: Deserialize<'de>>(
    json: &'de [u8],
) -> Result<Vec<T>, serde_json::Error> {
    if json.first() == Some(&b'[') {
        return serde_json::from_slice(json);
    }
    serde_json::Deserializer::from_slice(json)
        .into_iter()
        .collect()
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
    fn push(&mut self, bytes: &[u8], out: &mut Vec<AgentEvent>) {
        let Self {
            lines,
            dialect,
            trouble,
        } = self;
        lines.push(bytes, |line| {
            take(
                dialect,
                line,
                &mut Out {
                    events: out,
                    trouble,
                },
            )
        });
    }

    fn finish(&mut self, out: &mut Vec<AgentEvent>) {
        let Self {
            lines,
            dialect,
            trouble,
        } = self;
        lines.finish(|line| {
            take(
                dialect,
                line,
                &mut Out {
                    events: out,
                    trouble,
                },
            )
        });
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

/// A line with bytes that are no UTF-8 is read with those replaced.
pub(super) fn read_json(dialect: &mut impl Dialect, json: &[u8], out: &mut Out<'_>) {
    if dialect.read(json, out).is_ok() {
        return;
    }
    let mended = std::str::from_utf8(json).is_err()
        && dialect
            .read(String::from_utf8_lossy(json).as_bytes(), out)
            .is_ok();
    out.trouble.bad_lines += u64::from(!mended);
}
