//! What stood before a line: a bounded memory of the stream.

use std::borrow::Cow;

use memchr::{memchr2, memrchr2};

use super::ansi::Stripper;
use super::chars::is_nothing;

/// How much of the stream before a line is always at hand.
const KEEP: usize = 32 * 1024;

/// How far back the words that go with a claim are looked for, before sequences are taken out.
const WORDS_SIGHT: usize = 4096;

/// Most bytes of words that go with a claim.
const MAX_WORDS: usize = 500;

/// As far back as this most claims can be told from echoes.
const RECENT: usize = 1024;

/// The end of the stream up to the last complete line.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookback {
    kept: Vec<u8>,
}

impl Lookback {
    /// Goes on with `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let fresh = last(bytes, KEEP);
        if fresh.len() == KEEP {
            self.kept.clear();
        } else if self.kept.len() + fresh.len() > 4 * KEEP {
            // Rare enough that moving the rest costs nothing.
            self.kept.drain(..self.kept.len().saturating_sub(KEEP));
        }
        self.kept.extend_from_slice(fresh);
    }

    /// What stands before a line, where `newer` came after all that was pushed.
    pub(super) fn before<'a>(&'a self, newer: &'a [u8]) -> Before<'a> {
        Before {
            older: &self.kept,
            newer,
        }
    }
}

/// The stream before a line, in two parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    older: &'a [u8],
    newer: &'a [u8],
}

impl Before<'_> {
    /// Exactly the last `count` bytes, or all where there are fewer.
    fn last(&self, count: usize) -> Cow<'_, [u8]> {
        let newer = last(self.newer, count);
        if newer.len() == count || self.older.is_empty() {
            return Cow::Borrowed(newer);
        }
        if newer.is_empty() {
            return Cow::Borrowed(last(self.older, count));
        }
        Cow::Owned([last(self.older, count - newer.len()), newer].concat())
    }

    /// The last few lines.
    pub(super) fn recent_lines(&self) -> Cow<'_, [u8]> {
        whole_lines(self.last(RECENT), RECENT)
    }

    /// All lines that are kept.
    pub(super) fn lines(&self) -> Cow<'_, [u8]> {
        whole_lines(self.last(KEEP), KEEP)
    }

    /// The byte before the line, a line's end unless the stream begins there.
    pub(super) fn last_byte(&self) -> Option<u8> {
        self.newer.last().or(self.older.last()).copied()
    }

    /// The last words said, ending in `own`, those of the line itself.
    pub(super) fn words(&self, own: &[u8]) -> String {
        let raw = self.last(WORDS_SIGHT);
        let mut stripper = Stripper::default();
        let mut lines = vec![readable(last(own, WORDS_SIGHT))];
        let mut length = lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let mut rest: &[u8] = &raw;
        // From the end, and no further than words are wanted: a stream of nothing but claims asks
        // for this at every line.
        while length <= MAX_WORDS && !rest.is_empty() {
            let start = memrchr2(b'\n', b'\r', rest).map_or(0, |end| end + 1);
            let (head, line) = rest.split_at(start);
            let line = readable(stripper.strip(line).text);
            if !line.is_empty() {
                length += line.len() + 1;
                lines.push(line);
            }
            rest = head.split_last().map_or(&[], |(_, head)| head);
        }
        lines.retain(|line| !line.is_empty());
        lines.reverse();
        shorten(&lines.join("\n")).to_owned()
    }
}

/// From the first beginning of a line on, where `bytes` are the last `count` of more: what is
/// cut off there may be the rest of a terminal sequence.
fn whole_lines(bytes: Cow<'_, [u8]>, count: usize) -> Cow<'_, [u8]> {
    // A line longer than half of it is better cut than lost.
    let head = bytes.get(..bytes.len() / 2).unwrap_or_default();
    let start = match memchr2(b'\n', b'\r', head) {
        Some(end) if bytes.len() >= count => end + 1,
        _ => return bytes,
    };
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(start..).unwrap_or_default()),
        Cow::Owned(mut bytes) => {
            bytes.drain(..start);
            Cow::Owned(bytes)
        }
    }
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(count)..)
        .unwrap_or_default()
}

fn readable(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches(is_nothing);
    let unreadable = |c: char| c.is_control() && c != '\t';
    if line.contains(unreadable) {
        line.replace(unreadable, "")
    } else {
        line.to_owned()
    }
}

/// The last words that fit, from the beginning of one.
fn shorten(text: &str) -> &str {
    if text.len() <= MAX_WORDS {
        return text;
    }
    let mut start = text.len() - MAX_WORDS;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let text = text.get(start..).unwrap_or_default();
    match text.find(char::is_whitespace) {
        Some(space) => text.get(space..).unwrap_or_default().trim_start(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_always_holds_enough() {
        let mut lookback = Lookback::default();
        let stream: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let mut at = 0;
        for size in [1, 7, KEEP - 1, 3, KEEP + 5, 60_000, 2, 9_000]
            .iter()
            .cycle()
            .take(20)
        {
            let end = (at + size).min(stream.len());
            lookback.push(&stream[at..end]);
            at = end;
            let wanted = &stream[at.saturating_sub(KEEP)..at];
            assert_eq!(lookback.before(b"").last(KEEP), wanted);
            assert!(lookback.kept.len() <= 4 * KEEP);
        }
    }

    #[test]
    fn what_is_compared_begins_with_a_line() {
        let mut lookback = Lookback::default();
        lookback.push(b"first\nsecond\n");
        assert_eq!(lookback.before(b"").lines().as_ref(), b"first\nsecond\n");
        let long = [&b"\x1b]0;"[..], &[b'x'; RECENT], b"\n", &[b'y'; 900], b"\n"].concat();
        lookback.push(&long);
        let recent = lookback.before(b"").recent_lines().into_owned();
        assert_eq!(recent, [&[b'y'; 900][..], b"\n"].concat());
        assert_eq!(lookback.before(b"a\r").last_byte(), Some(b'\r'));
        assert_eq!(Lookback::default().before(b"").last_byte(), None);
    }

    #[test]
    fn words_are_the_last_ones_that_fit() {
        let mut lookback = Lookback::default();
        lookback.push(b"No \x1b[31mkey\x1b[0m.\r\n\r\nAsk the \xffowner.\n");
        assert_eq!(
            lookback.before(b"").words(b"Sorry. "),
            "No key.\nAsk the \u{fffd}owner.\nSorry."
        );
        lookback.push("wörter ".repeat(300).as_bytes());
        let words = lookback.before(b"\n").words(b"end");
        assert!(
            words.len() <= MAX_WORDS && words.len() > MAX_WORDS - 20,
            "{}",
            words.len()
        );
        assert!(
            words.starts_with("wörter w") && words.ends_with("wörter\nend"),
            "{words}"
        );
    }
}
