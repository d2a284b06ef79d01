//! Whether one line, without its terminal sequences, is a claim by its own words.

use std::ops::Range;

use super::chars::{chars, has_words, is_emphasis, is_full_stop, is_nothing};
use super::find::{
    OPEN, Tag, around, occurrences, open_tag, tags_from_end, tags_in_text, text_in_tag, whole_words,
};
use super::scan::{Scan, Scanner};
use super::sentence::{has_open_box, is_finished, is_unsaid, may_follow};
use super::{ClaimKind, PromiseMatch, PromiseSpec, quote};

/// How far before a tag the end of a sentence or an open quotation is looked for.
const LOOKBACK_BYTES: usize = 4096;

/// The promises in the form in which they are compared.
#[derive(Clone, Debug)]
pub(super) struct PromiseRules {
    done: Option<String>,
    abort: Option<String>,
    mode: PromiseMatch,
    scanner: Scanner,
}

/// A line as it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromiseLine<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: Start,
}

impl PromiseLine<'_> {
    /// Whether nothing was said before, where `before` is the line's beginning as far as it is kept.
    fn is_unsaid(&self, before: &[u8]) -> bool {
        self.start != Start::Cut && is_unsaid(before)
    }

    /// Whether the line quotes somebody.
    fn is_quote(&self) -> bool {
        self.start != Start::Cut && is_quote_line(self.text)
    }

    /// Whether a tag behind `before` is a line that a diff adds or takes away.
    fn is_changed(&self, before: &[u8]) -> bool {
        let marks = before.trim_ascii_start();
        self.start != Start::Cut
            && !marks.is_empty()
            && marks.iter().all(|b| matches!(b, b'+' | b'-'))
    }

    /// How a tag stands by what is before it on its line.
    fn standing(&self, before: &[u8]) -> LineStanding {
        if self.is_quote() || self.is_changed(before) {
            LineStanding::Quoted
        } else if has_open_box(tail(before)) {
            LineStanding::Beside
        } else if self.is_unsaid(before) || is_finished(tail(before)) {
            LineStanding::Claim
        } else {
            LineStanding::Beside
        }
    }
}

/// How much of a line's beginning is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// All of it.
    Whole,
    /// The line was too long to keep: white space stands before what is left of it.
    Indented,
    /// The line was too long to keep: words stand before what is left of it.
    Cut,
}

/// Whether a promise stands so that it claims something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStanding {
    Claim,
    /// It stands beside other words, where it is no claim.
    Beside,
    /// Somebody else's words, as it seems: in quotation marks, a quote, a change.
    Quoted,
}

/// A promise within a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: ClaimKind,
    pub(super) standing: LineStanding,
    /// The whole of it, tag and all.
    pub(super) span: Range<usize>,
    /// Its text, trimmed.
    pub(super) text: Range<usize>,
}

impl Found {
    /// What the line says besides.
    pub(super) fn own_words<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        if self.span == self.text {
            line
        } else {
            around(line, &self.span).0
        }
    }
}

/// A tag that a line opens and does not close.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// Where it stands.
    pub(super) place: usize,
    /// As what stands before it tells.
    pub(super) standing: LineStanding,
}

impl Opening {
    /// What the line holds of the tag's inside.
    pub(super) fn inner<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        line.get(self.place + OPEN.len()..).unwrap_or_default()
    }

    /// What stands before it, as far as a quotation is looked for.
    pub(super) fn before<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        tail(line.get(..self.place).unwrap_or_default())
    }
}

