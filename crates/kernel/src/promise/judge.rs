//! Whether one line, without its terminal sequences, is a claim by its own words.

use std::ops::Range;

use memchr::{memchr2, memrchr};

use super::chars::{
    chars, has_words, is_closer, is_closing, is_emoji, is_mark, is_nothing, is_punctuation,
    is_stop, is_word,
};
use super::{ClaimKind, PromiseMatch, PromiseSpec, quote};

pub(super) const OPEN: &[u8] = b"<promise>";
const CLOSE: &[u8] = b"</promise>";

/// How far before a tag the end of a sentence or an open quotation is looked for.
const SIGHT: usize = 4096;

/// The promises in the form in which they are compared.
#[derive(Debug)]
pub(super) struct Rules {
    done: Option<String>,
    abort: Option<String>,
    mode: PromiseMatch,
}

/// A line as it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: Start,
}

/// How much of a line's beginning is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// All of it.
    Whole,
    /// The line was too long to keep: words stand before what is left of it.
    Cut,
}

/// A claim within a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: ClaimKind,
    /// The whole of it, tag and all.
    pub(super) span: Range<usize>,
    /// Its text, trimmed.
    pub(super) text: Range<usize>,
    /// Whether the line has no other words.
    pub(super) bare: bool,
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

impl Rules {
    /// `None` where there is nothing to look for.
    pub(super) fn new(spec: &PromiseSpec) -> Option<Self> {
        let text = |text: &Option<String>| {
            let text = text
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let rules = Self {
            done: text(&spec.done),
            abort: text(&spec.abort),
            mode: spec.mode,
        };
        (rules.done.is_some() || rules.abort.is_some()).then_some(rules)
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

    fn kind(&self, text: &str) -> Option<ClaimKind> {
        let is = |promise: &Option<String>| {
            promise
                .as_deref()
                .is_some_and(|promise| promise.eq_ignore_ascii_case(text))
        };
        if is(&self.done) {
            Some(ClaimKind::Done)
        } else {
            is(&self.abort).then_some(ClaimKind::Abort)
        }
    }

    /// The claim that `line` makes, if it makes one.
    pub(super) fn judge(&self, line: Line<'_>) -> Option<Found> {
        if line.start == Start::Whole && is_quote_line(line.text) {
            return None;
        }
        self.tagged(line)
            .or_else(|| self.alone(line))
            .or_else(|| self.within(line))
    }

    /// Words may not follow a tag, so that only the last one can be a claim.
    fn tagged(&self, line: Line<'_>) -> Option<Found> {
        let (span, inner) = last_tag(line.text)?;
        let (before, after) = around(line.text, &span);
        let (text, kind) = self.read_inner(line.text, inner)?;
        let stands = chars(after).all(may_follow)
            && (is_unsaid(line.start, before) || is_finished(before))
            && !quote::encloses(tail(before), after);
        let bare = !has_words(before);
        stands.then_some(Found {
            kind,
            span,
            text,
            bare,
        })
    }

    fn read_inner(&self, line: &[u8], inner: Range<usize>) -> Option<(Range<usize>, ClaimKind)> {
        let raw = str::from_utf8(line.get(inner.clone())?).ok()?;
        let start = inner.start + (raw.len() - raw.trim_start().len());
        let text = raw.trim();
        Some((start..start + text.len(), self.kind(text)?))
    }

    /// The text alone on its line, in marks and with closing punctuation at most.
    fn alone(&self, line: Line<'_>) -> Option<Found> {
        let text = self.untagged()?;
        let span = occurrences(line.text, text).find(|span| {
            let (before, after) = around(line.text, span);
            is_unsaid(line.start, before)
                && chars(after).all(|c| is_nothing(c) || is_mark(c) || is_closing(c))
        })?;
        Some(Found {
            kind: ClaimKind::Done,
            text: span.clone(),
            span,
            bare: true,
        })
    }

    fn within(&self, line: Line<'_>) -> Option<Found> {
        let span = whole_words(line.text, self.anywhere()?).last()?;
        let (before, after) = around(line.text, &span);
        let bare = !has_words(before) && !has_words(after);
        Some(Found {
            kind: ClaimKind::Done,
            text: span.clone(),
            span,
            bare,
        })
    }
}

/// Whether the line quotes somebody, as in mail.
pub(super) fn is_quote_line(text: &[u8]) -> bool {
    chars(text).find(|&c| !is_nothing(c)) == Some('>')
}

/// Where `words` stand in `line` as whole words.
pub(super) fn whole_words<'a>(
    line: &'a [u8],
    words: &'a [u8],
) -> impl Iterator<Item = Range<usize>> + 'a {
    occurrences(line, words).filter(|span| is_whole(line, span))
}

fn is_whole(line: &[u8], span: &Range<usize>) -> bool {
    let (before, after) = around(line, span);
    let inside = line.get(span.clone()).unwrap_or_default();
    let joins = |left: Option<char>, right: Option<char>| {
        left.is_some_and(is_word) && right.is_some_and(is_word)
    };
    !joins(last_char(before), chars(inside).next())
        && !joins(last_char(inside), chars(after).next())
}

fn last_char(bytes: &[u8]) -> Option<char> {
    // Four bytes hold any character; what is cut in front of it comes out as invalid.
    chars(bytes.get(bytes.len().saturating_sub(4)..)?).last()
}

/// Places of `text` in `line`, ASCII case being equal.
fn occurrences<'a>(line: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let first = text.first().copied().unwrap_or_default();
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let place = at + memchr2(lower, upper, line.get(at..)?)?;
            at = place + 1;
            if starts_with(line.get(place..)?, text) {
                return Some(place..place + text.len());
            }
        }
    })
}

