//! How large changes are, in lines. Many are measured by few processes, within a time.

use std::collections::HashMap;
use std::time::Duration;

use super::deadline::Deadline;
use super::repo::Repo;
use super::snapshot::Snapshot;

/// So many are asked of one git: if one of them cannot be read, those behind it are not told.
const BATCH: usize = 64;

/// A change that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// From one snapshot to another.
    Between(Snapshot, Snapshot),
    /// What a commit changed.
    Commit(String),
    /// Nothing that git could be asked about.
    Unknown,
}

/// The size of a change. Files that hold no text count for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
}

impl Repo {
    /// One answer a change, in order; `None` where git does not know it, or time was over.
    pub(super) fn lines(&self, changes: &[Change], budget: Duration) -> Vec<Option<Lines>> {
        let deadline = Deadline::after(budget);
        let asked: Vec<Option<String>> = changes.iter().map(question).collect();
        let mut known = HashMap::new();
        let questions: Vec<&str> = asked.iter().flatten().map(String::as_str).collect();
        for batch in questions.chunks(BATCH) {
            if deadline.left().is_zero() {
                break;
            }
            let call = self
                .snapshot_call()
                .args(["diff-tree", "--stdin", "--root", "-r", "-M", "--numstat"])
                .args(["--no-ext-diff", "--no-textconv"])
                .stdin(format!("{}\n", batch.join("\n")).into_bytes());
            // What was told before git gave up counts, but for what it gave up at.
            if let Ok(answer) = call.run(deadline.clone()) {
                let last = read(&answer.stdout, &mut known);
                if let Some(last) = last.filter(|_| answer.code != Some(0)) {
                    known.remove(&last);
                }
            }
        }
        let answer = |question: &Option<String>| known.get(question.as_ref()?).copied();
        asked.iter().map(answer).collect()
    }
}

/// A change as `diff-tree --stdin` reads it, and says it again before what it found.
fn question(change: &Change) -> Option<String> {
    match change {
        Change::Between(from, to) => {
            let (from, to) = (from.tree.git_tree()?, to.tree.git_tree()?);
            Some(format!("{from} {to}"))
        }
        // Git says a line that is no name of an object again as if it were one.
        Change::Commit(hash) => {
            let hex = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            (hex && matches!(hash.len(), 40 | 64)).then(|| hash.clone())
        }
        Change::Unknown => None,
    }
}

/// Lines `12\t3\tpath`, each block of them under its question; `-\t-\tpath` is no text. Gives the
/// last question.
fn read(stdout: &[u8], known: &mut HashMap<String, Lines>) -> Option<String> {
    let mut under = None;
    for line in String::from_utf8_lossy(stdout).lines() {
        let mut words = line.splitn(3, '\t');
        match (words.next(), words.next(), &under) {
            (Some(question), None, _) => {
                known.insert(question.to_owned(), Lines::default());
                under = Some(question.to_owned());
            }
            (Some(added), Some(removed), Some(question)) => {
                if let Some(sum) = known.get_mut(question) {
                    sum.added += added.parse().unwrap_or(0);
                    sum.removed += removed.parse().unwrap_or(0);
                }
            }
            _ => {}
        }
    }
    under
}
