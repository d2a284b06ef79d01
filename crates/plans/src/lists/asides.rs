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

const NO_TASKS: [&str; 16] = [
    "notes",
    "completed",
    "done",
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
    "anti-patterns",
    "验收标准",
];

/// What a part of the work has to come up to: `Phase 1: Success Criteria`.
const CRITERIA: [&str; 6] = [
    "success criteria",
    "acceptance criteria",
    "definition of done",
    "verification checklist",
    "acceptance checklist",
    "ac checklist",
];

fn holds_no_tasks(heading: &Heading<'_>) -> bool {
    let plain = heading
        .text
        .trim_start_matches(|c: char| !c.is_alphabetic());
    let plain = plain.to_lowercase();
    let begins = |word: &str| {
        let rest = plain.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    let whole = plain.trim_end_matches(|c: char| !c.is_alphanumeric());
    let ends = |word: &str| {
        let label = whole.strip_suffix(word).map(str::trim_end);
        // `Write the success criteria` is work.
        label.is_some_and(|label| label.ends_with(|c: char| !c.is_alphabetic()))
    };
    NO_TASKS.iter().any(|word| begins(word))
        || CRITERIA.iter().any(|word| begins(word) || ends(word))
}
