//! What a character is to a reader: nothing, a mark, punctuation, an emoji, or a word.

/// Leaves no ink: white space, control characters, joiners, byte order mark, invalid bytes.
pub(super) fn is_nothing(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | char::REPLACEMENT_CHARACTER)
}

/// A mark of Markdown, or a bullet or rule that stands for one.
pub(super) fn is_mark(c: char) -> bool {
    matches!(
        c,
        '*' | '_'
            | '`'
            | '~'
            | '#'
            | '-'
            | '+'
            | '='
            | '–'
            | '—'
            | '•'
            | '◦'
            | '‣'
            | '▪'
            | '●'
            | '○'
    )
}

/// Ends a sentence.
pub(super) fn is_stop(c: char) -> bool {
    matches!(
        c,
        '.' | '!' | '?' | '…' | '。' | '！' | '？' | '．' | '｡' | '‼' | '⁇' | '⁈' | '⁉'
    )
}

/// Closes a bracket or a quotation; may stand between a full stop and the next sentence.
pub(super) fn is_closer(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | '"'
            | '\''
            | '”'
            | '’'
            | '“'
            | '»'
            | '«'
            | '›'
            | '」'
            | '』'
            | '）'
            | '】'
    )
}

/// Punctuation of any script; may stand behind a claim.
pub(super) fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c,
            '¡' | '§' | '«' | '¶' | '·' | '»' | '¿'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}'
            | '\u{2E00}'..='\u{2E5D}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}'
            | '\u{3014}'..='\u{301F}' | '\u{FE30}'..='\u{FE6B}' | '\u{FF01}'..='\u{FF0F}'
            | '\u{FF1A}'..='\u{FF20}' | '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF65}')
}

/// What may follow the text in `line` mode: the punctuation that closes a sentence.
pub(super) fn is_closing(c: char) -> bool {
    is_stop(c) || matches!(c, ',' | ';' | '，' | '；')
}

/// An emoji as readers see it: digits, `©` and plain arrows are none, check marks are.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{1F000}'..='\u{1FAFF}'
        | '\u{2600}'..='\u{260F}' | '\u{2611}'..='\u{26FF}'
        | '\u{2702}' | '\u{2705}' | '\u{2708}'..='\u{270D}' | '\u{270F}' | '\u{2712}'..='\u{2714}'
        | '\u{2716}'..='\u{2718}' | '\u{271D}' | '\u{2721}' | '\u{2728}' | '\u{2733}' | '\u{2734}'
        | '\u{2744}' | '\u{2747}' | '\u{274C}' | '\u{274E}' | '\u{2753}'..='\u{2755}' | '\u{2757}'
        | '\u{2763}' | '\u{2764}' | '\u{2795}'..='\u{2797}' | '\u{27B0}' | '\u{27BF}'
        | '\u{231A}' | '\u{231B}' | '\u{2328}' | '\u{23CF}' | '\u{23E9}'..='\u{23F3}'
        | '\u{23F8}'..='\u{23FA}' | '\u{20E3}' | '\u{24C2}' | '\u{25AB}' | '\u{25B6}' | '\u{25C0}'
        | '\u{25FB}'..='\u{25FE}' | '\u{2B1B}' | '\u{2B1C}' | '\u{2B50}' | '\u{2B55}'
        | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{E0020}'..='\u{E007F}')
}

/// Part of a word.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The characters of bytes that may be no UTF-8; each invalid part is one U+FFFD.
pub(super) fn chars(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let bad = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(bad)
    })
}

/// Whether nothing is to be seen.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    chars(bytes).all(is_nothing)
}

/// Whether there is a letter or a digit.
pub(super) fn has_words(bytes: &[u8]) -> bool {
    chars(bytes).any(char::is_alphanumeric)
}

/// Without white space, control characters and invalid bytes at either end.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let mut start = bytes.len();
    let mut end = 0;
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if let Some(first) = valid.find(|c| !is_nothing(c)) {
            start = start.min(at + first);
        }
        if let Some((last, c)) = valid.char_indices().rfind(|&(_, c)| !is_nothing(c)) {
            end = at + last + c.len_utf8();
        }
        at += valid.len() + chunk.invalid().len();
    }
    bytes.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_takes_what_leaves_no_ink() {
        assert_eq!(trim(b" \xff\0 a \xfe b\t\xe2\x82"), b"a \xfe b");
        assert_eq!(trim("\u{feff}é\u{200b}".as_bytes()), "é".as_bytes());
        assert_eq!(trim(b" \xff "), b"");
        assert_eq!(trim(b""), b"");
    }

    #[test]
    fn a_reader_tells_emoji_from_arrows_and_digits() {
        for emoji in "✅🎉✔✓❌⭐❤🇩🛑⏺".chars() {
            assert!(is_emoji(emoji), "{emoji}");
        }
        for other in "→➜❯☐©™1#│".chars() {
            assert!(!is_emoji(other), "{other}");
        }
    }

    #[test]
    fn blank_and_wordless_are_not_the_same() {
        assert!(is_blank(b" \t\0\xff") && !is_blank(b" - "));
        assert!(!has_words(b"--- ** \xc3") && has_words("é".as_bytes()));
    }
}
