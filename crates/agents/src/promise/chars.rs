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

/// Ends a sentence, in any script. `…` and `...` leave it open.
pub(super) fn is_stop(c: char) -> bool {
    is_full_stop(c)
        || matches!(
            c,
            '!' | '?'
                | '\u{037E}'
                | '\u{055C}'
                | '\u{055E}'
                | '\u{061E}'
                | '\u{061F}'
                | '\u{1367}'
                | '\u{1945}'
                | '‼'
                | '‽'
                | '⁇'
                | '⁈'
                | '⁉'
                | '⸮'
                | '\u{FE15}'
                | '\u{FE16}'
                | '\u{FE56}'
                | '\u{FE57}'
                | '！'
                | '？'
        )
}

/// The full stops of all scripts.
pub(super) fn is_full_stop(c: char) -> bool {
    matches!(c,
        '.' | '。' | '．' | '｡' | '\u{0589}' | '\u{061D}' | '\u{06D4}' | '\u{0700}'..='\u{0702}'
        | '\u{07F9}' | '\u{0837}' | '\u{0839}' | '\u{083D}' | '\u{083E}' | '\u{0964}' | '\u{0965}'
        | '\u{0DF4}' | '\u{0F0D}'..='\u{0F11}' | '\u{104A}' | '\u{104B}' | '\u{10FB}' | '\u{1362}'
        | '\u{1368}' | '\u{166E}' | '\u{1735}' | '\u{1736}' | '\u{17D4}' | '\u{17D5}' | '\u{1803}'
        | '\u{1809}' | '\u{1944}' | '\u{1AA8}'..='\u{1AAB}' | '\u{1B5A}' | '\u{1B5B}' | '\u{1B5E}'
        | '\u{1B5F}' | '\u{1C3B}' | '\u{1C3C}' | '\u{1C7E}' | '\u{1C7F}' | '\u{2CF9}'..='\u{2CFB}'
        | '\u{2E3C}' | '\u{A4FF}' | '\u{A60E}' | '\u{A60F}' | '\u{A6F3}' | '\u{A6F7}' | '\u{A876}'
        | '\u{A877}' | '\u{A8CE}' | '\u{A8CF}' | '\u{A92F}' | '\u{A9C8}' | '\u{A9C9}'
        | '\u{AA5D}'..='\u{AA5F}' | '\u{AAF0}' | '\u{AAF1}' | '\u{ABEB}' | '\u{FE12}' | '\u{FE52}')
}

/// Opens a bracket.
pub(super) fn is_opener(c: char) -> bool {
    matches!(c, '(' | '[' | '{' | '（' | '【' | '［' | '｛')
}

/// Closes a bracket.
fn is_bracket_closer(c: char) -> bool {
    matches!(c, ')' | ']' | '}' | '）' | '】' | '］' | '｝')
}

/// Decorates a line and says nothing: brackets, table bars, box drawing, geometric shapes and stars.
/// Arrows and the signs of a shell's prompt are none, nor is an empty ballot box.
pub(super) fn is_ornament(c: char) -> bool {
    is_opener(c)
        || is_bracket_closer(c)
        || matches!(c,
            '|' | '¦' | '·' | '∙' | '⁃' | '⏺' | '⏹' | '\u{2500}'..='\u{25FF}'
            | '\u{2605}' | '\u{2606}' | '\u{2720}'..='\u{274B}' | '\u{2B24}' | '\u{FF5C}')
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

/// Closes a sentence; may follow the text within a tag.
pub(super) fn is_closing(c: char) -> bool {
    is_stop(c) || matches!(c, ',' | ';' | '…' | '，' | '；')
}

/// Emphasis, code and heading marks: what is stripped around the text where it stands without a tag.
pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '#')
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
