//! Whether the work that an iteration is judged for is still there, when the host that began to judge it died:
//! meanwhile somebody may have cleaned the work tree, and a gate that is green all the same proves nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::event::TreeFacts;
use crate::state::LoopState;

/// What is known of the work tree in which an iteration is judged that an earlier host left.
#[derive(Clone, Copy, Debug)]
pub enum LeftWork<'a> {
    /// It was not looked at.
    Unknown,
    /// The work tree as it is now, with what changed in it, where that can be told file by file.
    Now(&'a TreeFacts, Option<&'a LeftChanges>),
    /// Another work tree: the agent of that iteration never worked in it.
    Elsewhere,
}

/// Trees between which an edge looks for [`LeftChanges`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftTrees<'a> {
    /// Before the loop, and before its last run.
    pub before: Vec<&'a str>,
    /// As the agent left it.
    pub agent: &'a str,
    /// The last that the dead host measured: gates may have written files.
    pub last: &'a str,
}

/// Files that are not the same in two trees of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftChanges {
    /// Those that the loop changed, until its agent ended.
    pub of_loop: BTreeSet<PathBuf>,
    /// Those that are not as the dead host last saw them.
    pub meanwhile: BTreeSet<PathBuf>,
}

impl LeftChanges {
    /// Files of the loop that are gone, or not as its agent left them. Others do not matter: gates write files,
    /// and people edit.
    fn lost(&self) -> impl Iterator<Item = &Path> {
        let both = self.of_loop.intersection(&self.meanwhile);
        both.map(PathBuf::as_path)
    }
}

/// The trees of the iteration that is being judged, as far as they are on record.
pub fn left_trees(state: &LoopState) -> Option<LeftTrees<'_>> {
    let (run, facts, gates) = state.judged()?;
    let agent = facts.tree_after.as_deref()?;
    let mut newest_first = gates.iter().rev();
    let measured = newest_first.find_map(|gate| gate.tree_after.as_deref());
    let first = state.progress.first_tree.as_deref();
    Some(LeftTrees {
        before: first
            .into_iter()
            .chain(run.before.tree.as_deref())
            .collect(),
        agent,
        last: measured.unwrap_or(agent),
    })
}

impl LeftWork<'_> {
    /// Whether what is to be judged is not there.
    pub(super) fn is_missing(self, state: &LoopState) -> bool {
        let (now, changes) = match self {
            Self::Unknown => return false,
            Self::Elsewhere => return true,
            Self::Now(now, changes) => (now, changes),
        };
        let (Some((run, ..)), Some(now)) = (state.judged(), now.tree.as_deref()) else {
            return false;
        };
        let is_before = run.before.tree.as_deref() == Some(now);
        match (left_trees(state), changes) {
            (Some(left), _) if left.last == now => false,
            (Some(_), Some(changes)) => changes.lost().next().is_some(),
            (Some(_), None) => is_before || state.progress.first_tree.as_deref() == Some(now),
            // A journal of 0.1. Whoever attempts a task has to change something; in other loops an agent may
            // say that everything is done, and be right.
            (None, _) => is_before && state.config.proof.is_some(),
        }
    }

    /// What a person is told, where an agent runs again since its work is not there any more.
    pub fn notice(self, state: &LoopState) -> Option<String> {
        let Self::Now(_, changes) = self else {
            return None;
        };
        if !self.is_missing(state) {
            return None;
        }
        let lost: Vec<&Path> = changes.iter().flat_map(|changes| changes.lost()).collect();
        let mut names: Vec<String> = lost
            .iter()
            .take(3)
            .map(|path| path.display().to_string())
            .collect();
        if lost.len() > names.len() {
            names.push(format!("{} more", lost.len() - names.len()));
        }
        let files = match names.is_empty() {
            true => String::new(),
            false => format!(" ({})", names.join(", ")),
        };
        Some(format!(
            "the work tree changed while descartes was not running{files}: the agent runs again"
        ))
    }
}