impl PromiseRules {
    /// `None` where there is nothing to look for.
    pub(super) fn new(spec: &PromiseSpec) -> Option<Self> {
        let text = |text: &Option<String>| {
            let text = text
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let (done, abort, mode) = (text(&spec.done), text(&spec.abort), spec.mode);
        if done.is_none() && abort.is_none() {
            return None;
        }
        let untagged = done.as_deref().filter(|_| mode != PromiseMatch::Tagged);
        let scanner = Scanner::new(untagged.map(str::as_bytes));
        Some(Self {
            done,
            abort,
            mode,
            scanner,
        })
    }

    /// Searches raw bytes for lines that may be claims or fences.
    pub(super) fn scan<'a>(&'a self, raw: &'a [u8]) -> Scan<'a> {
        self.scanner.over(raw)
    }

    /// The same where it is known whether there are terminal sequences in them.
    pub(super) fn scan_known<'a>(&'a self, raw: &'a [u8], sequences: bool) -> Scan<'a> {
        self.scanner.over_known(raw, sequences)
    }

    /// The text that counts without a tag.
    pub(super) fn untagged(&self) -> Option<&[u8]> {
        let done = self
            .done
            .as_deref()
            .filter(|_| self.mode != PromiseMatch::Tagged);
        done.map(str::as_bytes)
    }

    /// The text that counts in the middle of any words.
    pub(super) fn anywhere(&self) -> Option<&[u8]> {
        self.untagged()
            .filter(|_| self.mode == PromiseMatch::Anywhere)
    }

    /// Whose text stands within a tag.
    pub(super) fn kind_in_tag(&self, inner: &str) -> Option<ClaimKind> {
        self.read_inner(inner).map(|(_, kind)| kind)
    }

    /// The promise in `line`: the claim that it makes, or else a tag that is none.
    pub(super) fn judge(&self, line: PromiseLine<'_>) -> Option<Found> {
        let is_no_claim = line.is_quote() || has_open_box(line.text);
        let claim = || {
            let tagged = self.tagged(line);
            tagged
                .or_else(|| self.alone(line))
                .or_else(|| self.within(line))
        };
        let claim = if is_no_claim { None } else { claim() };
        claim.or_else(|| self.beside(line))
    }

    /// Words may not follow a tag, so that only the last one can be a claim; the same may
    /// stand before it once more.
    fn tagged(&self, line: PromiseLine<'_>) -> Option<Found> {
        let mut tags = tags_from_end(line.text);
        let last = tags.next()?;
        let (text, kind) = self.read_tag(line.text, &last)?;
        let (_, after) = around(line.text, &last.span);
        if !chars(after).all(may_follow) {
            return None;
        }
        let mut first = last.span.start;
        loop {
            let before = line.text.get(..first)?;
            if line.standing(before) == LineStanding::Claim {
                return (!quote::encloses(tail(before), after)).then_some(Found {
                    kind,
                    standing: LineStanding::Claim,
                    span: last.span,
                    text,
                });
            }
            let again = tags.next()?;
            let between = line.text.get(again.span.end..first)?;
            let same = self.read_tag(line.text, &again)?.1 == kind;
            if !same || !chars(between).all(may_follow) {
                return None;
            }
            first = again.span.start;
        }
    }

    /// The last tag with one of the texts, where the line makes no claim.
    fn beside(&self, line: PromiseLine<'_>) -> Option<Found> {
        let (tag, (text, kind)) = tags_from_end(line.text).find_map(|tag| {
            let read = self.read_tag(line.text, &tag)?;
            Some((tag, read))
        })?;
        let (before, after) = around(line.text, &tag.span);
        let standing = match line.standing(before) {
            LineStanding::Quoted => LineStanding::Quoted,
            _ if quote::encloses(tail(before), after) => LineStanding::Quoted,
            _ => LineStanding::Beside,
        };
        if standing == LineStanding::Quoted && has_words(after) {
            return None;
        }
        Some(Found {
            kind,
            standing,
            span: tag.span,
            text,
        })
    }

    /// The tag that `line` leaves open.
    pub(super) fn opening(&self, line: PromiseLine<'_>) -> Option<Opening> {
        let place = open_tag(line.text).filter(|_| line.start != Start::Cut)?;
        let before = line.text.get(..place)?;
        Some(Opening {
            place,
            standing: line.standing(before),
        })
    }

    fn read_tag(&self, line: &[u8], tag: &Tag) -> Option<(Range<usize>, ClaimKind)> {
        let inner = str::from_utf8(line.get(tag.inner.clone())?).ok()?;
        let (text, kind) = self.read_inner(inner)?;
        let start = tag.inner.start;
        Some((start + text.start..start + text.end, kind))
    }

    /// Which text stands within a tag, and where.
    pub(super) fn read_inner(&self, inner: &str) -> Option<(Range<usize>, ClaimKind)> {
        let find = |text: &Option<String>, kind| {
            let place = text_in_tag(inner, text.as_deref()?)?;
            Some((place, kind))
        };
        find(&self.done, ClaimKind::Done).or_else(|| find(&self.abort, ClaimKind::Abort))
    }

    /// Whether a text is nothing but the promise of being done, as it counts.
    pub(super) fn is_promise(&self, text: &str) -> bool {
        let text = text.trim();
        let tag = tags_in_text(text)
            .next()
            .filter(|(span, _)| *span == (0..text.len()));
        let is_tag = tag.is_some_and(|(_, inner)| self.kind_in_tag(inner).is_some());
        let bare = self.untagged();
        is_tag || bare.is_some_and(|bare| text.as_bytes().eq_ignore_ascii_case(bare))
    }

    /// How the promise has to stand, where `line` has its text alone and that is not enough.
    pub(super) fn wanted_for(&self, line: &[u8]) -> Option<String> {
        let text = self.done.as_deref()?;
        let line = PromiseLine {
            text: line,
            start: Start::Whole,
        };
        let is_enough = match self.mode {
            PromiseMatch::Tagged => false,
            _ => self.judge(line).is_some(),
        };
        let is_alone = !line.is_quote() && !is_enough;
        let found = alone(line, text.as_bytes(), Case::Any).filter(|_| is_alone);
        found.map(|_| format!("<promise>{text}</promise>"))
    }

    /// The text alone on its line, in its own case, with emphasis and a full stop at most.
    fn alone(&self, line: PromiseLine<'_>) -> Option<Found> {
        let text = self.untagged().filter(|_| line.start != Start::Cut)?;
        let case = match self.mode {
            PromiseMatch::Line => Case::Own,
            _ => Case::Any,
        };
        alone(line, text, case).map(Found::untagged)
    }

    fn within(&self, line: PromiseLine<'_>) -> Option<Found> {
        let span = whole_words(line.text, self.anywhere()?).last()?;
        Some(Found::untagged(span))
    }
}

/// Whether a text without its tag has to be written as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Own,
    Any,
}

