//! Text as it is compared.

use crate::display::sequences::Sequences;

/// Lower case, plain apostrophes and quotes, no ANSI sequences, single spaces.
pub(super) fn normalize(text: &str) -> String {
    let mut norm = String::with_capacity(text.len());
    let mut sequences = Sequences::default();
    for c in text.chars().filter(|c| sequences.is_text(*c)) {
        let c = match c {
            '’' | '‘' | 'ʼ' => '\'',
            '“' | '”' => '"',
            '\u{a0}' | '\u{202f}' | '\t' | '\r' => ' ',
            c => c.to_ascii_lowercase(),
        };
        if !(c == ' ' && norm.ends_with(' ')) {
            norm.push(c);
        }
    }
    norm
}
