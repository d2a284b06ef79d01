//! Words for people.

use jiff::Timestamp;

/// How long ago, in the largest unit that says something.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// A phrase as windows write titles and sentences.
pub fn capitalised(phrase: &str) -> String {
    let mut chars = phrase.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(chars).collect()
}

/// One line of a longer text.
pub fn one_line(text: &str, most: usize) -> String {
    let line = descartes_text::display::one_line(text);
    match line.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let then = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(then("2026-03-01T11:59:58Z"), "just now");
        assert_eq!(then("2026-03-01T11:55:00Z"), "5 min ago");
        assert_eq!(then("2026-02-28T13:00:00Z"), "23 h ago");
        assert_eq!(then("2026-02-20T12:00:00Z"), "9 days ago");
        assert_eq!(then("2026-03-01T12:00:09Z"), "just now");
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(one_line("a\n  b  c", 10), "a b c");
        assert_eq!(one_line("äöüß", 2), "äö…");
    }
}
