//! What the formats in Markdown have in common.

use super::boxes::{Document, Item};
use super::model::{ListSection, ListTask, TaskList};
use crate::graph::hash::{NameMap, NameSet};

/// The task of a box.
pub(super) fn task_of(item: &Item<'_>, id: String, section: Option<ListSection>) -> ListTask {
    ListTask {
        has_own_id: item.id.is_some(),
        title: item.title.to_owned(),
        body: item.body.clone(),
        status: item.checkbox.status(),
        optional: item.checkbox.starred,
        human: human_reason(item.title, &item.body),
        section,
        line: item.checkbox.line,
        marks: item.marks(),
        id,
        ..ListTask::default()
    }
}

/// Ids that are given out once: the second of two equal ones gets a number.
#[derive(Default)]
pub(super) struct UniqueIds {
    given: NameSet<String>,
    /// The last number of each that was wanted more than once.
    numbers: NameMap<String, usize>,
}

impl UniqueIds {
    pub(super) fn take(&mut self, wanted: &str, line: u32, list: &mut TaskList) -> String {
        if self.given.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
        let id = loop {
            *number += 1;
            let id = format!("{wanted}-{number}");
            if self.given.insert(id.clone()) {
                break id;
            }
        };
        list.warn(
            line,
            format!("there is a task `{wanted}` already: this one is called `{id}`"),
        );
        id
    }
}

/// Why a text asks for a person.
pub(super) fn human_reason(title: &str, body: &str) -> Option<String> {
    let title = title.to_lowercase();
    // Nearly every task says nothing of this.
    let may_ask = |word: &str| memchr::memmem::find(title.as_bytes(), word.as_bytes()).is_some();
    if !["manual", "checkpoint", "human"].into_iter().any(may_ask) {
        return None;
    }
    let asks = title.contains("checkpoint")
        && (title.contains("ask the user") || body.to_lowercase().contains("ask the user"));
    let words = [
        "user manual verification",
        "(manual)",
        "*manual*",
        "checkpoint:human-verify",
        "ready-for-human",
    ];
    let word = words.iter().find(|word| title.contains(**word));
    match (asks, word) {
        (true, _) => Some("it asks the user".to_owned()),
        (_, Some(word)) => Some(format!("it says `{}`", word.trim_matches(['*', '(', ')']))),
        _ => None,
    }
}

/// Marks that only other tools write.
pub(super) fn note_marks(doc: &Document<'_>, list: &mut TaskList) {
    let items = doc.items.iter();
    let boxes = items.flat_map(|item| std::iter::once(&item.checkbox).chain(&item.steps));
    for found in boxes.filter(|found| !matches!(found.mark, ' ' | 'x' | 'X')) {
        let message = format!("the box says [{}]: it is read as not done", found.mark);
        list.note(found.line, message);
    }
}
