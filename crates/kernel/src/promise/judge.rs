//! Whether one line, without its terminal sequences, is a claim by its own words.

use std::ops::Range;

use super::chars::{chars, has_words, is_closing, is_mark, is_nothing};
use super::find::{around, last_tag, occurrences, whole_words};
use super::scan::{Scan, Scanner};
use super::sentence::{is_finished, is_unsaid, may_follow};
use super::{ClaimKind, PromiseMatch, PromiseSpec, quote};

/// How far before a tag the end of a sentence or an open quotation is looked for.
const SIGHT: usize = 4096;

/// The promises in the form in which they are compared.
#[derive(Debug)]
pub(super) struct Rules {
    done: Option<String>,
    abort: Option<String>,
    mode: PromiseMatch,
    scanner: Scanner,
}

/// A line as it is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) start: Start,
}

impl Line<'_> {
    /// Whether nothing was said before, where `before` is the line's beginning as far as it is kept.
    fn is_unsaid(&self, before: &[u8]) -> bool {
        self.start == Start::Whole && is_unsaid(before)
    }
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
            && (line.is_unsaid(before) || is_finished(tail(before)))
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
            line.is_unsaid(before)
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

fn tail(bytes: &[u8]) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(SIGHT)..)
        .unwrap_or_default()
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
}
