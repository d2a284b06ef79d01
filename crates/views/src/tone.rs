//! What a piece of text means. Each medium has one look for each: a colour, a weight, a class of a
//! style sheet. Everything is understandable without them.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Normal,
    /// Work under way, or a value that matters.
    Strong,
    /// What stands back.
    Dim,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Look here.
    Warn,
}

/// A text of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub tone: Tone,
    pub text: String,
}

impl Cell {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { tone, text }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(Tone::Normal, text)
    }
}
