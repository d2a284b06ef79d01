//! Headings over boxes that are no work.

use super::boxes::{Document, Heading, Item};

/// Which headings of a document hold boxes that are no work.
pub(super) struct Asides {
    /// By position in [`Document::headings`].
    holds: Vec<bool>,
}

impl Asides {
    pub(super) fn of(doc: &Document<'_>) -> Self {
        let holds = doc.headings.iter().map(holds_no_tasks).collect();
        Self { holds }
    }

    /// The heading above a box that says that it is no work, by position.
    pub(super) fn heading(&self, item: &Item<'_>) -> Option<usize> {
        item.under.iter().rev().copied().find(|at| self.holds[*at])
    }

    /// Whether a box may be work.
    pub(super) fn is_work(&self, item: &Item<'_>) -> bool {
        self.heading(item).is_none()
    }
}

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
