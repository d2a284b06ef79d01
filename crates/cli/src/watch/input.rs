//! Keys, out of the bytes that a terminal sends. A push machine: a sequence may arrive in
//! pieces, and what is unknown is passed over.

/// A key, a paste or the mouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// Text that was pasted.
    Paste(String),
    /// The wheel or a button, at a column and a row from 0.
    Mouse(Mouse, u16, u16),
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    Press,
    WheelUp,
    WheelDown,
}

const ESC: u8 = 0x1b;
/// A sequence that does not end is given up here.
const LONGEST: usize = 64;
/// The most that is taken of a paste.
const PASTE: usize = 64 << 10;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Makes keys of bytes.
#[derive(Debug, Default)]
pub struct Keys {
    held: Vec<u8>,
    /// Within a paste.
    paste: Option<Vec<u8>>,
}

impl Keys {
    /// Takes bytes, adds the keys that are whole.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Key>) {
        for byte in bytes {
            match &mut self.paste {
                Some(text) => {
                    text.push(*byte);
                    if text.ends_with(PASTE_END) {
                        text.truncate(text.len() - PASTE_END.len());
                        text.truncate(PASTE);
                        out.push(Key::Paste(String::from_utf8_lossy(text).into_owned()));
                        self.paste = None;
                    }
                }
                None => {
                    self.held.push(*byte);
                    self.take(out);
                }
            }
        }
    }

    /// Whether a sequence has begun and not ended.
    pub fn is_open(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nothing followed: a lone ESC is the key.
    pub fn flush(&mut self, out: &mut Vec<Key>) {
        if self.held == [ESC] {
            out.push(Key::Esc);
        }
        self.held.clear();
    }

    fn take(&mut self, out: &mut Vec<Key>) {
        let key = match self.held.as_slice() {
            [] | [ESC] | [ESC, b'[' | b'O'] => return,
            [ESC, b'[', rest @ ..] => match rest {
                [.., 0x40..=0x7e] if rest != b"[" => {
                    if rest == b"200~" {
                        self.paste = Some(Vec::new());
                    }
                    sequence(rest)
                }
                _ if rest.len() > LONGEST => None,
                _ => return,
            },
            [ESC, b'O', letter] => sequence(&[*letter]),
            // Alt and a key: the key alone has no other meaning here.
            [ESC, ESC] => {
                self.held.pop();
                out.push(Key::Esc);
                return;
            }
            [ESC, ..] => None,
            [b'\r' | b'\n'] => Some(Key::Enter),
            [b'\t'] => Some(Key::Tab),
            [0x7f | 0x08] => Some(Key::Backspace),
            [0] => None,
            [control @ 1..=0x1a] => Some(Key::Ctrl(char::from(control + b'a' - 1))),
            bytes => match std::str::from_utf8(bytes) {
                Ok(text) => text
                    .chars()
                    .next()
                    .filter(|c| !c.is_control())
                    .map(Key::Char),
                Err(error) if error.error_len().is_none() => return,
                Err(_) => None,
            },
        };
        self.held.clear();
        out.extend(key);
    }
}

/// What stands behind `ESC [` or `ESC O`.
fn sequence(rest: &[u8]) -> Option<Key> {
    if let [b'<', numbers @ .., end @ (b'M' | b'm')] = rest {
        return mouse(numbers, *end);
    }
    let (end, numbers) = rest.split_last()?;
    let first = numbers.split(|byte| *byte == b';').next().unwrap_or(b"");
    Some(match (end, first) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'Z', _) => Key::BackTab,
        (b'M', _) => Key::Enter,
        _ => return None,
    })
}

fn mouse(numbers: &[u8], end: u8) -> Option<Key> {
    let text = std::str::from_utf8(numbers).ok()?;
    let mut parts = text.split(';').map(|part| part.parse::<u16>().ok());
    let (button, column, row) = (parts.next()??, parts.next()??, parts.next()??);
    let what = match (button, end) {
        (0, b'M') => Mouse::Press,
        (64, _) => Mouse::WheelUp,
        (65, _) => Mouse::WheelDown,
        _ => return None,
    };
    Some(Key::Mouse(
        what,
        column.saturating_sub(1),
        row.saturating_sub(1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let (mut keys, mut out) = (Keys::default(), Vec::new());
        for piece in pieces {
            keys.push(piece, &mut out);
        }
        keys.flush(&mut out);
        out
    }

    #[test]
    fn keys_and_sequences_are_told_apart() {
        assert_eq!(
            keys(&[b"q\x1b[A\x1bOB\x1b[5~\x1b[Z\r\t\x7f\x03"]),
            [
                Key::Char('q'),
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::BackTab,
                Key::Enter,
                Key::Tab,
                Key::Backspace,
                Key::Ctrl('c')
            ]
        );
        assert_eq!(keys(&["é日".as_bytes()]), [Key::Char('é'), Key::Char('日')]);
        assert_eq!(keys(&[b"\x1b"]), [Key::Esc]);
        assert_eq!(keys(&[b"\x1b\x1b[A"]), [Key::Esc, Key::Up]);
        assert_eq!(
            keys(&[b"\x1b[1;5C\xff\x1b[99x", b"j"]),
            [Key::Right, Key::Char('j')]
        );
        assert_eq!(
            keys(&[b"\x1b[<65;10;3M\x1b[<0;1;1M\x1b[<0;1;1m"]),
            [
                Key::Mouse(Mouse::WheelDown, 9, 2),
                Key::Mouse(Mouse::Press, 0, 0)
            ]
        );
    }

    #[test]
    fn a_paste_is_one_text_and_presses_no_keys() {
        assert_eq!(
            keys(&[b"\x1b[200~quit: q\nand c\x1b[201~", b"x"]),
            [Key::Paste("quit: q\nand c".into()), Key::Char('x')]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_split_give_the_same_keys(
            bytes in prop::collection::vec(prop_oneof![
                Just(27_u8), Just(b'['), Just(b'O'), Just(b'A'), Just(b'<'), Just(b';'), any::<u8>()
            ], 0..40),
            cut in 0_usize..40,
        ) {
            let cut = cut.min(bytes.len());
            prop_assert_eq!(keys(&[&bytes]), keys(&[&bytes[..cut], &bytes[cut..]]));
        }
    }
}
