//! Places in a text: what is put in there, and what is wrong there.

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

impl SettingsProblem {
    pub fn at(text: &str, offset: usize, what: &str) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line..].chars().count() + 1,
            what: what.to_owned(),
        }
    }
}

/// A text that is put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    pub at: usize,
    pub text: String,
}

impl Insertion {
    pub fn new(at: usize, text: String) -> Self {
        Self { at, text }
    }
}
