//! Bytes made safe: what would move the cursor, clear the screen, talk to the terminal, hide text
//! or reorder it does not pass.

use super::mask::Mask;
use super::sequences::{Action, Sequences};
use super::sgr::Sgr;
use super::{Colours, Shown, is_visible};

/// Parameters of a colour.
const LONGEST_COLOUR: usize = 64;
/// Stands for bytes that are no text.
const NO_TEXT: char = '\u{fffd}';

/// What becomes of a carriage return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// It ends a line, as a line end does; with one it is one.
    EndLines,
    /// It passes, for those who draw over the line.
    Pass,
}

/// Makes bytes safe, masked and readable.
#[derive(Debug)]
pub struct Clean {
    colours: Colours,
    returns: Returns,
    sequences: Sequences,
    parameters: Vec<u8>,
    /// After CR: a line end, unless LF follows and is one itself.
    returned: bool,
    /// A character that has begun.
    begun: Vec<u8>,
    sgr: Sgr,
    /// Text in small pieces, which the mask gets together: each call of it costs more than such a piece.
    pieces: Vec<u8>,
    mask: Mask,
}

/// Text that is at least so long goes to the mask by itself.
const LONG_PIECE: usize = 64;

impl Clean {
    /// At the beginning of a text.
    pub fn new(colours: Colours) -> Self {
        Self {
            colours,
            returns: Returns::EndLines,
            sequences: Sequences::default(),
            parameters: Vec::new(),
            returned: false,
            begun: Vec::new(),
            sgr: Sgr::default(),
            pieces: Vec::new(),
            mask: Mask::default(),
        }
    }

    /// What becomes of colours.
    pub fn colours(&self) -> Colours {
        self.colours
    }

    /// With another rule for carriage returns.
    #[must_use]
    pub fn returns(mut self, returns: Returns) -> Self {
        self.returns = returns;
        self
    }

    /// Takes bytes, adds what may be shown of them.
    pub fn push(&mut self, bytes: &[u8], out: &mut Shown) {
        let out = &mut out.0;
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            if self.begun.is_empty() && !self.returned {
                if self.sequences.in_text() {
                    let (run, special) = rest.split_at(harmless(rest));
                    if !run.is_empty() {
                        self.show(run, out);
                        rest = special;
                        continue;
                    }
                }
                let swallowed = self.sequences.swallow(rest);
                if swallowed > 0 {
                    rest = &rest[swallowed..];
                    continue;
                }
            }
            self.byte(*byte, out);
            rest = after;
        }
        self.show_pieces(out);
    }

    /// The text has ended: what was held back comes out.
    pub fn finish(&mut self, out: &mut Shown) {
        let out = &mut out.0;
        self.broken(out);
        if std::mem::take(&mut self.returned) {
            self.show(b"\n", out);
        }
        self.show_pieces(out);
        self.mask.finish(out);
        if self.colours == Colours::Keep && self.sgr.is_open() {
            out.extend_from_slice(b"\x1b[0m");
        }
        self.sgr = Sgr::default();
        self.sequences = Sequences::default();
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte.is_ascii() {
            self.broken(out);
            return self.character(char::from(byte), out);
        }
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(text) => {
                let c = text.chars().next();
                self.begun.clear();
                c.into_iter().for_each(|c| self.character(c, out));
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) if self.begun.len() == 1 => self.broken(out),
            // This byte belongs to what was begun no more; it may begin something itself.
            Err(_) => {
                self.begun.pop();
                self.broken(out);
                self.byte(byte, out);
            }
        }
    }

    /// What was begun is no character.
    fn broken(&mut self, out: &mut Vec<u8>) {
        if !self.begun.is_empty() {
            self.begun.clear();
            self.character(NO_TEXT, out);
        }
    }

    fn character(&mut self, c: char, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.returned) {
            self.show(b"\n", out);
            if c == '\n' {
                return;
            }
        }
        match self.sequences.take(c) {
            Action::Param | Action::Collect if self.parameters.len() < LONGEST_COLOUR => {
                return self.parameters.push(c as u8);
            }
            Action::Param | Action::Collect => return,
            Action::Print | Action::Execute => self.text(c, out),
            Action::CsiDispatch if c == 'm' => self.colour(out),
            _ => {}
        }
        self.parameters.clear();
    }

    fn text(&mut self, c: char, out: &mut Vec<u8>) {
        match c {
            '\r' if self.returns == Returns::EndLines => self.returned = true,
            // Ends of lines and paragraphs.
            '\u{2028}' | '\u{2029}' => self.show(b" ", out),
            '\n' | '\r' | '\t' => self.show(&[c as u8], out),
            c if is_visible(c) => self.show(c.encode_utf8(&mut [0; 4]).as_bytes(), out),
            _ => {}
        }
    }

    fn colour(&mut self, out: &mut Vec<u8>) {
        let plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
        let fits = self.parameters.len() < LONGEST_COLOUR && self.parameters.iter().all(plain);
        let mut sequence = Vec::new();
        if self.colours == Colours::Keep && fits {
            let kept = self.sgr.take(&self.parameters);
            if !kept.is_empty() {
                sequence.extend_from_slice(b"\x1b[");
                sequence.extend_from_slice(&kept);
                sequence.push(b'm');
            }
        }
        self.show_pieces(out);
        self.mask.colour(&sequence, out);
    }

    fn show(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if text.len() < LONG_PIECE {
            return self.pieces.extend_from_slice(text);
        }
        self.show_pieces(out);
        self.mask.push(text, out);
    }

    fn show_pieces(&mut self, out: &mut Vec<u8>) {
        if !self.pieces.is_empty() {
            self.mask.push(&self.pieces, out);
            self.pieces.clear();
        }
    }
}

