//! Keys and tokens that agents print by mistake are not shown again: `sk-ant-***`. The bytes
//! in the log stay as they are.
//!
//! Almost everything passes at once: only what begins like a secret is held back until it is clear,
//! and never more than a few hundred bytes. The forms are those that services publish and that
//! scanners of repositories know; the tests hold both what is masked and what must stay.

mod kinds;
mod values;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::kinds::{Fit, fit, may_begin, of_word};
use self::values::{LOOK_BACK, at_flag, at_sign, at_tilde, of_bearer, of_jwt};

const STARS: &[u8] = b"***";
/// What was given out is kept for a look back until so much has come together.
const KEPT: usize = 4 << 10;
/// Colours that are remembered within what is held back.
const COLOURS: usize = 64;
/// A private key that does not end is given up here.
const LONGEST_KEY: usize = 32 << 10;

/// At most so many bytes stand between two lines of a key.
const BETWEEN: usize = 24;

/// Masks secrets in a stream of text.
#[derive(Debug, Default)]
pub struct Mask {
    /// What was given out lately, then what is held back.
    buffer: Vec<u8>,
    /// Where what is held back begins.
    given: usize,
    /// Colours within it.
    colours: VecDeque<(usize, Vec<u8>)>,
    /// A colour stood here.
    colour_at: usize,
    mode: MaskMode,
}

#[derive(Clone, Copy, Debug, Default)]
enum MaskMode {
    #[default]
    Text,
    /// In a secret: what holds belongs to it.
    Swallow(fn(u8) -> bool),
    /// In a private key of so many bytes so far.
    Key(usize),
    /// In a line of its head.
    KeyHead(usize),
}

/// What stands at a place.
enum MaskVerdict {
    /// Nothing that matters.
    None,
    /// That cannot be told yet.
    Open,
    Secret(Hidden),
}

struct Hidden {
    from: usize,
    to: usize,
    then: MaskMode,
}

impl MaskVerdict {
    fn open_unless(at_end: bool) -> Self {
        match at_end {
            true => Self::None,
            false => Self::Open,
        }
    }

    /// A secret of so many bytes, and what holds behind them.
    fn hide(from: usize, length: usize, holds: fn(u8) -> bool) -> Self {
        Self::hide_then(from, length, MaskMode::Swallow(holds))
    }

    fn hide_then(from: usize, length: usize, then: MaskMode) -> Self {
        let to = from + length;
        Self::Secret(Hidden { from, to, then })
    }
}

impl Mask {
    /// Takes text.
    pub fn push(&mut self, text: &[u8], out: &mut Vec<u8>) {
        self.buffer.extend_from_slice(text);
        self.scan(false, out);
    }

    /// A colour stands here: a word may begin behind it, but a secret that has begun goes on, so
    /// that a colour within it shows nothing.
    pub fn colour(&mut self, sequence: &[u8], out: &mut Vec<u8>) {
        if self.given == self.buffer.len() {
            self.colour_at = self.buffer.len();
            return out.extend_from_slice(sequence);
        }
        if self.colours.len() == COLOURS {
            self.colours.pop_front();
        }
        self.colours
            .push_back((self.buffer.len(), sequence.to_vec()));
    }

