//! Cleaned output as lines for a terminal: colours last over lines and end with each, a carriage
//! return draws over its line.
//!
//! A push machine with bounded memory: any split of the same text gives the same lines.

use descartes_text::display::{self, Colours, Shown};

/// A line without an end is broken here.
const LONGEST_LINE: usize = 8 << 10;
/// Colours that are remembered from line to line.
const LONGEST_CARRY: usize = 128;
const RESET: &str = "\x1b[0m";
const ESC: u8 = 0x1b;

/// Turns text into lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// The colour that is being read.
    sequence: Vec<u8>,
    line: Vec<u8>,
    carry: Vec<u8>,
    /// A CR was seen: unless LF follows, the line is written anew.
    returned: bool,
}

impl Lines {
    /// Takes text, gives the lines that it finishes.
    pub fn push(&mut self, shown: &Shown, mut each: impl FnMut(String)) {
        for &byte in shown.as_bytes() {
            self.byte(byte, &mut each);
        }
    }

    /// Gives what is left of a line without an end.
    pub fn finish(&mut self, mut each: impl FnMut(String)) {
        // Colours alone make no line.
        if !self.partial().is_empty() {
            self.emit(&mut each);
        }
        *self = Self::default();
    }

    /// The line that is being written, without colours.
    pub fn partial(&self) -> String {
        display::bytes(&self.line, Colours::Drop).to_text()
    }

    fn byte(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        if !self.sequence.is_empty() || byte == ESC {
            self.sequence.push(byte);
            if byte == b'm' {
                self.colour();
            }
            return;
        }
        if self.returned && byte != b'\n' && byte != b'\r' {
            self.returned = false;
            self.line.clear();
            self.line.extend_from_slice(&self.carry);
        }
        match byte {
            b'\n' => self.emit(each),
            b'\r' => self.returned = true,
            _ => self.visible(byte, each),
        }
    }

    fn visible(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        // A character is not torn apart.
        if self.line.len() >= LONGEST_LINE && byte & 0xc0 != 0x80 {
            self.emit(each);
        }
        self.line.push(byte);
    }

    fn colour(&mut self) {
        let sequence = std::mem::take(&mut self.sequence);
        self.line.extend_from_slice(&sequence);
        if sequence == RESET.as_bytes() {
            self.carry.clear();
        } else if self.carry.len() + sequence.len() <= LONGEST_CARRY {
            self.carry.extend_from_slice(&sequence);
        }
    }

    fn emit(&mut self, each: &mut impl FnMut(String)) {
        self.returned = false;
        let mut text = String::from_utf8_lossy(&self.line).into_owned();
        if !self.carry.is_empty() {
            text.push_str(RESET);
        }
        self.line.clear();
        self.line.extend_from_slice(&self.carry);
        each(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_text::display::{Clean, Returns};
    use proptest::prelude::*;

    fn shown(bytes: &[u8]) -> Shown {
        let mut clean = Clean::new(Colours::Keep).returns(Returns::Pass);
        let mut out = Shown::default();
        clean.push(bytes, &mut out);
        clean.finish(&mut out);
        out
    }

    fn lines(bytes: &[u8]) -> Vec<String> {
        let (mut lines, mut out) = (Lines::default(), Vec::new());
        lines.push(&shown(bytes), |line| out.push(line));
        lines.finish(|line| out.push(line));
        out
    }

    #[test]
    fn a_return_draws_over_its_line_and_nothing_else_is_changed() {
        let table: [(&[u8], &str); 5] = [
            (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            (b"a\x1b[2J\x1b[Hb", "ab"),
            (b"a\tb", "a\tb"),
            (b"10%\r20%\r100%\r\n", "100%"),
            ("\u{a9} €".as_bytes(), "\u{a9} €"),
        ];
        for (bytes, want) in table {
            assert_eq!(lines(bytes), [want], "{bytes:?}");
        }
    }

    #[test]
    fn a_colour_lasts_over_lines_and_ends_with_each() {
        let got = lines(b"\x1b[1mone\ntwo\x1b[m\nthree\n");
        assert_eq!(got, ["\x1b[1mone\x1b[0m", "\x1b[1mtwo\x1b[0m", "three"]);
    }

    #[test]
    fn a_line_without_end_is_broken() {
        let long = "ä".repeat(10_000);
        let got = lines(long.as_bytes());
        assert_eq!(got.len(), 3);
        assert_eq!(got.concat(), long);
    }

    #[test]
    fn the_line_being_written_can_be_looked_at() {
        let mut lines = Lines::default();
        lines.push(&shown(b"done\n\x1b[32mworking.."), |_| {});
        assert_eq!(lines.partial(), "working..");
    }

    proptest! {
        #[test]
        fn no_cursor_moves(
            parts in prop::collection::vec(prop_oneof![
                Just(b"\x1b[31m".to_vec()), Just(b"\x1b[2J".to_vec()), Just(b"\n".to_vec()),
                Just(b"\r".to_vec()), Just(b"\x1b]0;x".to_vec()), Just(b"\x07".to_vec()),
                Just(b"\x1b".to_vec()), Just(vec![0xc2]), prop::collection::vec(any::<u8>(), 0..6),
            ], 0..20),
        ) {
            for line in lines(&parts.concat()) {
                for (at, _) in line.match_indices('\x1b') {
                    let end = line[at..].find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
                    prop_assert_eq!(line.as_bytes()[at + end], b'm', "{:?}", line);
                }
            }
        }
    }
}