/// How many bytes from here on are text that passes as it is.
fn harmless(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let plain = bytes[at..].iter().position(|byte| !is_plain(*byte));
        let Some(plain) = plain else {
            return bytes.len();
        };
        at += plain;
        let beyond = bytes[at..].iter().position(u8::is_ascii);
        let beyond = &bytes[at..at + beyond.unwrap_or(bytes.len() - at)];
        let text = match std::str::from_utf8(beyond) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&beyond[..error.valid_up_to()]).unwrap_or_default(),
        };
        let seen = text.find(|c| !is_visible(c)).unwrap_or(text.len());
        at += seen;
        if seen < beyond.len() || beyond.is_empty() {
            return at;
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | 0x20..=0x7e)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(colours: Colours, text: &[u8]) -> String {
        crate::display::bytes(text, colours).to_text()
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
        assert_eq!(
            clean(Colours::Drop, b"\x9b2J \xe2\x82 \xe2\x82\xac"),
            "\u{fffd}2J \u{fffd} €"
        );
    }

    #[test]
    fn what_hides_or_reorders_text_is_taken_out() {
        for (raw, want) in [
            (
                "a\u{202e}b\u{2066}c\u{2069}d\u{200f}\u{200e}\u{61c}e",
                "abcde",
            ),
            ("a\u{200b}b\u{feff}c\u{2060}d", "abcd"),
            ("flag \u{e0067}\u{e0062}\u{e007f}x\u{e0101}", "flag x"),
            (
                "\u{1f468}\u{200d}\u{1f469} \u{2764}\u{fe0f}",
                "\u{1f468}\u{200d}\u{1f469} \u{2764}\u{fe0f}",
            ),
            ("\u{90}dcs\u{9c}x \u{9d}0;t\u{7}y \u{85}z", "x y z"),
            ("a\u{2028}b", "a b"),
            ("\x1b[8mhidden\x1b[28m", "hidden"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bP1$r\x1b\\x\x1b7y\x7f", "xy"),
        ] {
            assert_eq!(clean(Colours::Drop, raw.as_bytes()), want, "{raw:?}");
        }
        assert_eq!(clean(Colours::Keep, b"\x1b[8;31mx"), "\x1b[31mx\x1b[0m");
        assert_eq!(
            clean(Colours::Keep, b"\x1b[8mx\x1b[30;40my"),
            "x\x1b[30my\x1b[0m"
        );
    }

    #[test]
    fn carriage_returns_pass_for_those_who_draw_over_a_line() {
        let mut clean = Clean::new(Colours::Drop).returns(Returns::Pass);
        let mut out = Shown::default();
        clean.push(b"10%\r20%\r\n", &mut out);
        clean.finish(&mut out);
        assert_eq!(out.as_bytes(), b"10%\r20%\r\n");
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
        let inside = format!("sk-\x1b[1mant-\x1b[2J\u{200b}api03-{} z", "A1".repeat(20));
        assert_eq!(clean(Colours::Drop, inside.as_bytes()), "sk-ant-*** z");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_text_and_nothing_odd_passes(
            parts in prop::collection::vec(prop_oneof![
                Just(b"\x1b[31m".to_vec()), Just(b"\x1b[2J".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"\x1b]0;x".to_vec()), Just(b"\x07".to_vec()), Just(b"\x1b".to_vec()),
                Just(b"sk-ant-".to_vec()), Just(b"Bearer ".to_vec()), Just(b"ghp_".to_vec()),
                Just(b"password=".to_vec()), Just(b"\"token\": \"".to_vec()), Just(b"\"".to_vec()),
                Just(b"https://u:".to_vec()), Just(b"@h".to_vec()), Just(b"eyJhbGciOi.eyJ".to_vec()),
                Just(b"-----BEGIN PRIVATE KEY-----\n".to_vec()), Just(b"-----END PRIVATE KEY-----".to_vec()),
                Just(b"Cookie: a=".to_vec()), Just(b"Authorization: ".to_vec()),
                Just(vec![0xc2]), "[a-zA-Z0-9 ]{0,40}".prop_map(String::into_bytes),
                "\\PC{0,4}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..6),
            ], 0..20),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = parts.concat();
            let whole = crate::display::bytes(&bytes, Colours::Keep);
            let (mut split, mut pieces) = (Clean::new(Colours::Keep), Shown::default());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut begin = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                split.push(&bytes[begin..cut], &mut pieces);
                begin = cut;
            }
            split.finish(&mut pieces);
            prop_assert_eq!(&whole, &pieces);
            prop_assert!(std::str::from_utf8(whole.as_bytes()).is_ok());
            let plain = crate::display::bytes(&bytes, Colours::Drop).to_text();
            prop_assert!(plain.chars().all(|c| is_visible(c) || c == '\n' || c == '\t'), "{:?}", plain);
        }
    }
}
