//! The line on which a task begins.

use super::lines::{LineKind, RoadmapLine};

/// A list item with a checkbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// The byte of the checkbox's character in the line; `None` for `[]`.
    pub(super) checkbox: Option<usize>,
    /// What stands in the box.
    pub(super) mark: char,
    /// What follows it, trimmed.
    pub(super) rest: &'a str,
    pub(super) name: Option<Name<'a>>,
}

/// The id of a task and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) id: &'a str,
    pub(super) description: &'a str,
    /// `**id**:` or `**id:**`, as opposed to `**id** text`.
    pub(super) has_colon: bool,
}

/// Reads `- [ ] **id**: description` and what comes near it.
pub(super) fn item<'a>(line: &RoadmapLine<'a>) -> Option<Item<'a>> {
    if line.kind != LineKind::Plain {
        return None;
    }
    let text = line.text;
    let after_bullet = text.trim_start().strip_prefix(['-', '*', '+'])?;
    let after_open = after_bullet.trim_start().strip_prefix('[')?;
    let at = text.len() - after_open.len();
    let mark = after_open.chars().next()?;
    let blanks = after_open.len() - after_open.trim_start().len();
    let (mark, checkbox, behind) = match mark {
        ']' => (' ', None, &after_open[1..]),
        // Two blanks are shown as a box by nobody.
        _ if blanks > 1 && after_open[blanks..].starts_with(']') => {
            (' ', None, &after_open[blanks + 1..])
        }
        mark => (
            mark,
            Some(at),
            after_open[mark.len_utf8()..].strip_prefix(']')?,
        ),
    };
    let rest = behind.trim();
    let name = name(rest);
    // `[x](address)` is a link and `[a]b` a word.
    let is_box = name.is_some() || behind.is_empty() || behind.starts_with([' ', '\t']);
    is_box.then_some(Item {
        checkbox,
        mark,
        rest,
        name,
    })
}

/// `**id**: text`, `**id:** text`, `**id** text`, and the same with underscores.
fn name(rest: &str) -> Option<Name<'_>> {
    let (mark, inner) = ["**", "__"]
        .iter()
        .find_map(|mark| Some((*mark, rest.strip_prefix(mark)?)))?;
    let (id, after) = inner.split_once(mark)?;
    let after = after.trim_start();
    let has_colon = id.trim_end().ends_with(':') || after.starts_with(':');
    let id = id.trim().trim_end_matches(':').trim().trim_matches('`');
    let description = after
        .strip_prefix([':', '-', '–', '—'])
        .unwrap_or(after)
        .trim();
    (!id.is_empty()).then_some(Name {
        id,
        description,
        has_colon,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Item<'_>> {
        item(&RoadmapLine {
            number: 1,
            start: 0,
            text,
            kind: LineKind::Plain,
            underlined: None,
        })
    }

    #[test]
    fn tasks_are_read_in_every_spelling_of_their_authors() {
        for text in [
            "- [ ] **a b**: do it",
            "-[ ]**a b**:do it",
            "* [x] **a b:** do it",
            "+ [X] **a b** do it",
            "  - [-] __a b__ — do it",
            "- [!] **`a b`**: do it",
        ] {
            let found = read(text).unwrap();
            let name = found.name.unwrap();
            assert_eq!((name.id, name.description), ("a b", "do it"), "{text}");
            let checkbox = found.checkbox.unwrap();
            assert_eq!(text[checkbox..].chars().next(), Some(found.mark), "{text}");
        }
    }

    #[test]
    fn what_is_no_checkbox_is_no_task() {
        for text in [
            "- [x](address)",
            "- [ab] c",
            "[ ] **a**: b",
            "- [",
            "text",
            "- a: [x]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("- [] **a**: b").unwrap().checkbox, None);
        assert_eq!(read("- [ ] no id").unwrap().name, None);
    }
}
