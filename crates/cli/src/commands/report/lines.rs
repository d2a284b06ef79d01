//! How many lines each iteration changed. The journal has the work tree before and after it; git
//! counts when a page is made.

use std::time::Duration;

use descartes_client::{LoopHandle, Loops};
use descartes_core::worktree::{Change, Lines, TreeKind};
use descartes_kernel::view::{HistoryRow, Story};

use super::iterations::SHOWN;
use crate::commands::loops::diff::{open, recorded};

/// A person waits for the page; what is not counted by then stays unknown.
const PATIENCE: Duration = Duration::from_secs(5);

/// One count a row of the story; `None` where git does not know.
pub fn measure(story: &Story, found: &LoopHandle, loops: &Loops) -> Vec<Option<Lines>> {
    let rows = story.rows();
    let unknown = vec![None; rows.len()];
    let Ok(tree) = open(found, loops) else {
        return unknown;
    };
    if !matches!(tree.kind(), TreeKind::Git { .. }) {
        return unknown;
    }
    // The newest first: time may be short.
    let next = std::iter::once(story.current()).chain(rows.iter().rev().map(Some));
    let both = rows.iter().rev().zip(next).take(SHOWN);
    let changes: Vec<Change> = both.map(|(row, next)| change(row, next)).collect();
    let mut counted = tree.lines(&changes, PATIENCE);
    counted.resize(rows.len(), None);
    counted.reverse();
    counted
}

/// What an iteration changed. One that was cut off was not measured at its end, but before the
/// next. The trees of a task are in a folder of its own; its commit is everybody's.
fn change(row: &HistoryRow, next: Option<&HistoryRow>) -> Change {
    match (&row.task, &row.commit) {
        (Some(_), commit) => Change::Commit(commit.clone().unwrap_or_default()),
        (None, _) => {
            let (before, after) = &row.trees;
            let next = next.and_then(|next| next.trees.0.as_ref());
            let after = after.as_ref().or(next);
            Change::Between(
                recorded(before.as_deref()),
                recorded(after.map(String::as_str)),
            )
        }
    }
}
