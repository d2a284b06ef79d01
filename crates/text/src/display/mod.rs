//! The one place through which text of agents, gates, files, names and people passes on its way to
//! a screen, a pipe, a page or a message: what a terminal would obey and what hides or reorders text
//! is taken out ([`Clean`]), and what looks like a secret is masked ([`Mask`]). Both are push machines
//! with bounded memory: any split of the same bytes gives the same text.
//!
//! `loop logs --raw` and `loop diff --raw` are the ways to the bytes; JSON is escaped by
//! [`escape_json`] instead, since a program wants the exact value.

mod clean;
mod mask;
pub mod sequences;
mod sgr;

pub use clean::{Clean, Returns};
pub use mask::Mask;

/// What becomes of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Those that hide nothing pass.
    Keep,
    /// They go.
    Drop,
}

/// Text that was cleaned and masked. Views take nothing else, so raw text cannot be printed by
/// mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown(Vec<u8>);

impl Shown {
    /// The text; UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds words, cleaned.
    pub fn add(&mut self, words: &str) {
        self.0
            .extend_from_slice(text(words, Colours::Drop).as_bytes());
    }

    /// Adds what was cleaned before.
    pub fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it ends with a line end.
    pub fn ends_line(&self) -> bool {
        self.0.last() == Some(&b'\n')
    }

    /// Ends its last line, and a colour that may be on in it.
    pub fn end_line(&mut self) {
        if self.ends_line() {
            self.0.pop();
        }
        if self.0.contains(&0x1b) {
            self.0.extend_from_slice(b"\x1b[0m");
        }
        self.0.push(b'\n');
    }

    /// Its pieces, each with its line end; the last may have none.
    pub fn lines(&self) -> impl Iterator<Item = Shown> + '_ {
        let lines = self.0.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| Shown(line.to_vec()))
    }
}

/// A whole text, cleaned and masked.
pub fn text(raw: &str, colours: Colours) -> String {
    bytes(raw.as_bytes(), colours).to_text()
}

/// Whole bytes, cleaned and masked.
pub fn bytes(raw: &[u8], colours: Colours) -> Shown {
    let (mut clean, mut out) = (Clean::new(colours), Shown::default());
    clean.push(raw, &mut out);
    clean.finish(&mut out);
    out
}

/// A text in one line: white space and line ends become single blanks.
pub fn one_line(raw: &str) -> String {
    let shown = text(raw, Colours::Drop);
    let words: Vec<&str> = shown.split_whitespace().collect();
    words.join(" ")
}

/// Whether a character may stand on a screen. Besides control characters these are refused: marks
/// that reorder text, fillers and tags that nobody sees. Joiners that scripts and emoji need stay.
pub fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A JSON text in which no character is left that a terminal would obey or that hides or reorders
/// text: JSON's own escapes stand for them, so the value is the same.
pub fn escape_json(json: &str) -> String {
    use std::fmt::Write;
    let odd = |c: char| !is_visible(c) && c != '\n';
    if !json.contains(odd) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 32);
    for c in json.chars() {
        if !odd(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_value_and_loses_what_a_terminal_obeys() {
        let value = serde_json::json!({"a": "x\u{9b}2J\u{202e}y\u{7f}\u{1b}[8m\u{e0041}\n"});
        let json = escape_json(&value.to_string());
        assert!(json.chars().all(is_visible), "{json:?}");
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back, value);
        assert_eq!(escape_json("{\"a\":1}\n"), "{\"a\":1}\n");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb \u{7}c\u{202e}\u{1b}[2Jd "), "a b cd");
        assert_eq!(one_line("a\u{2028}b"), "a b");
        assert_eq!(one_line("password=hunter2x done"), "password=*** done");
    }

    #[test]
    fn text_that_was_cleaned_can_be_joined() {
        let mut all = Shown::default();
        all.add("[1\u{1b}[2J] ");
        all.append(&mut bytes(b"one\ntwo", Colours::Drop));
        assert_eq!(all.to_text(), "[1] one\ntwo");
        assert_eq!(all.lines().count(), 2);
    }
}
