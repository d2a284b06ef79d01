//! Colours, as far as they are wanted. Everything is understandable without them.

use descartes_text::display::Colours;
pub use descartes_views::tone::{Cell, Tone};

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Colour,
}

/// The SGR parameters.
fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Normal => "",
        Tone::Strong => "1",
        Tone::Dim => "2",
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Warn => "33",
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
        format!("\x1b[{}m{text}\x1b[0m", code(tone))
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
