//! Colours, as far as they are wanted. Everything is understandable without them.

use descartes_text::display::Colours;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Colour,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Normal,
    /// A heading or a value that matters.
    Strong,
    Dim,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Look here.
    Warn,
}

impl Tone {
    /// The SGR parameters.
    fn code(self) -> &'static str {
        match self {
            Self::Normal => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
        }
    }
}

impl Paint {
    /// What becomes of the colours in a text.
    pub fn colours(self) -> Colours {
        match self {
            Self::Plain => Colours::Drop,
            Self::Colour => Colours::Keep,
        }
    }

    /// The text in its colour.
    pub fn text(self, tone: Tone, text: &str) -> String {
        if self == Self::Plain || tone == Tone::Normal || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", tone.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_escapes_and_colours_always_end() {
        assert_eq!(Paint::Plain.text(Tone::Bad, "x"), "x");
        assert_eq!(Paint::Colour.text(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Paint::Colour.text(Tone::Normal, "x"), "x");
    }
}
