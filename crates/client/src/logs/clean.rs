//! An agent's bytes made safe for a terminal: colours pass where they are wanted, whatever
//! would move the cursor, clear the screen or talk to the terminal does not, and what looks
//! like a secret is masked. A push machine: any split of the same bytes gives the same text.

use super::mask::Mask;

/// A sequence that does not end is given up here.
const LONGEST_SEQUENCE: usize = 4 << 10;
/// Parameters of a colour.
const LONGEST_COLOUR: usize = 64;
const ESC: u8 = 0x1b;

/// What becomes of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// They pass.
    Keep,
    /// They go.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    /// After CR: a line end, unless LF follows and is one itself.
    Return,
    Escape,
    /// After ESC and an intermediate byte: one more to go.
    Intermediate,
    /// In `ESC [ …`.
    Csi,
    /// In a string that ends in BEL or `ESC \`.
    Text,
    TextEscape,
    /// After 0xC2: the next byte may make a control character of it.
    C2,
}

/// Makes bytes safe, masked and readable.
#[derive(Debug)]
pub struct Clean {
    colours: Colours,
    state: State,
    /// Bytes of the sequence so far.
    length: usize,
    parameters: Vec<u8>,
    mask: Mask,
}

impl Clean {
    /// At the beginning of a text.
    pub fn new(colours: Colours) -> Self {
        Self {
            colours,
            state: State::Ground,
            length: 0,
            parameters: Vec::new(),
            mask: Mask::default(),
        }
    }

    /// Takes bytes, adds what may be shown of them.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            self.byte(*byte, out);
        }
    }

    /// The text has ended: what was held back comes out.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Return => self.mask.push(b'\n', out),
            State::C2 => self.mask.push(0xc2, out),
            _ => {}
        }
        self.mask.finish(out);
        self.state = State::Ground;
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground => self.ground(byte, out),
            State::Return => {
                self.state = State::Ground;
                self.mask.push(b'\n', out);
                if byte != b'\n' {
                    self.ground(byte, out);
                }
            }
            State::C2 => self.after_c2(byte, out),
            State::Escape => self.escape(byte, out),
            State::Intermediate => self.state = State::Ground,
            State::Csi => self.csi(byte, out),
            State::Text | State::TextEscape => self.text(byte, out),
        }
    }

    fn ground(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESC => self.state = State::Escape,
            b'\r' => self.state = State::Return,
            0xc2 => self.state = State::C2,
            b'\n' | b'\t' | 0x20..=0x7e | 0x80..=0xff => self.mask.push(byte, out),
            _ => {}
        }
    }

    /// U+0080 to U+009F are control characters in UTF-8 as well.
    fn after_c2(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.state = State::Ground;
        match byte {
            0x9b => self.begin(State::Csi),
            0x90 | 0x98 | 0x9d..=0x9f => self.begin(State::Text),
            0x80..=0x9f => {}
            0xa0..=0xbf => {
                self.mask.push(0xc2, out);
                self.mask.push(byte, out);
            }
            _ => {
                self.mask.push(0xc2, out);
                self.ground(byte, out);
            }
        }
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.length = 0;
        self.parameters.clear();
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'[' => self.begin(State::Csi),
            b']' | b'P' | b'X' | b'^' | b'_' => self.begin(State::Text),
            0x20..=0x2f => self.state = State::Intermediate,
            ESC => {}
            b'\n' | b'\r' => {
                self.state = State::Ground;
                self.ground(byte, out);
            }
            _ => self.state = State::Ground,
        }
    }

    fn csi(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x40..=0x7e => {
                self.state = State::Ground;
                if byte == b'm' {
                    self.colour(out);
                }
            }
            ESC => self.state = State::Escape,
            0x20..=0x3f if self.parameters.len() < LONGEST_COLOUR => self.parameters.push(byte),
            0x20..=0x3f => {}
            _ => {
                self.state = State::Ground;
                self.ground(byte, out);
            }
        }
    }

    fn colour(&mut self, out: &mut Vec<u8>) {
        self.mask.colour(out);
        let plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
        let fits = self.parameters.len() < LONGEST_COLOUR && self.parameters.iter().all(plain);
        if self.colours == Colours::Keep && fits {
            out.extend_from_slice(b"\x1b[");
            out.extend_from_slice(&self.parameters);
            out.push(b'm');
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.length += 1;
        match (self.state, byte) {
            (_, 0x07) | (State::TextEscape, b'\\') => self.state = State::Ground,
            (_, b'\n') => {
                self.state = State::Ground;
                self.ground(byte, out);
            }
            (_, ESC) => self.state = State::TextEscape,
            _ if self.length > LONGEST_SEQUENCE => self.state = State::Ground,
            _ => self.state = State::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(colours: Colours, text: &[u8]) -> String {
        let (mut clean, mut out) = (Clean::new(colours), Vec::new());
        clean.push(text, &mut out);
        clean.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn colours_pass_where_wanted_and_nothing_else_of_a_terminal_does() {
        let raw = b"a\x1b[31mb\x1b[2J\x1b[0m\x1b]0;title\x07c\x1b(B\x08\x07d\xc2\x9b5Je\xc2\xa7";
        assert_eq!(clean(Colours::Keep, raw), "a\x1b[31mb\x1b[0mcde§");
        assert_eq!(clean(Colours::Drop, raw), "abcde§");
        assert_eq!(clean(Colours::Drop, b"1\r\n2\r3\r"), "1\n2\n3\n");
        assert_eq!(clean(Colours::Keep, b"\x1b[?25l\x1b[>4;2mx"), "x");
        assert_eq!(clean(Colours::Drop, b"\x1b]never ended\nx"), "\nx");
        assert_eq!(clean(Colours::Drop, b"\xff\xfe ok"), "\u{fffd}\u{fffd} ok");
    }

    #[test]
    fn secrets_are_masked_also_behind_colours() {
        let key = format!(
            "\x1b[1mkey=\x1b[32msk-ant-api03-{}\x1b[0m end",
            "A1".repeat(20)
        );
        assert_eq!(clean(Colours::Drop, key.as_bytes()), "key=sk-ant-*** end");
        assert_eq!(
            clean(Colours::Keep, key.as_bytes()),
            "\x1b[1mkey=\x1b[32msk-ant-***\x1b[0m end"
        );
        let close = format!("x\x1b[32msk-ant-api03-{}", "A1".repeat(20));
        assert_eq!(clean(Colours::Drop, close.as_bytes()), "xsk-ant-***");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_text(
            parts in prop::collection::vec(prop_oneof![
                Just(b"\x1b[31m".to_vec()), Just(b"\x1b[2J".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"\x1b]0;x".to_vec()), Just(b"\x07".to_vec()), Just(b"\x1b".to_vec()),
                Just(b"sk-ant-".to_vec()), Just(b"Bearer ".to_vec()), Just(b"ghp_".to_vec()),
                Just(vec![0xc2]), "[a-z0-9 ]{0,12}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..6),
            ], 0..20),
            cuts in prop::collection::vec(0_usize..80, 0..6),
        ) {
            let bytes = parts.concat();
            let (mut whole, mut out) = (Clean::new(Colours::Keep), Vec::new());
            whole.push(&bytes, &mut out);
            whole.finish(&mut out);
            let (mut split, mut pieces) = (Clean::new(Colours::Keep), Vec::new());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut begin = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                split.push(&bytes[begin..cut], &mut pieces);
                begin = cut;
            }
            split.finish(&mut pieces);
            prop_assert_eq!(out, pieces);
        }
    }
}
