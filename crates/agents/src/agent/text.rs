//! Plain text: every line is the agent's, as far as anyone can tell.

use super::{AgentEvent, Piece, StreamParser, Trouble};

/// A line is given in pieces of this size at most.
const PIECE: usize = 64 * 1024;

/// Reads plain text line by line. Bytes that are no UTF-8 are replaced.
#[derive(Default)]
pub(super) struct Text {
    held: Vec<u8>,
    trouble: Trouble,
}

impl StreamParser for Text {
    fn push(&mut self, mut bytes: &[u8], out: &mut Vec<AgentEvent>) {
        while !bytes.is_empty() {
            let room = PIECE - self.held.len();
            let near = &bytes[..bytes.len().min(room)];
            let end = memchr::memchr(b'\n', near).map_or(near.len(), |at| at + 1);
            self.held.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            if self.held.ends_with(b"\n") || self.held.len() == PIECE {
                self.give(out);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<AgentEvent>) {
        if !self.held.is_empty() {
            out.push(said(&self.held));
            self.held.clear();
        }
    }

    fn trouble(&self) -> &Trouble {
        &self.trouble
    }
}

impl Text {
    /// A character that the piece's end cuts in two waits for its other half.
    fn give(&mut self, out: &mut Vec<AgentEvent>) {
        let end = self.held.len() - unfinished(&self.held);
        out.push(said(&self.held[..end]));
        self.held.drain(..end);
    }
}

fn said(bytes: &[u8]) -> AgentEvent {
    AgentEvent::Text {
        message: 0,
        piece: Piece::Delta,
        text: String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// How many bytes at the end begin a character that is not complete.
fn unfinished(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let tail = &bytes[from..];
    (1..=tail.len())
        .find(|back| {
            let first = tail[tail.len() - back];
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 0,
            };
            length > *back
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<AgentEvent> {
        let mut parser = Text::default();
        let mut out = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut out);
        }
        parser.finish(&mut out);
        out
    }

    fn joined(events: &[AgentEvent]) -> String {
        let text = |event: &AgentEvent| match event {
            AgentEvent::Text { text, .. } => text.clone(),
            _ => String::new(),
        };
        events.iter().map(text).collect()
    }

    #[test]
    fn lines_come_whole_and_the_last_one_too() {
        let events = read(&[b"one\ntw", b"o\n", b"last"]);
        assert_eq!(events.len(), 3);
        assert_eq!(joined(&events), "one\ntwo\nlast");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let line = format!("a{}", "ä€😀".repeat(60_000));
        let events = read(&[line.as_bytes()]);
        assert!(events.len() > 2);
        assert_eq!(joined(&events), line);
        assert_eq!(
            read(&[&line.as_bytes()[..9], &line.as_bytes()[9..]]),
            events
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(
            joined(&read(&[b"a\xff\xfeb\n\xe2\x82"])),
            "a\u{fffd}\u{fffd}b\n\u{fffd}"
        );
    }
}
