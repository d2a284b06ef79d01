//! Any other Markdown file with boxes: from top to bottom, nested boxes are steps.

use std::collections::HashSet;

use super::asides::Asides;
use super::bare_boxes::bare_boxes;
use super::boxes::Document;
use super::file_order::{FileOrder, chain};
use super::format::ListFormat;
use super::id_ranges::NamedIds;
use super::markdown::{note_marks, task_of};
use super::model::TaskList;
use super::named_edges::named_edges;
use super::order::ListOrder;
use super::plain_ids::{id_length, id_of};

pub(super) fn read(text: &str) -> TaskList {
    let mut doc = Document::read_where(text, |_| None, bare_boxes);
    let mut list = TaskList::new(ListFormat::Checklist);
    list.findings.clone_from(&doc.findings);
    let struck = doc.items.iter().filter(|item| item.is_struck());
    let struck = struck.filter_map(|item| id_of(item.title.trim_start_matches('~')));
    let gone: Vec<NamedIds> = struck.map(|id| NamedIds::One(id.to_owned())).collect();
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
    set_order(&mut list, gone);
    list
}

/// One after the other; where tasks have ids such as `T1.1` and name others by these, behind those.
fn set_order(list: &mut TaskList, gone: Vec<NamedIds>) {
    let ids = list.tasks.iter();
    let ids = ids.map(|task| id_of(&task.title).map(str::to_owned));
    let ids: Vec<Option<String>> = ids.collect();
    let kinds: HashSet<&str> = ids.iter().flatten().map(|id| letters(id)).collect();
    let named: Vec<Vec<NamedIds>> = match kinds.is_empty() {
        true => Vec::new(),
        false => {
            // `requires ES2022` names no task of a list whose ids begin with T.
            let is_id = |ids: &NamedIds| match ids {
                NamedIds::One(id) => kinds.contains(letters(id)),
                NamedIds::Range(range) => kinds.contains(range.letters()),
            };
            let named = list.tasks.iter().map(|task| {
                let mut named = named_edges(&task.title, id_length);
                named.extend(named_edges(&task.body, id_length));
                named.retain(is_id);
                named
            });
            named.collect()
        }
    };
    if named.iter().all(Vec::is_empty) {
        return chain(list);
    }
    let mut order = ListOrder::without(list, gone);
    for (at, id) in ids.into_iter().enumerate() {
        let id = id.into_iter().map(NamedIds::One);
        id.for_each(|id| order.add_names(id, at));
    }
    order.name(list, named);
    let placed = order.sequence(list);
    let mut file = FileOrder::default();
    for placed in placed {
        let before = match list.tasks[placed.at].optional {
            true => file.entrance(false),
            false => file.next(placed.at, false),
        };
        order.set(placed.at, before);
    }
    order.finish(list);
}

/// What an id begins with.
fn letters(id: &str) -> &str {
    let digits = id.find(|c: char| c.is_ascii_digit());
    &id[..digits.unwrap_or(id.len())]
}
