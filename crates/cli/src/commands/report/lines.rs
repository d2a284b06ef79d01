//! How many lines each iteration changed. Journals have the work tree before and after it; git
//! counts when a page is made.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use descartes_client::{From, LoopHandle, Loops};
use descartes_core::worktree::{Change, Lines, TreeKind};
use descartes_views::view::{HistoryRow, Story};

use super::iterations::SHOWN;
use crate::commands::loops::diff::{open_to_compare, recorded};

/// A person waits for the page; what is not counted by then stays unknown.
const LINE_COUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// One count a row of the story; `None` where git does not know.
pub fn measure(story: &Story, found: &LoopHandle, loops: &Loops) -> Vec<Option<Lines>> {
    let rows: Vec<&HistoryRow> = story.rows().iter().collect();
    let count = Count {
        loops,
        end: Instant::now() + LINE_COUNT_TIMEOUT,
    };
    match rows.iter().any(|row| row.task.is_some()) {
        true => count.of_tasks(&rows, found),
        false => count.of_loop(&rows, story.current(), found),
    }
}

struct Count<'a> {
    loops: &'a Loops,
    end: Instant,
}

impl Count<'_> {
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Rows of one loop, the newest first: time may be short.
    fn of_loop(
        &self,
        rows: &[&HistoryRow],
        current: Option<&HistoryRow>,
        found: &LoopHandle,
    ) -> Vec<Option<Lines>> {
        let unknown = vec![None; rows.len()];
        let Ok(tree) = open_to_compare(found, self.loops) else {
            return unknown;
        };
        if !matches!(tree.kind(), TreeKind::Git { .. }) {
            return unknown;
        }
        let next = std::iter::once(current).chain(rows.iter().rev().map(|row| Some(*row)));
        let both = rows.iter().rev().zip(next).take(SHOWN);
        let changes: Vec<Change> = both.map(|(row, next)| change(row, next)).collect();
        let mut counted = tree.lines(&changes, self.left());
        counted.resize(rows.len(), None);
        counted.reverse();
        counted
    }

    /// Rows of a task loop, whose snapshots are in the folders of its tasks' loops.
    fn of_tasks(&self, rows: &[&HistoryRow], found: &LoopHandle) -> Vec<Option<Lines>> {
        let mut known: HashMap<(&str, u32), Lines> = HashMap::new();
        let mut asked: Vec<&str> = Vec::new();
        let ids = rows.iter().rev().take(SHOWN).filter_map(|row| id_of(row));
        for id in ids {
            if asked.contains(&id) || self.left().is_zero() {
                continue;
            }
            asked.push(id);
            let counted = self.of_task(id, found).unwrap_or_default();
            known.extend(counted.into_iter().map(|(at, lines)| ((id, at), lines)));
        }
        let lines = |row: &&HistoryRow| known.get(&(id_of(row)?, row.iteration)).copied();
        rows.iter().map(lines).collect()
    }

    fn of_task(&self, id: &str, found: &LoopHandle) -> Option<Vec<(u32, Lines)>> {
        let own = found.beside(id).ok()?;
        let mut rows = Vec::new();
        let each = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        let current = own.history(From::Last(SHOWN as u64), each).ok()?;
        let rows: Vec<&HistoryRow> = rows.iter().collect();
        let counted = self.of_loop(&rows, current.as_ref(), &own);
        let known = rows.iter().zip(counted);
        Some(
            known
                .filter_map(|(row, lines)| Some((row.iteration, lines?)))
                .collect(),
        )
    }
}

/// The loop of the task that a row is of.
fn id_of(row: &HistoryRow) -> Option<&str> {
    row.task.as_ref().map(|(_, id)| id.as_str())
}

/// What an iteration changed. One that was cut off was not measured at its end, but before the
/// next; one whose trees are not known may have left a commit.
fn change(row: &HistoryRow, next: Option<&HistoryRow>) -> Change {
    let (before, after) = &row.trees;
    let next = next.and_then(|next| next.trees.0.as_ref());
    match (before, after.as_ref().or(next), &row.commit) {
        (Some(before), Some(after), _) => {
            Change::Between(recorded(Some(before)), recorded(Some(after)))
        }
        (_, _, Some(commit)) => Change::Commit(commit.clone()),
        (_, _, None) => Change::Unknown,
    }
}
