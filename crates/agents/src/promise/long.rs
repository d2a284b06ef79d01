//! A line without an end: only what can still matter of it is kept.

use memchr::memrchr;

use super::ansi::{ESC, MAX_SEQUENCE, Plain, Stripper};
use super::chars::{chars, has_words, is_blank};
use super::find::whole_words;
use super::judge::{Found, LineStanding, PromiseLine, PromiseRules, Start, is_quote_line};
use super::sentence::may_follow;
use super::verdict::Sighting;

/// How much of a long line's end is always kept.
const TAIL: usize = 64 * 1024;

/// Lines up to this length are kept whole.
pub(super) const MAX_WHOLE: usize = 2 * TAIL;

/// A line longer than [`MAX_WHOLE`]. Nothing but ornament may follow a tag on its line; what
/// stands in the part that is gone is remembered as long as it may still matter.
#[derive(Clone, Debug)]
pub(super) struct LongLine {
    /// Offset of the window in the stream.
    start: u64,
    /// The last bytes, at least `TAIL`; it slides in steps that depend on the line alone.
    window: Window,
    place: WindowStart,
    speaker: Speaker,
    /// How much of the window's beginning is known to hold nothing that is worth a look.
    searched: usize,
    /// Whether all that the window has passed is white space.
    blank: bool,
    /// The last words that count anywhere in what the window has passed.
    passed: Option<Sighting>,
    /// The last tag in it.
    tag: Option<Sighting>,
}

/// Where in its line the window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowStart {
    First,
    /// Maybe inside a terminal sequence.
    Later,
}

/// Whose words the line's beginning says they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Agent,
    Quoted,
}

impl LongLine {
    /// Begins with the first bytes of a line, which starts at `start` in the stream.
    pub(super) fn new(rules: &PromiseRules, start: u64, bytes: &[u8]) -> Self {
        let head = bytes.get(..2 * MAX_SEQUENCE).unwrap_or(bytes);
        let quoted = is_quote_line(Stripper::default().strip(head).text);
        let mut line = Self {
            start,
            window: Window::default(),
            place: WindowStart::First,
            speaker: if quoted {
                Speaker::Quoted
            } else {
                Speaker::Agent
            },
            searched: 0,
            blank: true,
            passed: None,
            tag: None,
        };
        line.push(rules, bytes);
        line
    }

