//! A line without an end: only what can still matter of it is kept.

use super::ansi::{MAX_SEQUENCE, Plain, Stripper};
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
    window: Vec<u8>,
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
            window: Vec::with_capacity(2 * TAIL),
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
            let room = 2 * TAIL - self.window.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.window.extend_from_slice(now);
            rest = later;
            if self.window.len() == 2 * TAIL {
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
        &self.window
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
        let scan = rules.scan(&self.window);
        let worth = scan.next(self.searched).is_some();
        let open = if worth { TAIL } else { scan.open_end() };
        self.searched = TAIL.saturating_sub(open);
        if worth || self.tag.is_some() {
            let mut stripper = Stripper::default();
            let plain = stripper.strip(&self.window);
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
        let passed = self.window.drain(..TAIL);
        self.blank = self.blank && is_blank(passed.as_slice());
        drop(passed);
        self.start += TAIL as u64;
        self.place = WindowStart::Later;
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
        Some(Sighting::new(&Found::untagged(span), plain, self.start))
    }

    fn sure_from(&self) -> usize {
        match self.place {
            WindowStart::First => 0,
            WindowStart::Later => MAX_SEQUENCE,
        }
    }
}
