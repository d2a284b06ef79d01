//! Tells terminal sequences from text, by the state machine of `anstyle-parse`. Output is often cut
//! off, so a sequence that has no end must not hide what follows: a line end and BEL end every one.

pub use anstyle_parse::state::Action;
use anstyle_parse::state::{State, state_change};

/// A sequence that does not end is given up here.
const LONGEST_SEQUENCE: usize = 4 << 10;
const ESC: u8 = 0x1b;

/// Where in a text or a sequence we are.
#[derive(Debug, Default)]
pub struct Sequences {
    state: State,
    /// Characters since the state last changed.
    length: usize,
}

impl Sequences {
    /// Whether no sequence has begun.
    pub fn in_text(&self) -> bool {
        self.state == State::Ground
    }

    /// Whether a character is text, or a control character outside of sequences.
    pub fn is_text(&mut self, c: char) -> bool {
        matches!(self.take(c), Action::Print | Action::Execute)
    }

    /// What a character does: text is printed, control characters are executed.
    #[inline]
    pub fn take(&mut self, c: char) -> Action {
        match c {
            '\n' | '\r' | '\u{7}' => {
                self.state = State::Ground;
                Action::Execute
            }
            '\0'..='\u{7f}' => self.step(c as u8),
            // The controls beyond ASCII stand for ESC and a letter.
            '\u{80}'..='\u{9f}' => {
                self.step(ESC);
                self.step(c as u8 - 0x40)
            }
            _ if self.in_string() => self.step(b'x'),
            _ => {
                self.state = State::Ground;
                Action::Print
            }
        }
    }

    /// How many bytes from here on are swallowed by a string, as [`take`](Self::take) would.
    pub fn swallow(&mut self, bytes: &[u8]) -> usize {
        let inside = matches!(
            self.state,
            State::OscString | State::SosPmApcString | State::DcsPassthrough | State::DcsIgnore
        );
        if !inside {
            return 0;
        }
        let bytes = &bytes[..bytes.len().min(LONGEST_SEQUENCE - self.length)];
        let end = bytes.iter().position(|byte| !matches!(byte, b' '..=b'~'));
        let swallowed = end.unwrap_or(bytes.len());
        self.length += swallowed;
        swallowed
    }

    #[inline]
    fn step(&mut self, byte: u8) -> Action {
        let (next, action) = state_change(self.state, byte);
        // `Anywhere` stands for no change.
        if next != State::Anywhere {
            self.state = next;
            self.length = 0;
        } else if self.length < LONGEST_SEQUENCE {
            self.length += 1;
        } else {
            self.state = State::Ground;
        }
        action
    }

    fn in_string(&self) -> bool {
        matches!(
            self.state,
            State::OscString
                | State::SosPmApcString
                | State::DcsEntry
                | State::DcsIgnore
                | State::DcsIntermediate
                | State::DcsParam
                | State::DcsPassthrough
        )
    }
}