    /// The text has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scan(true, out);
        *self = Self::default();
    }

    fn scan(&mut self, at_end: bool, out: &mut Vec<u8>) {
        let mut at = self.given;
        while at < self.buffer.len() {
            let next = match self.mode {
                MaskMode::Text => self.text(at, at_end, out),
                MaskMode::Swallow(holds) => {
                    let rest = &self.buffer[at..];
                    let end = rest.iter().position(|byte| !holds(*byte));
                    if end.is_some() {
                        self.mode = MaskMode::Text;
                    }
                    let end = end.map_or(self.buffer.len(), |end| at + end);
                    self.drop_to(end, out);
                    Some(end)
                }
                MaskMode::Key(length) => self.key(at, length, at_end, out),
                MaskMode::KeyHead(length) => {
                    let rest = &self.buffer[at..];
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let end = end.map_or(self.buffer.len(), |end| at + end);
                    if end < self.buffer.len() {
                        self.mode = MaskMode::Key(length + end - at);
                    }
                    self.drop_to(end, out);
                    Some(end)
                }
            };
            match next {
                Some(next) => at = next,
                None => return self.compact(),
            }
        }
        if let MaskMode::Text = self.mode {
            self.give_to(self.buffer.len(), out);
        }
        self.compact();
    }

    /// Looks for the next secret from here on; `None` where more must be known.
    fn text(&mut self, from: usize, at_end: bool, out: &mut Vec<u8>) -> Option<usize> {
        let mut at = from;
        while at < self.buffer.len() {
            let byte = self.buffer[at];
            if !STARTS[byte as usize] {
                at += 1;
                continue;
            }
            match self.look(byte, at, at_end) {
                MaskVerdict::None => at += 1,
                MaskVerdict::Open => {
                    self.give_to(at, out);
                    return None;
                }
                MaskVerdict::Secret(hidden) => {
                    self.give_to(hidden.from, out);
                    out.extend_from_slice(STARS);
                    self.drop_to(hidden.to, out);
                    self.mode = hidden.then;
                    return Some(hidden.to);
                }
            }
        }
        self.give_to(at, out);
        Some(at)
    }

    fn look(&self, byte: u8, at: usize, at_end: bool) -> MaskVerdict {
        match byte {
            b'=' | b':' => return at_sign(&self.buffer, at, at_end),
            b'~' => return at_tilde(&self.buffer, at, at_end),
            b'-' => {
                return match self.begins_key(at, at_end) {
                    MaskVerdict::None => at_flag(&self.buffer, at, at_end),
                    verdict => verdict,
                };
            }
            _ if !self.begins_word(at) => return MaskVerdict::None,
            _ => {}
        }
        let known = match byte {
            b'b' | b'B' => of_bearer(&self.buffer, at, at_end),
            b'e' => of_jwt(&self.buffer, at, at_end),
            _ => MaskVerdict::None,
        };
        if !matches!(known, MaskVerdict::None) {
            return known;
        }
        match fit(&self.buffer[at..], at_end) {
            Fit::None => MaskVerdict::None,
            Fit::Open => MaskVerdict::Open,
            Fit::Secret(prefix, length, holds) => MaskVerdict::hide(at + prefix, length, holds),
        }
    }

    fn begins_word(&self, at: usize) -> bool {
        match &self.buffer[..at] {
            [] => true,
            _ if self.colour_at == at || self.colours.iter().any(|(place, _)| *place == at) => true,
            // Behind a line end that is written out.
            [.., b'\\', b'n' | b'r' | b't'] => true,
            [.., before] => !of_word(*before),
        }
    }

    /// Looks at a `-`: whether a private key begins.
    fn begins_key(&self, at: usize, at_end: bool) -> MaskVerdict {
        const BEGIN: &[u8] = b"-----BEGIN ";
        let rest = &self.buffer[at..];
        if self.buffer[..at].ends_with(b"-") || !rest.starts_with(BEGIN) {
            return match !self.buffer[..at].ends_with(b"-") && BEGIN.starts_with(rest) {
                true => MaskVerdict::open_unless(at_end),
                false => MaskVerdict::None,
            };
        }
        let name = &rest[BEGIN.len()..];
        let of_name = |byte: &&u8| byte.is_ascii_uppercase() || **byte == b' ';
        let length = name.iter().take(48).take_while(of_name).count();
        let behind = &name[length..];
        let dashes = behind
            .iter()
            .take(5)
            .take_while(|byte| **byte == b'-')
            .count();
        if dashes == behind.len() && dashes < 5 && length < 48 {
            return MaskVerdict::open_unless(at_end);
        }
        let private = name[..length]
            .windows(11)
            .any(|word| word == b"PRIVATE KEY");
        if dashes < 5 || !private {
            return MaskVerdict::None;
        }
        // Who only talks of keys goes on otherwise.
        let body = &behind[5..];
        let skipped = between_lines(body);
        let body = &body[skipped..];
        let run = body
            .iter()
            .take(20)
            .take_while(|byte| of_base64(**byte))
            .count();
        // A backslash may begin a line end that is written out.
        let unclear = run == body.len() || body == b"\\";
        if unclear && run < 20 && skipped < BETWEEN && !at_end {
            return MaskVerdict::Open;
        }
        let head = head_of_key(&body[..run], body.get(run));
        if run < 16 && !head {
            return MaskVerdict::None;
        }
        let from = at + BEGIN.len() + length + 5;
        MaskVerdict::hide_then(from, 0, MaskMode::Key(0))
    }

    /// Goes on in a private key.
    fn key(&mut self, at: usize, length: usize, at_end: bool, out: &mut Vec<u8>) -> Option<usize> {
        let rest = &self.buffer[at..];
        let over = |mask: &mut Self, out: &mut Vec<u8>| {
            mask.mode = MaskMode::Text;
            mask.drop_to(at, out);
            Some(at)
        };
        if length > LONGEST_KEY {
            return over(self, out);
        }
        let run = rest
            .iter()
            .take(256)
            .take_while(|byte| of_base64(**byte))
            .count();
        if run > 0 {
            if run == rest.len() && run < 256 && !at_end {
                self.drop_to(at, out);
                return None;
            }
            match rest.get(run) {
                Some(b':' | b'-') if head_of_key(&rest[..run], rest.get(run)) => {
                    self.mode = MaskMode::KeyHead(length);
                }
                None | Some(b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b'-' | b',') => {
                    self.mode = MaskMode::Key(length + run);
                }
                Some(byte) if of_base64(*byte) => self.mode = MaskMode::Key(length + run),
                // A word of a sentence.
                Some(_) => return over(self, out),
            }
            self.drop_to(at + run, out);
            return Some(at + run);
        }
        const END: &[u8] = b"-----END";
        match rest {
            [b'-', ..] if rest.starts_with(END) => over(self, out),
            [b'-', ..] if END.starts_with(rest) && !at_end => {
                self.drop_to(at, out);
                None
            }
            [byte, ..] if byte.is_ascii_whitespace() || b"\\\"'-|>#*,".contains(byte) => {
                self.mode = MaskMode::Key(length + 1);
                self.drop_to(at + 1, out);
                Some(at + 1)
            }
            _ => over(self, out),
        }
    }

    /// Gives out what was held back up to here.
    fn give_to(&mut self, to: usize, out: &mut Vec<u8>) {
        while let Some((place, sequence)) = self.colour_up_to(to) {
            out.extend_from_slice(&self.buffer[self.given..place]);
            out.extend(sequence);
            (self.given, self.colour_at) = (place, place);
        }
        out.extend_from_slice(&self.buffer[self.given..to]);
        self.given = to;
    }

    /// Shows nothing of what was held back up to here but its colours.
    fn drop_to(&mut self, to: usize, out: &mut Vec<u8>) {
        while let Some((place, sequence)) = self.colour_up_to(to) {
            out.extend(sequence);
            self.colour_at = place;
        }
        self.given = to;
    }

    fn colour_up_to(&mut self, to: usize) -> Option<(usize, Vec<u8>)> {
        match self.colours.front() {
            Some((place, _)) if *place <= to => self.colours.pop_front(),
            _ => None,
        }
    }

    /// Forgets what no look back reaches.
    fn compact(&mut self) {
        if self.given < KEPT {
            return;
        }
        let gone = self.given - 2 * LOOK_BACK;
        self.buffer.drain(..gone);
        self.given -= gone;
        self.colour_at = self.colour_at.saturating_sub(gone);
        for (place, _) in &mut self.colours {
            *place = place.saturating_sub(gone);
        }
    }
}

fn of_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Bytes between two lines of a key, however they are quoted.
fn between_lines(text: &[u8]) -> usize {
    let mut at = 0;
    while at < BETWEEN {
        at += match &text[at..] {
            [b'\\', b'n' | b'r' | b't', ..] => 2,
            [b'\\', _, ..] => 1,
            [byte, ..] if byte.is_ascii_whitespace() || b"\"'+-|>#*,".contains(byte) => 1,
            _ => return at,
        };
    }
    at
}

fn head_of_key(word: &[u8], next: Option<&u8>) -> bool {
    match next {
        Some(b'-') => matches!(word, b"Proc" | b"DEK"),
        Some(b':') => matches!(word, b"Version" | b"Comment" | b"Hash" | b"Charset"),
        _ => false,
    }
}

/// Bytes at which a secret may be found.
static STARTS: [bool; 256] = starts();

const fn starts() -> [bool; 256] {
    let mut starts = [false; 256];
    let mut at = 0;
    while at < 256 {
        starts[at] = may_begin(at as u8)
            || matches!(at as u8, b'=' | b':' | b'~' | b'-' | b'b' | b'B' | b'e');
        at += 1;
    }
    starts
}
