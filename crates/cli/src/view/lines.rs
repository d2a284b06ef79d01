//! An agent's bytes as lines that are safe on a terminal: colours pass, whatever would move
//! the cursor, clear the screen or talk to the terminal does not.
//!
//! A push machine with bounded memory: any split of the same bytes gives the same lines.

use crate::style::Paint;

/// A line without an end is broken here.
const LONGEST_LINE: usize = 8 << 10;
/// A sequence that does not end is given up here.
const LONGEST_SEQUENCE: usize = 4 << 10;
/// Colours that are remembered from line to line.
const LONGEST_CARRY: usize = 128;
const RESET: &str = "\x1b[0m";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one more to go.
    Intermediate,
    /// In `ESC [ …`.
    Csi,
    /// In a string that ends in BEL or ESC \.
    Text,
    /// After an ESC in such a string.
    TextEscape,
    /// After 0xC2: the next byte may make a control character of it.
    C1,
}

/// Turns bytes into lines.
#[derive(Debug)]
pub struct Lines {
    paint: Paint,
    state: State,
    sequence: Vec<u8>,
    dropped: usize,
    line: Vec<u8>,
    carry: String,
    /// A CR was seen: unless LF follows, the line is written anew.
    returned: bool,
}

impl Lines {
    /// With `Plain`, colours are taken out as well.
    pub fn new(paint: Paint) -> Self {
        Self {
            paint,
            state: State::Ground,
            sequence: Vec::new(),
            dropped: 0,
            line: Vec::new(),
            carry: String::new(),
            returned: false,
        }
    }

