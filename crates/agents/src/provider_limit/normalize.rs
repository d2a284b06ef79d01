//! Text as it is compared.

use descartes_text::display::sequences::Sequences;

/// Lower case, plain apostrophes and quotes, no ANSI sequences, no control characters, single spaces.
pub(super) fn normalize(text: &str) -> String {
    let mut norm = String::with_capacity(text.len());
    let mut sequences = Sequences::default();
    for c in text.chars().filter(|c| sequences.is_text(*c)) {
        let c = match c {
            '’' | '‘' | 'ʼ' => '\'',
            '“' | '”' => '"',
            '\u{a0}' | '\u{202f}' | '\t' | '\r' => ' ',
            // BEL, which ends a terminal's title, and others that nobody sees.
            c if c.is_control() => continue,
            c => c.to_ascii_lowercase(),
        };
        if !(c == ' ' && norm.ends_with(' ')) {
            norm.push(c);
        }
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_hides_no_text() {
        const LINE: &str = "you've hit your limit";
        for before in [
            "\x1b]0;title\x07",
            "\x1b]0;title\x1b\\",
            "\x1b]0;title\u{9c}",
            "\u{9d}0;title\x07",
            "\u{9d}0;title\x1b\\",
            "\u{9d}0;title\u{9c}",
            "\x1bPdata\x1b\\",
            "\u{90}data\u{9c}",
            "\x1b_data\x1b\\",
            "\u{9f}data\u{9c}",
            "\x1b[1;31m",
            "\u{9b}31m",
            "\x1b(B",
            "\x07\x08\0\x7f\x0e\x0f",
        ] {
            let norm = normalize(&format!("{before}You’ve hit\x07 your\x1b[0m limit\u{85}"));
            assert_eq!(norm, LINE, "{before:?}");
        }
        assert_eq!(normalize("\x1b]0;without an end"), "");
    }
}
