//! A cheap estimate of tokens.

/// Estimates the tokens of a text, without a model's vocabulary.
///
/// Each character costs a quarter of a token (ASCII letters, digits and spaces), a half (ASCII
/// punctuation, line ends, letters of other alphabets) or a whole one (ideographs, emoji and the
/// rest). English prose comes out as its bytes over four; code, a little higher. The estimate of a
/// whole is the sum of its parts' up to rounding, and never falls when text is added.
pub fn estimate_tokens(text: &str) -> u32 {
    u32::try_from(quarters(text).div_ceil(4)).unwrap_or(u32::MAX)
}

/// The same in quarters of a token, which add up exactly.
pub(super) fn quarters(text: &str) -> u64 {
    text.chars().map(quarters_of).sum()
}

pub(super) fn quarters_of(character: char) -> u64 {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '\t' => 1,
        '\0'..='\u{7f}' => 2,
        // Latin, Greek, Cyrillic, Hebrew, Arabic and general punctuation.
        '\u{80}'..='\u{7ff}' | '\u{2000}'..='\u{206f}' => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prose_costs_a_quarter_a_letter_and_ideographs_a_whole_token() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("a plain line of words"), 6);
        assert_eq!(estimate_tokens("{}();"), 3);
        assert_eq!(estimate_tokens("潮汐表"), 3);
        assert_eq!(estimate_tokens("прилив"), 3);
    }

    proptest! {
        #[test]
        fn parts_add_up(a in "\\PC{0,40}", b in "\\PC{0,40}") {
            let whole = estimate_tokens(&format!("{a}{b}"));
            prop_assert!(whole >= estimate_tokens(&a).max(estimate_tokens(&b)));
            let sum = estimate_tokens(&a) + estimate_tokens(&b);
            prop_assert!(whole <= sum && sum <= whole + 1);
        }
    }
}
