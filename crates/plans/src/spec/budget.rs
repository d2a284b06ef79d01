//! Cutting a text to a budget.

use super::tokens::{estimate_tokens, quarters, quarters_of};

/// A text within a budget in quarters of a token: whole, or its first lines with a note that it
/// was cut, or nothing where not even the note fits.
pub(super) fn fit(text: &str, budget: u64) -> String {
    let whole = quarters(text);
    if whole <= budget {
        return text.to_owned();
    }
    let note = format!("\n[cut here: {} tokens in all]", estimate_tokens(text));
    let Some(room) = budget.checked_sub(quarters(&note)) else {
        return String::new();
    };
    let head = head(text, room);
    match head.trim().is_empty() {
        true => String::new(),
        false => format!("{}{note}", head.trim_end()),
    }
}

/// As many whole lines as fit; where those leave half of the room unused, since a very long line
/// follows, as much of that line as fits.
fn head(text: &str, room: u64) -> &str {
    let mut spent = 0;
    let (mut whole_lines, mut spent_on_them) = (0, 0);
    for (at, character) in text.char_indices() {
        spent += quarters_of(character);
        if spent > room {
            let enough = 2 * spent_on_them >= room;
            return &text[..if enough { whole_lines } else { at }];
        }
        if character == '\n' {
            (whole_lines, spent_on_them) = (at + 1, spent);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_cut_at_a_line_and_says_so() {
        let text = "first line\nsecond line\nthird line is longer than all the rest of this text, and then some more";
        assert_eq!(fit(text, 1000), text);
        assert_eq!(
            fit(text, 70),
            "first line\nsecond line\n[cut here: 25 tokens in all]"
        );
        assert_eq!(
            fit(
                "one line that is long, very long indeed, longer than the room",
                46
            ),
            "one line that\n[cut here: 16 tokens in all]"
        );
        assert_eq!(fit(text, 10), "");
        let paragraph = format!("# A heading\n{}", "word ".repeat(400));
        let cut = fit(&paragraph, 800);
        assert!(cut.matches("word").count() > 100, "{cut}");
    }

    proptest! {
        #[test]
        fn what_fits_is_within_its_budget(text in "[ -~é潮\n]{0,200}", budget in 0_u64..200) {
            let cut = fit(&text, budget);
            prop_assert!(quarters(&cut) <= budget);
            let kept = cut.split("\n[cut here").next().unwrap();
            prop_assert!(text.starts_with(kept));
        }
    }
}
