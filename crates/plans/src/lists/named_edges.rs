//! Dependencies that stand in a sentence: `(depends on T012, T013)`.

use super::id_ranges::NamedIds;

/// Words that come directly before the ids, and whether a colon must follow: `[Depends: T043]`,
/// `**Dependencies**: T005`.
const WORDS: [(&str, bool); 9] = [
    ("depends on", false),
    ("requires", false),
    ("blocked by", false),
    ("depends-on", false),
    ("after", false),
    ("depends", true),
    ("dependencies", true),
    ("dependency", true),
    ("deps", true),
];

/// The ids that a text says it depends on; `id` reads one at the start of a text.
pub(super) fn named_edges(text: &str, id: fn(&str) -> Option<usize>) -> Vec<NamedIds> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let first = byte.to_ascii_lowercase();
        if !matches!(first, b'a' | b'b' | b'd' | b'r') {
            continue;
        }
        let before = text[..at].chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        for (word, has_colon) in WORDS.iter().filter(|(word, _)| word.as_bytes()[0] == first) {
            let end = at + word.len();
            let is_word = bytes.get(at..end);
            if is_word.is_none_or(|found| !found.eq_ignore_ascii_case(word.as_bytes())) {
                continue;
            }
            let behind = &text[end..];
            if !has_colon || behind.trim_start_matches(['*', '_', ' ']).starts_with(':') {
                read_ids(behind, id, &mut found);
            }
        }
    }
    found
}

/// Reads `: T001, T002 and T004–T006`, and stops at the first other word.
fn read_ids(text: &str, id: fn(&str) -> Option<usize>, found: &mut Vec<NamedIds>) {
    let mut rest = text;
    let mut last: Option<&str> = None;
    loop {
        let (next, is_range) = behind_separator(rest);
        let Some(length) = id(next) else {
            return;
        };
        let read = &next[..length];
        let ids = match (last, is_range) {
            (Some(from), true) => NamedIds::up_to(from, read),
            _ => NamedIds::One(read.to_owned()),
        };
        if matches!(ids, NamedIds::Range(_)) {
            // Its first id, which was read already.
            found.pop();
        }
        found.push(ids);
        last = Some(read);
        rest = &next[length..];
    }
}

/// What follows separators, and whether they mean "up to".
fn behind_separator(text: &str) -> (&str, bool) {
    let mut rest = text;
    let mut is_range = false;
    loop {
        let is_sign = |c: char| {
            matches!(
                c,
                ' ' | '\t' | ',' | ':' | ';' | '&' | '+' | '/' | '*' | '_' | '`' | '#'
            )
        };
        let trimmed = rest.trim_start_matches(is_sign);
        let trimmed = match trimmed.as_bytes().first() {
            Some(b'a' | b't' | b'T') => behind_one(trimmed, &WORDS_BETWEEN).unwrap_or(trimmed),
            _ => trimmed,
        };
        let ranged = match trimmed.as_bytes().first() {
            Some(b'-' | b't' | b'.' | 0x80..) => behind_one(trimmed, &UP_TO),
            _ => None,
        };
        is_range |= ranged.is_some();
        let trimmed = ranged.unwrap_or(trimmed);
        if trimmed.len() == rest.len() {
            return (rest, is_range);
        }
        rest = trimmed;
    }
}

/// Words between ids.
const WORDS_BETWEEN: [&str; 5] = ["and ", "tasks ", "task ", "Tasks ", "Task "];
/// What means "up to".
const UP_TO: [&str; 5] = ["–", "—", "-", "to ", ".."];

/// What follows one of these words or signs.
fn behind_one<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|word| text.strip_prefix(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<usize> {
        let digits = text
            .strip_prefix('T')?
            .bytes()
            .take_while(u8::is_ascii_digit);
        let digits = digits.count();
        (digits >= 3).then_some(digits + 1)
    }

    #[test]
    fn ids_are_read_directly_behind_the_words() {
        for (text, expected) in [
            ("Writer (depends on T012, T013)", vec!["T012", "T013"]),
            (
                "x, requires T001 and T002 & T003",
                vec!["T001", "T002", "T003"],
            ),
            ("**Dependency**: Requires T067.", vec!["T067"]),
            ("blocked by: T001/T002", vec!["T001", "T002"]),
            ("x **[Depends: T043]**", vec!["T043"]),
            ("[depends: T001, T002] x", vec!["T001", "T002"]),
            ("x (depends: T004)", vec!["T004"]),
            ("- Dependencies: T005; T006", vec!["T005", "T006"]),
            ("[P] [deps:T005,T006] x", vec!["T005", "T006"]),
            ("[deps:] x T005", vec![]),
            ("- **Dependencies**: T005", vec!["T005"]),
            ("- __Depends:__ T005", vec!["T005"]),
            ("Dependencies: none, see T005", vec![]),
            ("a list of dependencies T005", vec![]),
            ("after T034–T037", vec!["T034-T037"]),
            ("depends on T034-T036, T040", vec!["T034-T036", "T040"]),
            ("after T034–T012", vec!["T034", "T012"]),
            ("depends on the work in T001", vec![]),
            ("thereafter T001", vec![]),
            ("see T001", vec![]),
        ] {
            let expected: Vec<NamedIds> = expected
                .into_iter()
                .map(|ids| match ids.split_once('-') {
                    Some((from, to)) => NamedIds::up_to(from, to),
                    None => NamedIds::One(ids.to_owned()),
                })
                .collect();
            assert_eq!(named_edges(text, id), expected, "{text}");
        }
    }
}
