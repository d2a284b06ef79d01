//! Bytes cut into lines, in bounded memory.

/// The longest line that is parsed. Tools' results of some megabytes stand on one line.
const LONGEST: usize = 16 * 1024 * 1024;
/// A buffer that grew for one long line is given back.
const HELD: usize = 1024 * 1024;

/// A line without its newline.
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// It was longer than [`LONGEST`]; its bytes are gone.
    Cut,
}

/// Holds the beginning of a line until its end comes.
#[derive(Default)]
pub(super) struct StreamLines {
    held: Vec<u8>,
    over: bool,
}

impl StreamLines {
    pub fn push(&mut self, mut bytes: &[u8], mut on: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.held.is_empty() && !self.over && line.len() <= LONGEST {
                on(Line::Whole(line));
            } else {
                self.hold(line);
                self.give(&mut on);
            }
        }
        self.hold(bytes);
    }

    /// Gives the last line where it has no newline.
    pub fn finish(&mut self, mut on: impl FnMut(Line<'_>)) {
        if self.over || !self.held.is_empty() {
            self.give(&mut on);
        }
    }

    /// More of the present line, whatever it holds.
    pub fn hold(&mut self, bytes: &[u8]) {
        if self.over || self.held.len() + bytes.len() > LONGEST {
            self.over = true;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn give(&mut self, on: &mut impl FnMut(Line<'_>)) {
        if self.over {
            on(Line::Cut);
        } else {
            on(Line::Whole(&self.held));
        }
        self.over = false;
        self.held.clear();
        self.held.shrink_to(HELD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        let mut lines = StreamLines::default();
        let mut got = Vec::new();
        let mut on = |line: Line<'_>| {
            got.push(match line {
                Line::Whole(line) => Some(line.to_vec()),
                Line::Cut => None,
            });
        };
        for chunk in chunks {
            lines.push(chunk, &mut on);
        }
        lines.finish(&mut on);
        got
    }

    #[test]
    fn lines_are_the_same_however_they_are_split() {
        let want = [
            Some(b"a".to_vec()),
            Some(b"".to_vec()),
            Some(b"bc".to_vec()),
        ];
        assert_eq!(cut(&[b"a\n\nbc"]), want);
        assert_eq!(cut(&[b"a", b"\n", b"", b"\nb", b"c"]), want);
        assert_eq!(cut(&[b"a\n\nbc\n"]), want);
        assert!(cut(&[b""]).is_empty());
    }

    #[test]
    fn a_line_too_long_is_cut_and_the_next_one_is_read() {
        let huge = vec![b'x'; LONGEST + 1];
        let want = [None, Some(b"next".to_vec())];
        assert_eq!(cut(&[&huge, b"\nnext"]), want);
        let whole = [&huge[..], b"\nnext"].concat();
        assert_eq!(cut(&[&whole]), want);
        let exact = [&huge[1..], b"\n"].concat();
        assert_eq!(cut(&[&exact]), [Some(huge[1..].to_vec())]);
        let (a, b) = exact.split_at(5);
        assert_eq!(cut(&[a, b]), [Some(huge[1..].to_vec())]);
    }
}