/// Where `text` stands alone on its line, with emphasis and a full stop at most.
fn alone(line: PromiseLine<'_>, text: &[u8], case: Case) -> Option<Range<usize>> {
    let stripped = |c: char| is_nothing(c) || is_emphasis(c);
    // Emphasis stands directly before the text: `* ` begins a list.
    let leads = |before: &[u8]| {
        let emphasis = |b: &&u8| matches!(b, b'*' | b'_' | b'`');
        let marks = before.iter().rev().take_while(emphasis).count();
        let rest = before.get(..before.len() - marks).unwrap_or_default();
        chars(rest).all(|c| is_nothing(c) || c == '#')
    };
    occurrences(line.text, text).find(|span| {
        let (before, after) = around(line.text, span);
        let mut stops = 0;
        let ends = chars(after).all(|c| {
            stops += usize::from(is_full_stop(c));
            stripped(c) || is_full_stop(c)
        });
        let in_case = case == Case::Any || line.text.get(span.clone()) == Some(text);
        in_case && leads(before) && ends && stops <= 1
    })
}

impl Found {
    /// The text without a tag, where it is a claim.
    pub(super) fn untagged(span: Range<usize>) -> Self {
        Self {
            kind: ClaimKind::Done,
            standing: LineStanding::Claim,
            text: span.clone(),
            span,
        }
    }
}

/// Whether the line quotes somebody, as in mail.
pub(super) fn is_quote_line(text: &[u8]) -> bool {
    chars(text).find(|&c| !is_nothing(c)) == Some('>')
}

