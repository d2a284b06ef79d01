//! Whole lines of one that is not alone in speaking.

/// A line without an end is shown in pieces.
const LONGEST: usize = 16 << 10;

/// Holds what is no whole line yet.
#[derive(Debug, Default)]
pub(super) struct WholeLines {
    /// Stands in front of every line.
    before: Vec<u8>,
    /// Stands behind the words of every line that may have changed the colour.
    after: &'static [u8],
    held: Vec<u8>,
}

impl WholeLines {
    /// Lines with this in front.
    pub(super) fn behind(before: String, after: &'static [u8]) -> Self {
        Self {
            before: before.into_bytes(),
            after,
            held: Vec::new(),
        }
    }

    /// Takes bytes, gives the lines that they finish.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.held.len() >= LONGEST {
                self.give(&mut out);
            }
        }
        out
    }

    /// Gives what is left.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.held.is_empty() {
            self.give(&mut out);
        }
        out
    }

    fn give(&mut self, out: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.held);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        out.extend_from_slice(&self.before);
        out.extend_from_slice(line);
        if line.contains(&0x1b) {
            out.extend_from_slice(self.after);
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_they_come() {
        for size in 1..9 {
            let mut lines = WholeLines::behind("[1] ".to_owned(), b"\x1b[0m");
            let mut out = Vec::new();
            for piece in b"one\n\n\x1b[1mtwo\nrest".chunks(size) {
                out.extend(lines.push(piece));
            }
            assert_eq!(out, b"[1] one\n[1] \n[1] \x1b[1mtwo\x1b[0m\n");
            assert_eq!(lines.finish(), b"[1] rest\n");
            assert_eq!(lines.finish(), b"");
        }
    }

    #[test]
    fn a_line_without_an_end_is_shown_all_the_same() {
        let mut lines = WholeLines::default();
        assert_eq!(lines.push(&[b'x'; LONGEST]).len(), LONGEST + 1);
    }
}
