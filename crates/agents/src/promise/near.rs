//! Tags that were printed and did not count.

use std::ops::Range;

use super::ClaimKind;
use super::chars::is_nothing;

/// Most characters of a line that is shown.
const MAX_SHOWN: usize = 200;

/// How much of a long line is shown before the tag, in bytes.
const SHOWN_BEFORE: usize = 80;

/// A tag with the text of a promise that is no claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// Which of the two promises it is.
    pub kind: ClaimKind,
    /// The line in which it stood, at most 200 characters.
    pub line: String,
}

/// The text of a promise as the last words of a stream, without what it needs to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarePromise {
    /// The line in which it stood.
    pub line: String,
    /// How it counts: with its tag.
    pub wanted: String,
}

/// The near misses of a stream: how many, and the last of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearMisses {
    /// How many there were.
    pub count: u64,
    /// The last one.
    pub last: Option<NearMiss>,
}

impl NearMisses {
    pub(super) fn add(&mut self, near: NearMiss) {
        self.count += 1;
        self.last = Some(near);
    }
}

/// The line around `span` as one line of readable text.
pub(super) fn shown(line: &[u8], span: &Range<usize>) -> String {
    let mut from = span.start.saturating_sub(SHOWN_BEFORE);
    while from > 0 && line.get(from).is_some_and(|b| (0x80..0xc0).contains(b)) {
        from -= 1;
    }
    let end = line.len().min(span.end + 4 * MAX_SHOWN);
    let text = String::from_utf8_lossy(line.get(from..end).unwrap_or_default());
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    for word in text.split(is_nothing).filter(|word| !word.is_empty()) {
        if !shown.is_empty() && shown != "…" {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    shorten(shown)
}

/// At most 200 characters, the last of them `…` where some are missing.
pub(super) fn shorten(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(MAX_SHOWN) {
        let end = text.char_indices().nth(MAX_SHOWN - 1);
        text.truncate(end.map_or(cut, |(place, _)| place));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_line_is_short_and_holds_the_tag() {
        let tag = "<promise>DONE</promise>";
        let show = |before: &str, after: &str| {
            let line = format!("{before}{tag}{after}");
            let shown = shown(line.as_bytes(), &(before.len()..before.len() + tag.len()));
            assert!(
                shown.chars().count() <= MAX_SHOWN && shown.contains(tag),
                "{shown}"
            );
            shown
        };
        assert_eq!(
            show("Status:\t ", "  \u{7}now"),
            format!("Status: {tag} now")
        );
        assert!(show(&"ä ".repeat(500), "").starts_with('…'));
        assert!(show("", &" and so on".repeat(500)).ends_with('…'));
    }
}