    /// Takes bytes, gives the lines that they finish.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(String)) {
        for &byte in bytes {
            self.byte(byte, &mut each);
        }
    }

    /// Gives what is left of a line without an end.
    pub fn finish(&mut self, mut each: impl FnMut(String)) {
        // Colours alone make no line.
        if !self.partial().is_empty() {
            self.emit(&mut each);
        }
        *self = Self::new(self.paint);
    }

    /// The line that is being written, without colours.
    pub fn partial(&self) -> String {
        let mut plain = Self::new(Paint::Plain);
        plain.push(&self.line, |_| {});
        String::from_utf8_lossy(&plain.line).into_owned()
    }

    fn byte(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        match self.state {
            State::Ground => self.ground(byte, each),
            State::C1 => self.after_c2(byte, each),
            State::Escape => self.escape(byte, each),
            State::Intermediate => self.state = State::Ground,
            State::Csi => self.csi(byte, each),
            State::Text | State::TextEscape => self.text(byte, each),
        }
    }

    fn ground(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        if self.returned && byte != b'\n' && byte != b'\r' {
            self.returned = false;
            self.line.clear();
            self.line.extend_from_slice(self.carry.as_bytes());
        }
        match byte {
            0x1b => self.state = State::Escape,
            b'\n' => self.emit(each),
            b'\r' => self.returned = true,
            0xc2 => self.state = State::C1,
            b'\t' | 0x20..=0x7e | 0x80..=0xff => self.visible(byte, each),
            _ => {}
        }
    }

    fn visible(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        let continues = byte & 0xc0 == 0x80;
        let full = self.line.len() >= LONGEST_LINE;
        // A character is not torn apart, unless the bytes are no text anyway.
        if full && (!continues || self.line.len() > LONGEST_LINE + 4) {
            self.emit(each);
        }
        self.line.push(byte);
    }

    /// U+0080 to U+009F are control characters in UTF-8 as well.
    fn after_c2(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        self.state = State::Ground;
        match byte {
            0x9b => self.begin(State::Csi),
            0x90 | 0x98 | 0x9d..=0x9f => self.begin(State::Text),
            0x80..=0x9f => {}
            0xa0..=0xbf => {
                self.visible(0xc2, each);
                self.visible(byte, each);
            }
            _ => {
                self.visible(0xc2, each);
                self.ground(byte, each);
            }
        }
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.sequence.clear();
        self.dropped = 0;
    }

    fn escape(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        match byte {
            b'[' => self.begin(State::Csi),
            b']' | b'P' | b'X' | b'^' | b'_' => self.begin(State::Text),
            0x20..=0x2f => self.state = State::Intermediate,
            0x1b => {}
            b'\n' | b'\r' => {
                self.state = State::Ground;
                self.ground(byte, each);
            }
            _ => self.state = State::Ground,
        }
    }

    fn csi(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        match byte {
            0x40..=0x7e => {
                self.state = State::Ground;
                if byte == b'm' {
                    self.colour();
                }
            }
            0x1b => self.state = State::Escape,
            0x20..=0x3f if self.sequence.len() < 64 => self.sequence.push(byte),
            0x20..=0x3f => {}
            _ => {
                self.state = State::Ground;
                self.ground(byte, each);
            }
        }
    }

    fn text(&mut self, byte: u8, each: &mut impl FnMut(String)) {
        self.dropped += 1;
        match (self.state, byte) {
            (_, 0x07) | (State::TextEscape, b'\\') => self.state = State::Ground,
            (State::Text, 0x1b) => self.state = State::TextEscape,
            (State::TextEscape, _) => {
                self.state = State::Escape;
                self.escape(byte, each);
            }
            // A line end within such a string is more likely a string that was cut off.
            (_, b'\n') => {
                self.state = State::Ground;
                self.ground(byte, each);
            }
            _ if self.dropped > LONGEST_SEQUENCE => self.state = State::Ground,
            _ => {}
        }
    }

    fn colour(&mut self) {
        let private = self
            .sequence
            .first()
            .is_some_and(|byte| (0x3c..=0x3f).contains(byte));
        if self.paint == Paint::Plain || private {
            return;
        }
        let parameters = String::from_utf8_lossy(&self.sequence).into_owned();
        let sequence = format!("\x1b[{parameters}m");
        self.line.extend_from_slice(sequence.as_bytes());
        if parameters.trim_matches(['0', ';']).is_empty() {
            self.carry.clear();
        } else if self.carry.len() + sequence.len() <= LONGEST_CARRY {
            self.carry.push_str(&sequence);
        }
    }

    fn emit(&mut self, each: &mut impl FnMut(String)) {
        self.returned = false;
        let mut text = String::from_utf8_lossy(&self.line).into_owned();
        if !self.carry.is_empty() {
            text.push_str(RESET);
        }
        self.line.clear();
        self.line.extend_from_slice(self.carry.as_bytes());
        each(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(paint: Paint, bytes: &[u8]) -> Vec<String> {
        let (mut lines, mut out) = (Lines::new(paint), Vec::new());
        lines.push(bytes, |line| out.push(line));
        lines.finish(|line| out.push(line));
        out
    }

    #[test]
    fn colours_pass_and_everything_else_is_taken_out() {
        let table: [(&[u8], &str); 12] = [
            (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
            (b"a\x1b[2J\x1b[Hb", "ab"),
            (b"a\x1b[?1049hb\x1b[?25lc", "abc"),
            (b"\x1b]0;title\x07x", "x"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1bP1$r\x1b\\x\x1b(B\x1b7y", "xy"),
            (b"bell\x07 back\x08 del\x7f", "bell back del"),
            (b"a\tb", "a\tb"),
            (b"10%\r20%\r100%\r\n", "100%"),
            ("\u{9b}2Jx\u{9d}0;t\u{7}y".as_bytes(), "xy"),
            (b"bad \xff\xfe bytes", "bad \u{fffd}\u{fffd} bytes"),
            ("\u{a9} €".as_bytes(), "\u{a9} €"),
        ];
        for (bytes, want) in table {
            assert_eq!(lines(Paint::Colour, bytes), [want], "{bytes:?}");
        }
        assert_eq!(lines(Paint::Plain, b"\x1b[31mred\x1b[0m"), ["red"]);
    }

    #[test]
    fn a_colour_lasts_over_lines_and_ends_with_each() {
        let got = lines(Paint::Colour, b"\x1b[1mone\ntwo\x1b[m\nthree\n");
        assert_eq!(got, ["\x1b[1mone\x1b[0m", "\x1b[1mtwo\x1b[m", "three"]);
    }

    #[test]
    fn a_line_without_end_is_broken_and_a_sequence_without_end_is_given_up() {
        let long = "ä".repeat(10_000);
        let got = lines(Paint::Plain, long.as_bytes());
        assert_eq!(got.len(), 3);
        assert_eq!(got.concat(), long);
        let mut open = b"\x1b]0;".to_vec();
        open.extend(std::iter::repeat_n(b'x', 5000));
        open.extend(b"\nafter\n");
        assert_eq!(lines(Paint::Plain, &open).last().unwrap(), "after");
    }

    #[test]
    fn the_line_being_written_can_be_looked_at() {
        let mut lines = Lines::new(Paint::Colour);
        lines.push(b"done\n\x1b[32mworking..", |_| {});
        assert_eq!(lines.partial(), "working..");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines_and_no_cursor_moves(
            parts in prop::collection::vec(prop_oneof![
                Just(b"\x1b[31m".to_vec()), Just(b"\x1b[2J".to_vec()), Just(b"\n".to_vec()),
                Just(b"\r".to_vec()), Just(b"\x1b]0;x".to_vec()), Just(b"\x07".to_vec()),
                Just(b"\x1b".to_vec()), Just(vec![0xc2]), prop::collection::vec(any::<u8>(), 0..6),
            ], 0..20),
            cut in 0_usize..60,
        ) {
            let bytes = parts.concat();
            let whole = lines(Paint::Colour, &bytes);
            let (mut split, mut out) = (Lines::new(Paint::Colour), Vec::new());
            let cut = cut.min(bytes.len());
            split.push(&bytes[..cut], |line| out.push(line));
            split.push(&bytes[cut..], |line| out.push(line));
            split.finish(|line| out.push(line));
            prop_assert_eq!(&whole, &out);
            for line in &whole {
                let plain = line.replace('\t', "");
                for (at, _) in plain.match_indices('\x1b') {
                    let end = plain[at..].find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
                    prop_assert_eq!(plain.as_bytes()[at + end], b'm', "{:?}", line);
                }
            }
        }
    }
}
