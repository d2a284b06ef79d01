//! `tasks.md` of an OpenSpec change: numbered boxes, one after the other.

use super::boxes::{Document, dedent};
use super::file_order::chain;
use super::format::ListFormat;
use super::markdown::{UniqueIds, note_marks, task_of};
use super::model::TaskList;
use super::spec_kit;

pub(super) fn read(text: &str) -> TaskList {
    // The folder decides the order, and what stands there the ids.
    let mut doc = Document::read(text, |text| name(text).or_else(|| spec_kit::name(text)));
    let mut list = TaskList::new(ListFormat::OpenSpec);
    list.findings.clone_from(&doc.findings);
    doc.leave_out_struck(&mut list);
    note_marks(&doc, &mut list);
    let mut ids = UniqueIds::default();
    let sections = doc.sections();
    for (at, item) in doc.items.iter().enumerate() {
        let line = item.checkbox.line;
        if item.title.is_empty() {
            list.leave_out(line, "", "the box has no text");
            continue;
        }
        let id = match &item.id {
            Some(wanted) => ids.take(wanted, line, &mut list),
            None => ids.take(&(at + 1).to_string(), line, &mut list),
        };
        let group = doc.heading_at(item, 2).map(|at| sections[at].clone());
        list.tasks.push(task_of(item, id, group));
    }
    if let Some(first) = doc.items.first() {
        list.introduction = doc.text_before(first.checkbox.line);
    }
    chain(&mut list);
    list
}

/// `1.2 text`, `1.2. text` or `**1.2** text`; also `1. text`.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let bare = text.trim_start_matches(['*', '_', '`']);
    let length = number_length(bare)?;
    let rest = bare[length..].trim_start_matches(['*', '_', '`', ':', '.', ')']);
    let is_name = rest.is_empty() || rest.starts_with([' ', '\t', '(']);
    let is_name =
        is_name && (bare[..length].contains('.') || bare[length..].starts_with(['.', ')']));
    is_name.then(|| (bare[..length].to_owned(), rest.trim_start()))
}

/// The length of a number such as `1.2.3` or `1.2a` at the start of a text.
pub(super) fn number_length(text: &str) -> Option<usize> {
    let mut end = 0;
    for part in text.split('.') {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        end += digits + usize::from(end > 0);
        if digits < part.len() {
            break;
        }
    }
    // A letter tells what was inserted later; without a dot before it, it is a word such as `2d`.
    let mut behind = text[end..].chars();
    let is_letter = behind.next().is_some_and(|c| c.is_ascii_lowercase());
    let ends = !behind.next().is_some_and(char::is_alphanumeric);
    end += usize::from(is_letter && ends && text[..end].contains('.'));
    (end > 0).then_some(end)
}

/// What `context:` of OpenSpec's config says about the project: a value, or the block under it.
pub fn project_context(config: &str) -> Option<String> {
    let mut lines = config.lines();
    let value = lines.find_map(|line| line.strip_prefix("context:"))?.trim();
    let is_block = value.is_empty() || value.starts_with(['|', '>']);
    let text = match is_block {
        true => {
            let is_inside = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
            dedent(&lines.take_while(is_inside).collect::<Vec<_>>())
        }
        false => value.trim_matches(['"', '\'']).to_owned(),
    };
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_spellings_of_their_authors() {
        for (text, id, rest) in [
            ("1.2 Add it", "1.2", "Add it"),
            ("1.2. Add it", "1.2", "Add it"),
            ("**1.2** Add it", "1.2", "Add it"),
            ("10.11.12 x", "10.11.12", "x"),
            ("3. x", "3", "x"),
            ("1.2a x", "1.2a", "x"),
            ("**1.2b.** x", "1.2b", "x"),
        ] {
            assert_eq!(name(text), Some((id.to_owned(), rest)), "{text}");
        }
        for text in ["Add 1.2", "3 files", "1.2ms y", "2d x", "2026 was"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
