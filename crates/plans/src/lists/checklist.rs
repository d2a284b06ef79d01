//! Any other Markdown file with boxes: from top to bottom, nested boxes are steps.

use super::boxes::{Document, Heading};
use super::format::ListFormat;
use super::markdown::{note_marks, task_of};
use super::model::TaskList;
use super::order::chain;

pub(super) fn read(text: &str) -> TaskList {
    let mut doc = Document::read(text, |_| None);
    let mut list = TaskList::new(ListFormat::Checklist);
    list.findings.clone_from(&doc.findings);
    doc.leave_out_struck(&mut list);
    note_marks(&doc, &mut list);
    let sections = doc.sections();
    for item in &doc.items {
        let (line, shown) = (item.checkbox.line, item.checkbox.text);
        let above = item.under.iter().map(|at| doc.headings[*at]);
        if let Some(heading) = above.rev().find(holds_no_tasks) {
            let why = format!("it stands under `{}`", heading.text);
            list.leave_out(line, shown, why);
            continue;
        }
        if item.title.is_empty() {
            list.leave_out(line, "", "the box has no text");
            continue;
        }
        let id = (list.tasks.len() + 1).to_string();
        let deepest = item.under.last().map(|at| sections[*at].clone());
        list.tasks.push(task_of(item, id, deepest));
    }
    if let Some(first) = doc.items.first() {
        list.introduction = doc.text_before(first.checkbox.line);
    }
    chain(&mut list);
    list
}

/// Headings over boxes that are no work.
const NO_TASKS: [&str; 17] = [
    "notes",
    "completed",
    "done",
    "success criteria",
    "acceptance criteria",
    "definition of done",
    "validation",
    "self-review",
    "self review",
    "post-completion",
    "post completion",
    "optional",
    "future",
    "nice to have",
    "nice-to-have",
    "out of scope",
    "deferred",
];

fn holds_no_tasks(heading: &Heading<'_>) -> bool {
    let plain = heading
        .text
        .trim_start_matches(|c: char| !c.is_alphabetic());
    let plain = plain.to_lowercase();
    NO_TASKS.iter().any(|word| {
        let rest = plain.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}