fn tail(bytes: &[u8]) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(LOOKBACK_BYTES)..)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, mode: PromiseMatch) -> Option<(String, LineStanding)> {
        let spec = PromiseSpec {
            done: Some("DONE".into()),
            abort: Some("BLOCKED".into()),
            mode,
        };
        let found = PromiseRules::new(&spec)?.judge(PromiseLine {
            text: line.as_bytes(),
            start: Start::Whole,
        })?;
        Some((line[found.span].to_owned(), found.standing))
    }

    fn standing(line: &str, mode: PromiseMatch) -> Option<LineStanding> {
        found(line, mode).map(|(_, standing)| standing)
    }

    #[test]
    fn a_tag_needs_silence_or_a_finished_sentence_before_it() {
        let tag = "<promise>DONE</promise>";
        let standing =
            |before: &str| standing(&format!("{before}{tag}"), PromiseMatch::Tagged).unwrap();
        for before in [
            "",
            "- ",
            "1) ",
            "12. ",
            "**",
            "Ok. ",
            "Ok.** ",
            "(Ok.) ",
            "好。",
            "\"Ok!\" ",
            "✓ ",
            "- [x] ",
            "│ ",
            "(",
            "[09:14:02] ",
        ] {
            assert_eq!(standing(before), LineStanding::Claim, "{before}");
        }
        for before in [
            "x",
            "1 ",
            "2.5 ",
            "see (",
            "e.g. ",
            "Ok. i.e. ",
            "→ ",
            "❯ ",
            "a > ",
            "Ok... ",
            "- [ ] ",
            "Ok. [ ] ",
        ] {
            assert_eq!(standing(before), LineStanding::Beside, "{before}");
        }
        for before in ["> ", "+", "-", "++", " > Ok. "] {
            assert_eq!(standing(before), LineStanding::Quoted, "{before}");
        }
    }

    #[test]
    fn only_ornament_may_stand_after_a_tag() {
        for (after, stands) in [
            ("", true),
            (" 🎉.**", true),
            ("\"", true),
            (" <", true),
            (" │", true),
            (" a", false),
            (" é", false),
            (" <promise>DONE</promise>", true),
            (". <promise>done.</promise>!", true),
            (" <promise>BLOCKED</promise>", false),
            (" <promise>other</promise>", false),
        ] {
            let line = format!("<promise>DONE</promise>{after}");
            let claims = standing(&line, PromiseMatch::Tagged) == Some(LineStanding::Claim);
            assert_eq!(claims, stands, "{line}");
        }
    }

    #[test]
    fn a_quoted_tag_is_nothing_where_words_follow_it() {
        let standing = |line: &str| standing(line, PromiseMatch::Tagged);
        let quoted = "I print \"<promise>DONE</promise>\"";
        assert_eq!(standing(quoted), Some(LineStanding::Quoted));
        assert_eq!(standing(&format!("{quoted} later")), None);
        assert_eq!(standing("<promise>other</promise>"), None);
    }

    #[test]
    fn a_text_without_what_it_needs_is_told_from_other_words() {
        let wanted = |line: &str, mode| {
            let spec = PromiseSpec {
                done: Some("DONE".into()),
                abort: None,
                mode,
            };
            let rules = PromiseRules::new(&spec).unwrap();
            rules.wanted_for(line.as_bytes()).is_some()
        };
        for (line, tagged, own_case) in [
            ("DONE", true, false),
            ("**done.**", true, true),
            ("Done.", true, true),
            ("DONE!", false, false),
            ("all done", false, false),
            ("> DONE", false, false),
            ("- DONE", false, false),
        ] {
            assert_eq!(wanted(line, PromiseMatch::Tagged), tagged, "{line}");
            assert_eq!(wanted(line, PromiseMatch::Line), own_case, "{line}");
            assert!(!wanted(line, PromiseMatch::LineAnyCase), "{line}");
            assert!(!wanted(line, PromiseMatch::Anywhere), "{line}");
        }
    }

    #[test]
    fn the_text_alone_may_wear_emphasis_and_a_full_stop() {
        for line in [
            "DONE",
            "**DONE.**",
            "## DONE",
            "`DONE`",
            "_DONE_.",
            " DONE。",
        ] {
            assert!(found(line, PromiseMatch::Line).is_some(), "{line}");
            assert!(found(line, PromiseMatch::Tagged).is_none(), "{line}");
        }
        for line in [
            "done",
            "Done",
            "DONE!",
            "- DONE",
            "3. DONE",
            "* DONE",
            "DONE;",
            "DONE:",
            "\"DONE\"",
            "(DONE)",
            "✅ DONE",
            "DONE DONE",
            "> DONE",
            "3 DONE",
            "DONE...",
            "+DONE",
            "= DONE =",
        ] {
            assert!(found(line, PromiseMatch::Line).is_none(), "{line}");
        }
        // A task that does not require the tag is not strict about case either.
        for line in ["done", "**Done.**"] {
            assert!(found(line, PromiseMatch::LineAnyCase).is_some(), "{line}");
        }
        assert!(found("- done", PromiseMatch::LineAnyCase).is_none());
    }
}
