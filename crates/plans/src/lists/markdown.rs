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
    // Nearly every task says nothing of this. The sign for kelvin is the only one that is no small letter
    // of these words and becomes one.
    if !may_ask(title.as_bytes()) && !title.contains('\u{212a}') {
        return None;
    }
    let title = title.to_lowercase();
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

/// Whether a title has one of the words without which nobody is asked.
fn may_ask(title: &[u8]) -> bool {
    let begins = |at: usize, word: &[u8]| {
        let found = title.get(at..at + word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    (0..title.len()).any(|at| match title[at].to_ascii_lowercase() {
        b'm' => begins(at, b"manual"),
        b'c' => begins(at, b"checkpoint"),
        b'h' => begins(at, b"human"),
        _ => false,
    })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_title_that_asks_somebody_is_passed_over(
            title in "(manual|hu|man|check|point|MANUAL|Human|Check|ch[e]c\u{212a}|po\u{130}nt|[a-zé ]){0,6}",
        ) {
            let plain = title.to_lowercase();
            let says = ["manual", "checkpoint", "human"].into_iter().any(|word| plain.contains(word));
            let has_kelvin = title.contains('\u{212a}');
            let found = may_ask(title.as_bytes());
            prop_assert!(found || has_kelvin || !says);
            prop_assert!(!found || says);
        }
    }
}
