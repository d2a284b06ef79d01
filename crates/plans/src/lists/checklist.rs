//! Any other Markdown file with boxes: from top to bottom, nested boxes are steps.

use super::asides::Asides;
use super::boxes::Document;
use super::file_order::chain;
use super::format::ListFormat;
use super::markdown::{note_marks, task_of};
use super::model::TaskList;

pub(super) fn read(text: &str) -> TaskList {
    let mut doc = Document::read(text, |_| None);
    let mut list = TaskList::new(ListFormat::Checklist);
    list.findings.clone_from(&doc.findings);
    doc.leave_out_struck(&mut list);
    note_marks(&doc, &mut list);
    let sections = doc.sections();
    let asides = Asides::of(&doc);
    for item in &doc.items {
        let (line, shown) = (item.checkbox.line, item.checkbox.text);
        if let Some(at) = asides.heading(item) {
            let why = format!("it stands under `{}`", doc.headings[at].text);
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
