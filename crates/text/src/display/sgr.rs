//! Colours that may pass: those that hide nothing.

/// A colour: of the palette, or by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Index(u16),
    Parts(u16, u16, u16),
}

impl From<u16> for Colour {
    fn from(index: u16) -> Self {
        Self::Index(index)
    }
}

/// What is drawn on what, as far as it was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sgr {
    front: Option<Colour>,
    back: Option<Colour>,
    /// Something other than plain text is switched on.
    open: bool,
}

impl Sgr {
    /// Whether a colour is still on.
    pub(super) fn is_open(self) -> bool {
        self.open
    }

    /// The parameters that may pass; empty where none may. Hidden text and blinking may not, and
    /// no text in the colour of its background.
    pub(super) fn take(&mut self, parameters: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(parameters.len());
        // `38:2::1:2:3` is one parameter with parts, `38;2;1;2;3` five.
        let mut words = parameters.split(|byte| *byte == b';');
        while let Some(word) = words.next() {
            let (first, parts) = match word.iter().position(|byte| *byte == b':') {
                Some(at) => (&word[..at], Some(&word[at + 1..])),
                None => (word, None),
            };
            let Some(code) = number(first) else { continue };
            match code {
                0 => {
                    *self = Self::default();
                    kept.clear();
                    add(&mut kept, b"0");
                }
                1..=4 | 7 | 9 | 21 | 53 => {
                    self.open = true;
                    // The kinds of an underline are `4:0` to `4:5`.
                    let kind = parts.filter(|parts| code == 4 && matches!(parts, [b'0'..=b'5']));
                    add(&mut kept, kind.map_or(first, |_| word));
                }
                22..=25 | 27..=29 | 55 | 59 => add(&mut kept, first),
                30..=37 => self.set(ColourTarget::Front, code - 30, &mut kept, first),
                40..=47 => self.set(ColourTarget::Back, code - 40, &mut kept, first),
                90..=97 => self.set(ColourTarget::Front, code - 82, &mut kept, first),
                100..=107 => self.set(ColourTarget::Back, code - 92, &mut kept, first),
                39 => {
                    self.front = None;
                    add(&mut kept, first);
                }
                49 => {
                    self.back = None;
                    add(&mut kept, first);
                }
                38 | 48 | 58 => {
                    let given: Vec<u16> = match parts {
                        Some(parts) => {
                            let parts = parts.split(|byte| *byte == b':');
                            parts
                                .filter(|part| !part.is_empty())
                                .map_while(number)
                                .collect()
                        }
                        None => extended(&mut words),
                    };
                    let Some(colour) = colour(&given) else {
                        continue;
                    };
                    let ground = match code {
                        38 => ColourTarget::Front,
                        48 => ColourTarget::Back,
                        _ => ColourTarget::Underline,
                    };
                    let whole = match colour {
                        Colour::Index(index) => format!("{code};5;{index}"),
                        Colour::Parts(red, green, blue) => format!("{code};2;{red};{green};{blue}"),
                    };
                    self.set(ground, colour, &mut kept, whole.as_bytes());
                }
                _ => {}
            }
        }
        kept
    }

    fn set(
        &mut self,
        ground: ColourTarget,
        colour: impl Into<Colour>,
        kept: &mut Vec<u8>,
        word: &[u8],
    ) {
        let colour = colour.into();
        let other = match ground {
            ColourTarget::Front => self.back,
            ColourTarget::Back => self.front,
            ColourTarget::Underline => None,
        };
        if other == Some(colour) {
            return;
        }
        match ground {
            ColourTarget::Front => self.front = Some(colour),
            ColourTarget::Back => self.back = Some(colour),
            ColourTarget::Underline => {}
        }
        self.open = true;
        add(kept, word);
    }
}

fn add(kept: &mut Vec<u8>, word: &[u8]) {
    if !kept.is_empty() {
        kept.push(b';');
    }
    kept.extend_from_slice(word);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColourTarget {
    Front,
    Back,
    Underline,
}

fn number(text: &[u8]) -> Option<u16> {
    if text.len() > 5 {
        return None;
    }
    let digit = |sum: u16, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    text.iter().try_fold(0, digit)
}

/// The parameters of an extended colour that follow as parameters of their own.
fn extended<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Vec<u16> {
    let kind = words.next().and_then(number).unwrap_or_default();
    let count = match kind {
        5 => 1,
        2 => 3,
        _ => 0,
    };
    let rest = words.take(count).map_while(number);
    std::iter::once(kind).chain(rest).collect()
}

fn colour(given: &[u16]) -> Option<Colour> {
    match given {
        [5, index] if *index < 256 => Some(Colour::Index(*index)),
        [2, red, green, blue] => Some(Colour::Parts(*red, *green, *blue)),
        // With a colour space in front.
        [2, _, red, green, blue, ..] => Some(Colour::Parts(*red, *green, *blue)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_text_stays_visible() {
        for (given, want) in [
            ("31", "31"),
            ("", "0"),
            ("0", "0"),
            ("1;32", "1;32"),
            ("8", ""),
            ("5", ""),
            ("1;8;31", "1;31"),
            ("30;40", "30"),
            ("38;5;7;48;5;7", "38;5;7"),
            ("37;48;5;7", "37"),
            ("38;2;1;2;3;48;2;1;2;3", "38;2;1;2;3"),
            ("38:2::1:2:3", "38;2;1;2;3"),
            ("38;5", ""),
            ("38;9;1", "1"),
            ("4:3", "4:3"),
            ("10;11;20", ""),
            ("31;0;32", "0;32"),
            ("99999999", ""),
            ("?25", ""),
        ] {
            assert_eq!(
                Sgr::default().take(given.as_bytes()),
                want.as_bytes(),
                "{given:?}"
            );
        }
        let mut sgr = Sgr::default();
        sgr.take(b"31");
        assert!(sgr.is_open());
        assert_eq!(sgr.take(b"41"), b"");
        assert_eq!(sgr.take(b"0"), b"0");
        assert!(!sgr.is_open());
        assert_eq!(sgr.take(b"41"), b"41");
    }
}
