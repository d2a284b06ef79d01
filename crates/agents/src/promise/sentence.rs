//! Whether something was said, and whether it was said to its end.

use super::chars::{
    is_closer, is_emoji, is_mark, is_nothing, is_opener, is_ornament, is_punctuation, is_stop,
    is_word,
};

/// What may stand between a tag and the end of its line.
pub(super) fn may_follow(c: char) -> bool {
    is_nothing(c) || is_mark(c) || is_punctuation(c) || is_emoji(c) || is_ornament(c)
}

/// Whether nothing was said before: list marks, a checked box, ornaments and a time stamp at most.
pub(super) fn is_unsaid(before: &[u8]) -> bool {
    let text = String::from_utf8_lossy(before);
    let mut rest: &str = &text;
    let mut numbered = false;
    loop {
        rest = rest.trim_start_matches(|c| is_nothing(c) || is_mark(c));
        let Some(first) = rest.chars().next() else {
            return true;
        };
        let skipped = if is_opener(first) {
            bracketed(rest).unwrap_or(first.len_utf8())
        } else if is_ornament(first) {
            first.len_utf8()
        } else {
            match list_number(rest) {
                Some(length) if !numbered => {
                    numbered = true;
                    length
                }
                _ => return false,
            }
        };
        rest = rest.get(skipped..).unwrap_or_default();
    }
}

/// Whether the line holds an open box, `[ ]`: what stands there is yet to be done.
pub(super) fn has_open_box(line: &[u8]) -> bool {
    memchr::memchr_iter(b'[', line).any(|place| {
        let inside = line.get(place + 1..).unwrap_or_default();
        let blanks = inside
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        blanks > 0 && inside.get(blanks) == Some(&b']')
    })
}

/// Length of a checked box or a time stamp in brackets at the start of `text`.
fn bracketed(text: &str) -> Option<usize> {
    let end = text.find([')', ']', '}', '）', '】', '］', '｝'])?;
    let open = text.chars().next().map_or(0, char::len_utf8);
    let inside = text.get(open..end)?;
    let close = text.get(end..)?.chars().next().map_or(0, char::len_utf8);
    let says_nothing = matches!(inside.trim(), "x" | "X") || is_time_stamp(inside);
    says_nothing.then_some(end + close)
}

/// Words that belong to dates and times.
const DATE_WORDS: [&str; 28] = [
    "t", "z", "utc", "gmt", "am", "pm", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan",
    "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "cet", "cest",
    "ms",
];

/// Whether this is a date or a time of day, in digits.
fn is_time_stamp(text: &str) -> bool {
    if text.len() > 64 || !text.is_ascii() {
        return false;
    }
    let words = text.split(|c: char| !c.is_ascii_alphabetic());
    let known = words.filter(|word| !word.is_empty()).all(|word| {
        DATE_WORDS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    });
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b" \t:.,-+/_".contains(&b));
    let digits = |pattern: &[u8]| {
        text.as_bytes().windows(pattern.len()).any(|window| {
            window
                .iter()
                .zip(pattern)
                .all(|(byte, wanted)| match wanted {
                    b'0' => byte.is_ascii_digit(),
                    wanted => byte == wanted,
                })
        })
    };
    known && plain && (digits(b"0:00") || digits(b"0000-00-00") || digits(b"0000/00/00"))
}

/// Length of the number of a list at the start of `text`.
fn list_number(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let dotted = matches!(text.as_bytes().get(digits), Some(b'.' | b')'));
    // "2.5" is a number, and no place in a list.
    let ends = text
        .get(digits + 1..)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    (digits > 0 && dotted && ends).then_some(digits + 1)
}

/// Whether the words before end a sentence.
pub(super) fn is_finished(before: &[u8]) -> bool {
    let text = String::from_utf8_lossy(before);
    let said = text.trim_end_matches(|c| {
        is_nothing(c) || is_mark(c) || is_closer(c) || (is_ornament(c) && !is_emoji(c))
    });
    // `print!(` and the like are code, and no sentence.
    let behind = text.get(said.len()..).unwrap_or_default();
    if behind.starts_with(['(', '[', '{']) {
        return false;
    }
    // What opens a comment calls nothing out.
    let open = said.ends_with("<!") || said.ends_with("...") || is_abbreviation(said);
    said.ends_with(|c| is_stop(c) || is_emoji(c)) && !open
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
    fn marks_numbers_boxes_ornaments_and_time_stamps_say_nothing() {
        for text in [
            "",
            " \u{feff}",
            "- ",
            "**",
            "## ",
            "1. ",
            "12) ",
            "- 3.",
            "(",
            "[",
            "- [x] ",
            "1. [X] ",
            "● ",
            "✦ ",
            "⏺ ",
            "| ",
            "│ ",
            "┃",
            "[09:14:02] ",
            "[2026-11-16T09:14:02.123Z] ",
            "(09:14) ",
            "[2026-11-16] ",
            "[Mon Nov 16 09:14:02 UTC 2026] - ",
        ] {
            assert!(is_unsaid(text.as_bytes()), "{text}");
        }
        for text in [
            "a",
            "1",
            "1 2",
            "1.5",
            "2.5 ",
            "\"",
            "→",
            "❯ ",
            "☐ ",
            ">",
            "[INFO] ",
            "[3/5] ",
            "[x",
            "1. 2. ",
            "[12] ",
            "[at 09:14] ",
        ] {
            assert!(!is_unsaid(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn an_open_box_is_told_from_a_checked_one() {
        for (text, open) in [
            ("- [ ] x", true),
            ("[  ]", true),
            ("[\t]", true),
            ("[x]", false),
            ("[]", false),
            ("a[ i ]", false),
        ] {
            assert_eq!(has_open_box(text.as_bytes()), open, "{text}");
        }
    }

    #[test]
    fn a_sentence_is_finished_by_a_stop_or_an_emoji_whatever_closes_behind_it() {
        for text in [
            "Ok.",
            "Ok! ",
            "(Ok.)",
            "**Ok?**",
            "“Ok!”",
            "好。",
            "ok ✅",
            "ok 👍🏽",
            "ok ❤\u{fe0f}",
            "हो गया।",
            "تم۔",
            "| Ok. | ",
            "Ok. (",
        ] {
            assert!(is_finished(text.as_bytes()), "{text}");
        }
        for text in [
            "Ok",
            "",
            "Ok:",
            "ok —",
            "see e.g.",
            "(I.E.",
            "v1.0",
            "→",
            "❯",
            "(ok)",
            "<!-- ",
            "Ok...",
            "Ok…",
            "“Ok…”",
            "see (",
            "print!( ",
        ] {
            assert!(!is_finished(text.as_bytes()), "{text}");
        }
        assert!(is_finished(b"The fig.") && is_finished(b"\xff.\xff"));
    }
}
