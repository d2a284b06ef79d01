//! Whether a place in a line stands within quotation marks.

use super::chars::{chars, is_nothing, is_word};

/// Marks that come in pairs. One that stands an odd number of times before a place is open
/// there, whichever of its forms opens in the writer's language.
const PAIRS: [&[char]; 6] = [
    &['"', '＂'],
    &['“', '”', '„', '‟'],
    &['«', '»'],
    &['‹', '›'],
    &['「', '」'],
    &['『', '』'],
];

/// Marks that are apostrophes as well.
const SINGLE: [char; 4] = ['\'', '‘', '’', '‚'];

/// Whether a quotation that opens in `before` is closed in `after`.
pub(super) fn encloses(before: &[u8], after: &[u8]) -> bool {
    let closing = |marks: &[char]| chars(after).any(|c| marks.contains(&c));
    let paired = PAIRS.iter().any(|marks| {
        closing(marks) && chars(before).filter(|c| marks.contains(c)).count() % 2 == 1
    });
    paired || (closing(&SINGLE) && single_open(before))
}

/// Whether a single mark is open at the end: one at a word's start opens, one at its end closes.
fn single_open(before: &[u8]) -> bool {
    let mut open = false;
    let mut previous = ' ';
    let mut rest = chars(before).peekable();
    while let Some(c) = rest.next() {
        if SINGLE.contains(&c) {
            let next = rest.peek().copied();
            if !is_word(previous) && next.is_none_or(|next| !is_nothing(next)) && !open {
                open = true;
            } else if next.is_none_or(|next| !is_word(next)) {
                open = false;
            }
        }
        previous = c;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(before: &str, after: &str) -> bool {
        encloses(before.as_bytes(), after.as_bytes())
    }

    #[test]
    fn a_quotation_opened_before_and_closed_after_encloses() {
        for (before, after) in [
            ("\"", "\""),
            ("say \"ok. ", "\","),
            ("„", "“"),
            ("»", "«"),
            ("‘Done. ", "’"),
            ("echo 'It works. ", "'"),
            ("「", "」"),
        ] {
            assert!(within(before, after), "{before}…{after}");
        }
    }

    #[test]
    fn apostrophes_inches_and_closed_quotations_do_not() {
        for (before, after) in [
            ("I've done it. ", ""),
            ("The users' data. It's fine. ", "'"),
            ("a 5\" disk. ", ""),
            ("the \"fix\". ", "\""),
            ("'a' and 'b'. ", "'"),
            ("", "\""),
        ] {
            assert!(!within(before, after), "{before}…{after}");
        }
    }
}
