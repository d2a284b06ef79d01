//! Whether something was said, and whether it was said to its end.

use super::chars::{
    chars, is_closer, is_emoji, is_mark, is_nothing, is_punctuation, is_stop, is_word,
};

/// What may stand between a tag and the end of its line.
pub(super) fn may_follow(c: char) -> bool {
    is_nothing(c) || is_mark(c) || is_punctuation(c) || is_emoji(c)
}

/// Whether nothing was said before: marks at most, or the number of a list.
pub(super) fn is_unsaid(before: &[u8]) -> bool {
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
pub(super) fn is_finished(before: &[u8]) -> bool {
    let text = String::from_utf8_lossy(before);
    let said = text.trim_end_matches(|c| is_nothing(c) || is_mark(c) || is_closer(c));
    // What opens a comment calls nothing out.
    let opens_comment = said.ends_with("<!");
    said.ends_with(|c| is_stop(c) || is_emoji(c)) && !opens_comment && !is_abbreviation(said)
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

    #[test]
    fn marks_and_numbers_of_lists_say_nothing() {
        for text in ["", " \u{feff}", "- ", "**", "## ", "1. ", "12) ", "- 3."] {
            assert!(is_unsaid(text.as_bytes()), "{text}");
        }
        for text in ["a", "1", "1 2", "1.5", "(", "\"", "→", ">"] {
            assert!(!is_unsaid(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_sentence_is_finished_by_a_stop_or_an_emoji_whatever_closes_behind_it() {
        for text in [
            "Ok.",
            "Ok! ",
            "(Ok.)",
            "**Ok?**",
            "“Ok…”",
            "好。",
            "ok ✅",
            "ok 👍🏽",
            "ok ❤\u{fe0f}",
        ] {
            assert!(is_finished(text.as_bytes()), "{text}");
        }
        for text in [
            "Ok", "", "Ok:", "ok —", "see e.g.", "(I.E.", "v1.0", "→", "❯", "(ok)", "<!-- ",
        ] {
            assert!(!is_finished(text.as_bytes()), "{text}");
        }
        assert!(is_finished(b"The fig.") && is_finished(b"\xff.\xff"));
    }
}
