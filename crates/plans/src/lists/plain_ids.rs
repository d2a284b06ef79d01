//! Ids that people write in lists of their own: `T03`, `T1.1`, `TASK-12`.

/// The length of such an id at the start of a text: capitals, perhaps a dash, and numbers with dots
/// between them.
pub(super) fn id_length(text: &str) -> Option<usize> {
    let capitals = text.bytes().take_while(u8::is_ascii_uppercase).count();
    let dash = usize::from(text[capitals..].starts_with('-'));
    let mut end = capitals + dash;
    loop {
        let digits = text[end..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        end += digits;
        let goes_on = text[end..].strip_prefix('.');
        if !goes_on.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            break;
        }
        end += 1;
    }
    let behind = text[end..].chars().next();
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    ((1..=6).contains(&capitals) && !behind.is_some_and(is_word)).then_some(end)
}

/// The id that a text begins with, in bold letters or brackets or not.
pub(super) fn id_of(text: &str) -> Option<&str> {
    let bare = text.trim_start_matches(['*', '_', '`', '[', '(']);
    Some(&bare[..id_length(bare)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_capitals_with_numbers() {
        for (text, id) in [
            ("T03 text", Some("T03")),
            ("T1.1: text", Some("T1.1")),
            ("**T1.2.3** text", Some("T1.2.3")),
            ("[TASK-12] text", Some("TASK-12")),
            ("A1. text", Some("A1")),
            ("T1.1", Some("T1.1")),
            ("Test 3", None),
            ("1.2 text", None),
            ("HTTP2-only text", None),
            ("T text", None),
            ("T1x text", None),
            ("ABCDEFG1 text", None),
        ] {
            assert_eq!(id_of(text), id, "{text}");
        }
    }
}
