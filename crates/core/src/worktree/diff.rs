//! What differs between two snapshots.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::catalog;
use super::deadline::Deadline;
use super::error::WorktreeError;
use super::kind::Mode;
use super::repo::{GIT_TIMEOUT, Repo};
use super::snapshot::{ChangeStatus, Changed, Snapshot, TreeHash};
use super::text;

/// How a diff is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// What it shows.
    pub shape: DiffShape,
    /// Whether it is coloured.
    pub colour: DiffColour,
}

/// What a diff shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffShape {
    /// A patch.
    #[default]
    Patch,
    /// A line a file, with a bar.
    Stat,
    /// A line a file, with a letter.
    NameStatus,
}

/// Whether a diff is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffColour {
    /// For files and pipes.
    #[default]
    Never,
    /// For terminals, in the user's own colours.
    Always,
}

/// One row of a raw diff.
pub(super) struct RawChange {
    pub(super) path: PathBuf,
    pub(super) status: ChangeStatus,
    /// `None` where it is gone.
    pub(super) mode: Option<Mode>,
}

/// The tree of a snapshot that can be diffed or rewound to.
pub(super) fn tree_of(snapshot: &Snapshot) -> Result<&str, WorktreeError> {
    let reason = match &snapshot.tree {
        TreeHash::Git { tree, .. } => return Ok(tree),
        TreeHash::Content(_) => "it was measured without git, and content was not kept",
        TreeHash::Unknown { reason } => reason,
    };
    Err(WorktreeError::NoTree {
        reason: reason.to_owned(),
    })
}

impl Repo {
    fn refuse_dropped(&self, trees: &[&str]) -> Result<(), WorktreeError> {
        let gone = |tree: &&str| catalog::is_dropped(&self.objects, tree);
        match trees.iter().any(gone) {
            true => Err(WorktreeError::Dropped),
            false => Ok(()),
        }
    }

    /// Bytes and no text: files may hold anything, and a patch must be exact.
    pub(super) fn diff(
        &self,
        from: &Snapshot,
        to: &Snapshot,
        options: DiffOptions,
    ) -> Result<Vec<u8>, WorktreeError> {
        let (from, to) = (tree_of(from)?, tree_of(to)?);
        self.refuse_dropped(&[from, to])?;
        let shape = match options.shape {
            DiffShape::Patch => "-p",
            DiffShape::Stat => "--stat",
            DiffShape::NameStatus => "--name-status",
        };
        let colour = match options.colour {
            DiffColour::Never => "--no-color",
            DiffColour::Always => "--color=always",
        };
        let call = self
            .snapshot_call()
            .args(["diff-tree", "-r", "-M", "--no-ext-diff"]);
        call.args(["--no-textconv", shape, colour, from, to])
            .output(Deadline::after(GIT_TIMEOUT))
    }

    pub(super) fn changed_files(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<Changed>, WorktreeError> {
        let changes = self.raw_changes(tree_of(from)?, tree_of(to)?)?;
        Ok(changes
            .into_iter()
            .map(|RawChange { path, status, .. }| Changed { path, status })
            .collect())
    }

    /// The repositories inside the work tree, if files in them differ: their content is measured and not kept.
    pub(super) fn repositories_that_differ(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<PathBuf>, WorktreeError> {
        let is_other = match (&from.tree, &to.tree) {
            (TreeHash::Git { nested: was, .. }, TreeHash::Git { nested: is, .. }) => is != was,
            _ => false,
        };
        if !is_other {
            return Ok(Vec::new());
        }
        let mut inside = BTreeSet::new();
        for tree in [tree_of(from)?, tree_of(to)?] {
            let call = self.snapshot_call().args(["ls-tree", "-r", "-z", tree]);
            let out = call.output(Deadline::after(GIT_TIMEOUT))?;
            let rows = text::zero_ended(&out).filter(|row| row.starts_with(b"160000 "));
            let paths = rows.filter_map(|row| row.splitn(2, |byte| *byte == b'\t').nth(1));
            inside.extend(paths.map(text::path));
        }
        Ok(inside.into_iter().collect())
    }

    pub(super) fn raw_changes(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawChange>, WorktreeError> {
        self.refuse_dropped(&[from, to])?;
        let call = self
            .snapshot_call()
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        let out = call.args([from, to]).output(Deadline::after(GIT_TIMEOUT))?;
        let mut pieces = text::zero_ended(&out);
        let mut changes = Vec::new();
        while let (Some(facts), Some(path)) = (pieces.next(), pieces.next()) {
            changes.extend(parse(facts, path));
        }
        Ok(changes)
    }
}

/// `:100644 100755 0123… 4567… M`
fn parse(facts: &[u8], path: &[u8]) -> Option<RawChange> {
    let words: Vec<&[u8]> = facts.split(|b| *b == b' ').collect();
    let [_, mode, _, _, letter] = words[..] else {
        return None;
    };
    let status = match letter.first()? {
        b'A' => ChangeStatus::Added,
        b'D' => ChangeStatus::Removed,
        b'T' => ChangeStatus::TypeChanged,
        _ => ChangeStatus::Modified,
    };
    Some(RawChange {
        path: text::path(path),
        status,
        mode: Mode::parse(mode),
    })
}
