//! Takes terminal sequences out of text and remembers where they stood.

use memchr::memchr;

/// Begins every sequence.
pub(super) const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Longest sequence that is taken for one; a longer one is text.
pub(super) const MAX_SEQUENCE: usize = 4096;

/// Room for stripping, to be used again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Stripper {
    text: Vec<u8>,
    /// From this place in the text on, the bytes stand at that place in the raw bytes.
    runs: Vec<(usize, usize)>,
}

/// Text without its terminal sequences, and the way back to the raw bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    pub(super) text: &'a [u8],
    runs: &'a [(usize, usize)],
}

impl Stripper {
    /// Strips `raw`. No sequence goes over a line's end, so lines may be stripped one by one
    /// or together.
    pub(super) fn strip<'a>(&'a mut self, raw: &'a [u8]) -> Plain<'a> {
        let Some(first) = memchr(ESC, raw) else {
            return Plain {
                text: raw,
                runs: &[],
            };
        };
        self.text.clear();
        self.runs.clear();
        self.keep(raw, 0, first);
        let mut at = first;
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let start = at + sequence_len(rest);
            let behind = raw.get(start..).unwrap_or_default();
            at = start + memchr(ESC, behind).unwrap_or(behind.len());
            self.keep(raw, start, at);
        }
        Plain {
            text: &self.text,
            runs: &self.runs,
        }
    }

    fn keep(&mut self, raw: &[u8], start: usize, end: usize) {
        if let Some(run) = raw.get(start..end).filter(|run| !run.is_empty()) {
            self.runs.push((self.text.len(), start));
            self.text.extend_from_slice(run);
        }
    }
}

impl Plain<'_> {
    /// The text of the raw bytes from `raw` on.
    pub(super) fn text_behind(&self, raw: usize) -> &[u8] {
        let run = self.runs.partition_point(|&(_, start)| start <= raw);
        let place = match run.checked_sub(1).and_then(|run| self.runs.get(run)) {
            Some((text, start)) => {
                let next = self
                    .runs
                    .get(run)
                    .map_or(self.text.len(), |&(text, _)| text);
                (text + (raw - start)).min(next)
            }
            None if self.runs.is_empty() => raw,
            None => 0,
        };
        self.text.get(place..).unwrap_or_default()
    }

    /// Where the text's byte at `place` stood in the raw bytes.
    pub(super) fn raw_place(&self, place: usize) -> usize {
        let run = self.runs.partition_point(|&(text, _)| text <= place);
        match run.checked_sub(1).and_then(|run| self.runs.get(run)) {
            Some((text, raw)) => raw + (place - text),
            None => place,
        }
    }
}

/// Whether there is anything to strip.
pub(super) fn has_sequences(raw: &[u8]) -> bool {
    memchr(ESC, raw).is_some()
}

/// Length of what the escape character at the start of `bytes` takes with it, at least 1.
pub(super) fn sequence_len(bytes: &[u8]) -> usize {
    let len = match bytes.get(1) {
        Some(b'[') => csi_len(bytes),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string_len(bytes),
        Some(0x20..=0x2f) => designation_len(bytes),
        // Meant as the beginning of a tag far more often than as an order to a VT52.
        Some(b'<') => 1,
        Some(0x30..=0x7e) => 2,
        _ => 1,
    };
    if len > MAX_SEQUENCE { 1 } else { len }
}

/// `ESC [`, parameters, intermediates, a final letter. One that is cut off takes what there is
/// of it, and nothing of what follows.
fn csi_len(bytes: &[u8]) -> usize {
    let mut end = 2;
    while let Some(0x30..=0x3f) = bytes.get(end) {
        end += 1;
    }
    while let Some(0x20..=0x2f) = bytes.get(end) {
        end += 1;
    }
    end + usize::from(matches!(bytes.get(end), Some(0x40..=0x7e)))
}

/// `ESC ]` and its like up to BEL or `ESC \`. One never ended hides nothing but its escape.
fn string_len(bytes: &[u8]) -> usize {
    let window = bytes
        .get(2..bytes.len().min(MAX_SEQUENCE))
        .unwrap_or_default();
    let stop = window
        .iter()
        .position(|b| matches!(*b, BEL | ESC | b'\n' | b'\r'));
    match stop.map(|stop| (stop, bytes.get(2 + stop), bytes.get(3 + stop))) {
        Some((stop, Some(&BEL), _)) => stop + 3,
        Some((stop, Some(&ESC), Some(b'\\'))) => stop + 4,
        _ => 1,
    }
}

/// `ESC ( B` and its like.
fn designation_len(bytes: &[u8]) -> usize {
    let middle = bytes
        .iter()
        .skip(1)
        .take_while(|b| (0x20..=0x2f).contains(*b))
        .count();
    match bytes.get(1 + middle) {
        Some(0x30..=0x7e) => 2 + middle,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(raw: &[u8]) -> Vec<u8> {
        Stripper::default().strip(raw).text.to_vec()
    }

    #[test]
    fn sequences_of_every_kind_leave_the_text() {
        for raw in [
            &b"a\x1b[1;38;5;40mb\x1b[m\x1b[?25h"[..],
            b"a\x1b]0;title\x07b",
            b"a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\",
            b"a\x1bP1$r0m\x1b\\b",
            b"\x1b(Ba\x1b7b\x1b8\x1b=",
            b"ab\x1b",
            b"ab\x1b[38;5",
            b"\x1b\x1b[1mab",
        ] {
            assert_eq!(strip(raw), b"ab", "{}", raw.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_sequence_stays() {
        assert_eq!(strip(b"\x1b]0;never\nab"), b"]0;never\nab");
        assert_eq!(strip(b"\x1b<promise>"), b"<promise>");
        assert_eq!(strip(b"\x1b[1\nm"), b"\nm");
        assert_eq!(strip(b"\x1b[2. <promise>"), b"<promise>");
        let long = [&b"\x1b]0;"[..], &[b't'; MAX_SEQUENCE], b"\x07"].concat();
        assert_eq!(strip(&long).len(), long.len() - 1);
        let fits = [&b"\x1b]0;"[..], &[b't'; MAX_SEQUENCE - 5], b"\x07"].concat();
        assert_eq!(strip(&fits), b"");
        let colours = [&b"\x1b["[..], &[b';'; MAX_SEQUENCE], b"m"].concat();
        assert_eq!(strip(&colours).len(), colours.len() - 1);
    }

    #[test]
    fn places_lead_back_to_the_raw_bytes() {
        let raw = b"\x1b[1mab\x1b[0m\x1b[2mc\x1b[0m";
        let mut stripper = Stripper::default();
        let plain = stripper.strip(raw);
        assert_eq!(plain.text, b"abc");
        for (place, byte) in plain.text.iter().enumerate() {
            assert_eq!(raw[plain.raw_place(place)], *byte);
        }
        for (raw_from, text) in [
            (0, "abc"),
            (4, "abc"),
            (5, "bc"),
            (6, "c"),
            (14, "c"),
            (15, ""),
        ] {
            assert_eq!(plain.text_behind(raw_from), text.as_bytes(), "{raw_from}");
        }
        let mut stripper = Stripper::default();
        let plain = stripper.strip(b"abc");
        assert_eq!((plain.raw_place(2), plain.text_behind(2)), (2, &b"c"[..]));
    }
}