    pub(super) fn push(&mut self, rules: &PromiseRules, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = 2 * TAIL - self.window.bytes().len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.window.push(now);
            rest = later;
            if self.window.bytes().len() == 2 * TAIL {
                self.slide(rules);
            }
        }
    }

    /// Offset of the window in the stream.
    pub(super) fn offset(&self) -> u64 {
        self.start
    }

    /// The end of it that is kept.
    pub(super) fn window(&self) -> &[u8] {
        self.window.bytes()
    }

    /// How much of the line's beginning the window holds.
    pub(super) fn start(&self) -> Start {
        match (self.place, self.blank) {
            (WindowStart::First, _) => Start::Whole,
            (WindowStart::Later, true) => Start::Indented,
            (WindowStart::Later, false) => Start::Cut,
        }
    }

    /// The promise in the line if it ends here. `plain` is the window's text.
    pub(super) fn judge(&self, rules: &PromiseRules, plain: Plain<'_>) -> Option<Sighting> {
        if self.speaker == Speaker::Quoted {
            return None;
        }
        let (found, tag) = (self.found(rules, plain), self.tag_so_far(plain));
        match (found, tag) {
            (Some(found), _) if found.standing == LineStanding::Claim => Some(found),
            (_, Some(tag)) if tag.standing == LineStanding::Claim => Some(tag),
            (found, tag) => self.passed.clone().or(found).or(tag),
        }
    }

    /// What is found in the window.
    fn found(&self, rules: &PromiseRules, plain: Plain<'_>) -> Option<Sighting> {
        let found = rules.judge(PromiseLine {
            text: plain.text,
            start: self.start(),
        });
        let sure = found.filter(|found| plain.raw_place(found.span.start) >= self.sure_from());
        sure.map(|found| Sighting::new(&found, plain, self.start))
    }

    /// The tag that the window has passed, as what the window holds behind it lets it stand.
    fn tag_so_far(&self, plain: Plain<'_>) -> Option<Sighting> {
        let mut tag = self.tag.clone()?;
        let behind = tag.offset.saturating_sub(self.start);
        let behind = usize::try_from(behind).unwrap_or(0).max(self.sure_from());
        let rest = plain.text_behind(behind);
        if tag.standing == LineStanding::Claim && !chars(rest).all(may_follow) {
            tag.standing = LineStanding::Beside;
        }
        let gone = tag.standing == LineStanding::Quoted && has_words(rest);
        (!gone).then_some(tag)
    }

    fn slide(&mut self, rules: &PromiseRules) {
        let scan = rules.scan_known(self.window.bytes(), self.window.has_sequences());
        let worth = scan.next(self.searched).is_some();
        let open = if worth { TAIL } else { scan.open_end() };
        self.searched = TAIL.saturating_sub(open);
        if worth || self.tag.is_some() {
            let mut stripper = Stripper::default();
            let plain = stripper.strip(self.window.bytes());
            let found = if worth {
                self.found(rules, plain)
            } else {
                None
            };
            let tag = found.filter(|found| found.is_tag);
            self.tag = tag.or_else(|| self.tag_so_far(plain));
        }
        if let Some(words) = rules.anywhere()
            && worth
        {
            let sighting = self.sight(words);
            self.passed = sighting.or(self.passed.take());
        }
        self.blank = self.blank && is_blank(&self.window.bytes()[..TAIL]);
        self.window.slide();
        self.start += TAIL as u64;
        self.place = WindowStart::Later;
    }

    /// The last whole words in the window, but for its edges: what looks like text there may
    /// belong to a sequence, or go on. The windows before and after see these in full.
    fn sight(&self, words: &[u8]) -> Option<Sighting> {
        let mut stripper = Stripper::default();
        let plain = stripper.strip(self.window.bytes());
        let sure = self.sure_from()..self.window.bytes().len() - MAX_SEQUENCE;
        let span = whole_words(plain.text, words)
            .filter(|span| sure.contains(&plain.raw_place(span.start)))
            .last()?;
        Some(Sighting::new(&Found::untagged(span), plain, self.start))
    }

    fn sure_from(&self) -> usize {
        match self.place {
            WindowStart::First => 0,
            WindowStart::Later => MAX_SEQUENCE,
        }
    }
}

/// The bytes that a window holds. Each is copied in once and looked at once for sequences, for gigabytes may
/// go by.
#[derive(Clone, Debug, Default)]
struct Window {
    /// What was passed and not yet thrown away, then the window.
    buffer: Vec<u8>,
    /// Where the window begins in it.
    begin: usize,
    /// Where the last sequence begins in the buffer.
    sequence: Option<usize>,
}

impl Window {
    /// So much is passed before the rest is moved to the front.
    const PASSED: usize = 3 * TAIL;

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.begin..).unwrap_or_default()
    }

    fn has_sequences(&self) -> bool {
        self.sequence.is_some_and(|place| place >= self.begin)
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(place) = memrchr(ESC, bytes) {
            self.sequence = Some(self.buffer.len() + place);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Passes [`TAIL`] bytes.
    fn slide(&mut self) {
        self.begin += TAIL;
        if self.begin < Self::PASSED {
            return;
        }
        self.buffer.drain(..self.begin);
        self.sequence = self
            .sequence
            .and_then(|place| place.checked_sub(self.begin));
        self.begin = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::ansi::has_sequences;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_holds_what_a_plain_buffer_would(
            places in prop::collection::vec(0..9 * TAIL, 0..6),
            pieces in prop::collection::vec(1..TAIL, 1..40),
        ) {
            let mut line: Vec<u8> = (0..9 * TAIL).map(|at| b'a' + (at % 23) as u8).collect();
            for place in places {
                line[place] = ESC;
            }
            let (mut window, mut plain) = (Window::default(), Vec::new());
            let mut rest = line.as_slice();
            for piece in pieces {
                let room = 2 * TAIL - plain.len();
                let (now, later) = rest.split_at(piece.min(room).min(rest.len()));
                rest = later;
                window.push(now);
                plain.extend_from_slice(now);
                prop_assert_eq!(window.bytes(), plain.as_slice());
                prop_assert_eq!(window.has_sequences(), has_sequences(&plain));
                if plain.len() == 2 * TAIL {
                    window.slide();
                    plain.drain(..TAIL);
                    prop_assert_eq!(window.bytes(), plain.as_slice());
                    prop_assert_eq!(window.has_sequences(), has_sequences(&plain));
                }
            }
        }
    }
}
