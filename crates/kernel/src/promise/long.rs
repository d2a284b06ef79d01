//! A line without an end: only what can still matter of it is kept.

use super::ClaimKind;
use super::ansi::{MAX_SEQUENCE, Plain, Stripper};
use super::find::whole_words;
use super::judge::{Found, Line, Rules, Start, is_quote_line};
use super::verdict::Sighting;

/// How much of a long line's end is always kept.
const TAIL: usize = 64 * 1024;

/// Lines up to this length are kept whole.
pub(super) const MAX_WHOLE: usize = 2 * TAIL;

/// A line longer than [`MAX_WHOLE`]. Nothing but ornament may follow a tag on its line, so
/// that the line's end tells; only words that count anywhere are looked for on the way.
#[derive(Debug)]
pub(super) struct LongLine {
    /// Offset of the window in the stream.
    start: u64,
    /// The last bytes, at least `TAIL`; it slides in steps that depend on the line alone.
    window: Vec<u8>,
    place: Place,
    speaker: Speaker,
    /// The last words that count anywhere in what the window has passed.
    passed: Option<Sighting>,
}

/// Where in its line the window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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
    pub(super) fn new(rules: &Rules, start: u64, bytes: &[u8]) -> Self {
        let head = bytes.get(..2 * MAX_SEQUENCE).unwrap_or(bytes);
        let quoted = is_quote_line(Stripper::default().strip(head).text);
        let mut line = Self {
            start,
            window: Vec::with_capacity(2 * TAIL),
            place: Place::First,
            speaker: if quoted {
                Speaker::Quoted
            } else {
                Speaker::Agent
            },
            passed: None,
        };
        line.push(rules, bytes);
        line
    }

    pub(super) fn push(&mut self, rules: &Rules, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = 2 * TAIL - self.window.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.window.extend_from_slice(now);
            rest = later;
            if self.window.len() == 2 * TAIL {
                self.slide(rules);
            }
        }
    }

    /// The end of it that is kept.
    pub(super) fn window(&self) -> &[u8] {
        &self.window
    }

    /// The claim that the line makes if it ends here. `plain` is the window's text.
    pub(super) fn judge(&self, rules: &Rules, plain: Plain<'_>) -> Option<Sighting> {
        if self.speaker == Speaker::Quoted {
            return None;
        }
        let found = rules.judge(Line {
            text: plain.text,
            start: Start::Cut,
        });
        let sure = found.filter(|found| plain.raw_place(found.span.start) >= self.sure_from());
        let sighting = sure.map(|found| Sighting::new(&found, plain, self.start));
        sighting.or_else(|| self.passed.clone())
    }

    fn slide(&mut self, rules: &Rules) {
        if let Some(words) = rules.anywhere()
            && rules.scan(&self.window).next(0).is_some()
        {
            let sighting = self.sight(words);
            self.passed = sighting.or(self.passed.take());
        }
        self.window.drain(..TAIL);
        self.start += TAIL as u64;
        self.place = Place::Later;
    }

    /// The last whole words in the window, but for its edges: what looks like text there may
    /// belong to a sequence, or go on. The windows before and after see these in full.
    fn sight(&self, words: &[u8]) -> Option<Sighting> {
        let mut stripper = Stripper::default();
        let plain = stripper.strip(&self.window);
        let sure = self.sure_from()..self.window.len() - MAX_SEQUENCE;
        let span = whole_words(plain.text, words)
            .filter(|span| sure.contains(&plain.raw_place(span.start)))
            .last()?;
        let found = Found {
            kind: ClaimKind::Done,
            text: span.clone(),
            span,
            bare: false,
        };
        Some(Sighting::new(&found, plain, self.start))
    }

    fn sure_from(&self) -> usize {
        match self.place {
            Place::First => 0,
            Place::Later => MAX_SEQUENCE,
        }
    }
}
