//! Where tags and texts stand in a line.

use std::ops::Range;

use memchr::{memchr2, memrchr};

use super::chars::{chars, is_word};

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

/// The last tag of a line and what stands in it.
pub(super) fn last_tag(line: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
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
    fn only_the_last_tag_matters_and_only_when_it_is_whole() {
        let inner = |line: &'static str| last_tag(line.as_bytes()).map(|(_, inner)| &line[inner]);
        assert_eq!(
            inner("<promise>a</promise><PROMISE>b</Promise> <"),
            Some("b")
        );
        assert_eq!(inner("<promise><b>a</b></promise>"), None);
        assert_eq!(inner("<promise>a</promise>b</promise>"), None);
        assert_eq!(inner("<promise>a</promise> <promise>b"), Some("a"));
        assert_eq!(inner("a</promise>"), None);
    }
}