/// Whether `bytes` start with `prefix`, ASCII case being equal.
pub(super) fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// The last tag of a line and what stands in it.
fn last_tag(line: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let mut end = line.len();
    let close = loop {
        let place = memrchr(b'<', line.get(..end)?)?;
        if starts_with(line.get(place..)?, CLOSE) {
            break place;
        }
        end = place;
    };
    let open = memrchr(b'<', line.get(..close)?)?;
    let is_open = starts_with(line.get(open..)?, OPEN);
    is_open.then_some((open..close + CLOSE.len(), open + OPEN.len()..close))
}

fn around<'a>(line: &'a [u8], span: &Range<usize>) -> (&'a [u8], &'a [u8]) {
    let before = line.get(..span.start).unwrap_or_default();
    (before, line.get(span.end..).unwrap_or_default())
}

fn tail(bytes: &[u8]) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(SIGHT)..)
        .unwrap_or_default()
}

fn may_follow(c: char) -> bool {
    is_nothing(c) || is_mark(c) || is_punctuation(c) || is_emoji(c)
}

/// Whether nothing was said before: marks at most, or the number of a list.
fn is_unsaid(start: Start, before: &[u8]) -> bool {
    if start == Start::Cut {
        return false;
    }
    let mut ink = chars(before)
        .filter(|&c| !is_nothing(c) && !is_mark(c))
        .peekable();
    let numbered = ink.peek().is_some_and(char::is_ascii_digit);
    while ink.next_if(char::is_ascii_digit).is_some() {}
    if numbered {
        return matches!((ink.next(), ink.next()), (Some('.' | ')'), None));
    }
    ink.next().is_none()
}

/// Whether the words before end a sentence.
fn is_finished(before: &[u8]) -> bool {
    let text = String::from_utf8_lossy(tail(before));
    let said = text.trim_end_matches(|c| is_nothing(c) || is_mark(c) || is_closer(c));
    said.ends_with(|c| is_stop(c) || is_emoji(c)) && !is_abbreviation(said)
}

/// "e.g." and "i.e." have a full stop and end nothing.
fn is_abbreviation(said: &str) -> bool {
    let word = said
        .rsplit(|c: char| !is_word(c) && c != '.')
        .next()
        .unwrap_or_default();
    word.eq_ignore_ascii_case("e.g.") || word.eq_ignore_ascii_case("i.e.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, mode: PromiseMatch) -> Option<(String, bool)> {
        let spec = PromiseSpec {
            done: Some("DONE".into()),
            abort: Some("BLOCKED".into()),
            mode,
        };
        let found = Rules::new(&spec)?.judge(Line {
            text: line.as_bytes(),
            start: Start::Whole,
        })?;
        Some((line[found.span].to_owned(), found.bare))
    }

    #[test]
    fn a_tag_needs_silence_or_a_finished_sentence_before_it() {
        let tag = "<promise>DONE</promise>";
        for before in [
            "", "- ", "1) ", "12. ", "**", "Ok. ", "Ok.** ", "(Ok.) ", "好。", "\"Ok!\" ", "✓ ",
        ] {
            assert!(
                found(&format!("{before}{tag}"), PromiseMatch::Tagged).is_some(),
                "{before}"
            );
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
            "│ ",
            "> ",
            "a > ",
            "\"",
        ] {
            assert!(
                found(&format!("{before}{tag}"), PromiseMatch::Tagged).is_none(),
                "{before}"
            );
        }
    }

    #[test]
    fn only_ornament_may_stand_after_a_tag() {
        for (after, stands) in [
            ("", true),
            (" 🎉.**", true),
            ("\"", true),
            (" <", true),
            (" a", false),
            (" é", false),
        ] {
            let line = format!("<promise>DONE</promise>{after}");
            assert_eq!(
                found(&line, PromiseMatch::Tagged).is_some(),
                stands,
                "{line}"
            );
        }
    }

    #[test]
    fn other_words_are_told_from_marks() {
        let bare = |line| found(line, PromiseMatch::Anywhere).map(|(_, bare)| bare);
        assert_eq!(bare("** <promise>DONE</promise> **"), Some(true));
        assert_eq!(bare("Ok. <promise>DONE</promise>"), Some(false));
        assert_eq!(bare("(done)"), Some(true));
        assert_eq!(bare("is done"), Some(false));
    }

    #[test]
    fn the_text_alone_may_wear_marks_and_closing_punctuation() {
        for line in [
            "DONE",
            "**Done.**",
            "- done!",
            "## DONE",
            "3. done",
            "`DONE`;",
        ] {
            assert!(found(line, PromiseMatch::Line).is_some(), "{line}");
            assert!(found(line, PromiseMatch::Tagged).is_none(), "{line}");
        }
        for line in [
            "done:",
            "\"done\"",
            "(done)",
            "✅ done",
            "done done",
            "> done",
            "3 done",
        ] {
            assert!(found(line, PromiseMatch::Line).is_none(), "{line}");
        }
    }

    #[test]
    fn whole_words_are_found_for_the_last_time_they_stand() {
        let place = |line: &[u8]| whole_words(line, b"DONE").last();
        assert_eq!(place(b"done, undone and done_"), Some(0..4));
        assert_eq!(place(b"done done"), Some(5..9));
        assert_eq!(place("édone".as_bytes()), None);
        assert_eq!(place(b"\xffdone\xff"), Some(1..5));
        assert_eq!(whole_words(b"x(ok)x", b"(ok)").last(), Some(1..5));
    }
}
