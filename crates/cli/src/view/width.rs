//! How wide text is on a terminal. Characters are measured one by one: a sequence that some
//! terminals draw as one emoji then counts as wider than it is, never as narrower.

use unicode_width::UnicodeWidthChar;

const ELLIPSIS: char = '…';

/// Columns that a character takes; control characters take none, since none is ever drawn.
fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text, and spaces up to so many columns.
pub fn pad(text: &str, to: usize) -> String {
    format!("{text}{:1$}", "", to.saturating_sub(width(text)))
}

/// Spaces up to so many columns, and the text.
pub fn pad_left(text: &str, to: usize) -> String {
    format!("{:1$}{text}", "", to.saturating_sub(width(text)))
}

/// The text in at most `max` columns: its end is cut, and the cut shown.
pub fn cut_end(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let mut out = take(text.chars(), max.saturating_sub(1));
    if max > 0 {
        out.push(ELLIPSIS);
    }
    out
}

/// The text in at most `max` columns: its beginning is cut, and the cut shown.
pub fn cut_start(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let kept = take(text.chars().rev(), max.saturating_sub(1));
    let mut out: String = kept.chars().rev().collect();
    if max > 0 {
        out.insert(0, ELLIPSIS);
    }
    out
}

fn take(chars: impl Iterator<Item = char>, max: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += columns(*c);
        used <= max
    };
    chars.take_while(fits).collect()
}

/// One line for people, cleaned and masked.
pub use descartes_text::display::one_line;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_count_twice_and_are_never_split() {
        assert_eq!(width("日本"), 4);
        assert_eq!(cut_end("日本語", 5), "日本…");
        assert_eq!(cut_end("日本語", 4), "日…");
        assert_eq!(cut_start("日本語", 4), "…語");
        assert_eq!(cut_end("abc", 3), "abc");
        assert_eq!(cut_end("abc", 0), "");
        assert_eq!(one_line(" a\n\tb \u{7}c"), "a b c");
    }

    proptest! {
        #[test]
        fn a_cut_text_always_fits(text in "\\PC{0,40}", max in 0_usize..30) {
            prop_assert!(width(&cut_end(&text, max)) <= max);
            prop_assert!(width(&cut_start(&text, max)) <= max);
        }
    }
}
