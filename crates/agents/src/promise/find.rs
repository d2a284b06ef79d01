//! Where tags and texts stand in a line.

use std::ops::Range;

use memchr::{memchr, memchr2, memrchr};

use super::chars::{chars, is_closing, is_mark, is_word};

/// The tag that opens a promise.
pub(super) const OPEN: &[u8] = b"<promise>";
const CLOSE: &[u8] = b"</promise>";

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
pub(super) fn occurrences<'a>(
    line: &'a [u8],
    text: &'a [u8],
) -> impl Iterator<Item = Range<usize>> + 'a {
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
fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes
        .get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A whole tag in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The whole of it.
    pub(super) span: Range<usize>,
    /// What stands in it.
    pub(super) inner: Range<usize>,
}

/// The whole tags of a line, from the last to the first.
pub(super) fn tags_from_end(line: &[u8]) -> impl Iterator<Item = Tag> + '_ {
    let mut end = line.len();
    std::iter::from_fn(move || {
        loop {
            let close = memrchr(b'<', line.get(..end)?)?;
            end = close;
            if !starts_with(line.get(close..)?, CLOSE) {
                continue;
            }
            let open = memrchr(b'<', line.get(..close)?)?;
            if starts_with(line.get(open..)?, OPEN) && open + OPEN.len() <= close {
                end = open;
                return Some(Tag {
                    span: open..close + CLOSE.len(),
                    inner: open + OPEN.len()..close,
                });
            }
        }
    })
}

/// The whole tags of a text of many lines, and what stands in them.
pub(super) fn tags_in_text(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    occurrences(text.as_bytes(), OPEN).filter_map(|open| {
        let rest = text.get(open.end..)?;
        let close = rest.find('<')?;
        let is_whole = starts_with(rest.get(close..)?.as_bytes(), CLOSE);
        let span = open.start..open.end + close + CLOSE.len();
        is_whole.then_some((span, rest.get(..close)?))
    })
}

/// Where a tag opens that the line does not close.
pub(super) fn open_tag(line: &[u8]) -> Option<usize> {
    let open = memrchr(b'<', line)?;
    starts_with(line.get(open..)?, OPEN).then_some(open)
}

/// What stands before the first `<` of a line, and what behind it, where it closes a tag.
pub(super) fn closing_tag(line: &[u8]) -> Closing<'_> {
    let Some(place) = memchr(b'<', line) else {
        return Closing::GoesOn;
    };
    let (inner, rest) = line.split_at(place);
    match starts_with(rest, CLOSE) {
        true => Closing::Closes {
            inner,
            end: place + CLOSE.len(),
        },
        false => Closing::Breaks,
    }
}

/// What a line does to a tag that was opened on a line before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing<'a> {
    /// It holds more of its text.
    GoesOn,
    /// It closes the tag behind `inner`, at `end`.
    Closes { inner: &'a [u8], end: usize },
    /// Something else begins: there is no tag.
    Breaks,
}

/// Where `text` stands within a tag: white space and Markdown marks may be around it, closing
/// punctuation behind it; where it has a blank, lines may break.
pub(super) fn text_in_tag(inner: &str, text: &str) -> Option<Range<usize>> {
    let around = |c: char| c.is_whitespace() || is_mark(c);
    for (place, c) in inner.char_indices() {
        let rest = inner.get(place..)?;
        if let Some(length) = length_of(rest, text) {
            let mut after = rest.get(length..)?.chars();
            if after.all(|c| around(c) || is_closing(c)) {
                return Some(place..place + length);
            }
        }
        if !around(c) {
            return None;
        }
    }
    None
}

/// How much of `rest` reads `text` at its start.
fn length_of(rest: &str, text: &str) -> Option<usize> {
    let blanks = |text: &str| text.len() - text.trim_start().len();
    let (mut left, mut wanted) = (rest, text);
    while let Some(next) = wanted.chars().next() {
        let run = left.get(..blanks(left))?;
        let (length, wanted_length) = if next.is_whitespace() && run.contains('\n') {
            (run.len(), blanks(wanted))
        } else {
            let length = next.len_utf8();
            if !left
                .get(..length)?
                .eq_ignore_ascii_case(wanted.get(..length)?)
            {
                return None;
            }
            (length, length)
        };
        left = left.get(length..)?;
        wanted = wanted.get(wanted_length..)?;
    }
    Some(rest.len() - left.len())
}

/// What stands on both sides of `span`.
pub(super) fn around<'a>(line: &'a [u8], span: &Range<usize>) -> (&'a [u8], &'a [u8]) {
    let before = line.get(..span.start).unwrap_or_default();
    (before, line.get(span.end..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found_for_the_last_time_they_stand() {
        let place = |line: &[u8]| whole_words(line, b"DONE").last();
        assert_eq!(place(b"done, undone and done_"), Some(0..4));
        assert_eq!(place(b"done done"), Some(5..9));
        assert_eq!(place("édone".as_bytes()), None);
        assert_eq!(place(b"\xffdone\xff"), Some(1..5));
        assert_eq!(whole_words(b"x(ok)x", b"(ok)").last(), Some(1..5));
    }

    #[test]
    fn whole_tags_are_found_from_the_end() {
        let inner = |line: &'static str| {
            tags_from_end(line.as_bytes())
                .map(|tag| &line[tag.inner])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            inner("<promise>a</promise><PROMISE>b</Promise> <"),
            ["b", "a"]
        );
        assert!(inner("<promise><b>a</b></promise>").is_empty());
        assert_eq!(inner("<promise>a</promise>b</promise>"), ["a"]);
        assert_eq!(inner("<promise>a</promise> <promise>b"), ["a"]);
        assert!(inner("a</promise>").is_empty());
        assert_eq!(open_tag(b"x <promise> a"), Some(2));
        assert_eq!(open_tag(b"x <promise>a</promise>"), None);
    }

    #[test]
    fn a_text_may_wear_marks_and_break_at_its_blanks() {
        for inner in [
            "ALL GREEN",
            " all green\n",
            "**ALL GREEN.**",
            "\nALL\nGREEN\n",
            "ALL \n\n  GREEN",
            "- ALL GREEN!",
            "`ALL GREEN`",
        ] {
            assert!(text_in_tag(inner, "ALL GREEN").is_some(), "{inner:?}");
        }
        for inner in [
            "ALL  GREEN",
            "AL\nL GREEN",
            "ALLGREEN",
            "not ALL GREEN",
            "ALL GREEN now",
            "ALL GREENS",
            "",
            "!ALL GREEN",
        ] {
            assert_eq!(text_in_tag(inner, "ALL GREEN"), None, "{inner:?}");
        }
        assert_eq!(text_in_tag(" **-x-**", "-x-"), Some(3..6));
        assert_eq!(text_in_tag("a\nb", "a  b"), Some(0..3));
    }
}
