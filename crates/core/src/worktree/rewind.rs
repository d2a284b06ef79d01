//! Putting the work tree back to what it was, with a way back.
//!
//! Only files that differ are touched. HEAD, the index and ignored files stay as they are; where
//! something ignored is in the way, the file is left out and named.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::diff::{RawChange, tree_of};
use super::error::WorktreeError;
use super::file::open;
use super::ground::Ground;
use super::kind::Mode;
use super::repo::{PATIENCE, Repo};
use super::seed::PrivateIndex;
use super::snapshot::{ChangeStatus, Snapshot};
use super::text;

/// What was done to put the work tree back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// The work tree as it was before, complete: rewinding to it is the way back.
    pub safety_copy: Snapshot,
    /// Files written.
    pub restored: Vec<PathBuf>,
    /// Files removed, because they were not there at that time.
    pub removed: Vec<PathBuf>,
    /// Files left as they are, because something that no snapshot holds is in the way.
    pub skipped: Vec<PathBuf>,
}

/// Puts the files of `to` in place of those of `safety`, which is the work tree as it is.
pub(super) fn rewind(
    repo: &Repo,
    ground: &Ground,
    safety: Snapshot,
    to: &Snapshot,
) -> Result<Rewound, WorktreeError> {
    let changes = repo.raw_changes(tree_of(&safety)?, tree_of(to)?)?;
    let (gone, wanted): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .filter(|change| !ground.is_apart(&change.path))
        .partition(|change| change.status == ChangeStatus::Removed);
    let mut done = Rewound {
        safety_copy: safety,
        restored: vec![],
        removed: vec![],
        skipped: vec![],
    };
    for RawChange { path, .. } in gone {
        if is_saved(&repo.root.join(&path)) {
            remove(&repo.root, &path)?;
            done.removed.push(path);
        } else {
            done.skipped.push(path);
        }
    }
    for change in wanted {
        let free = way_is_free(&repo.root, &change);
        if free {
            done.restored.push(change.path)
        } else {
            done.skipped.push(change.path)
        }
    }
    check_out(repo, tree_of(to)?, &done.restored)?;
    Ok(done)
}

/// Whether a snapshot that was just taken can hold what is there: a link, or a file that can be
/// read. Not a folder, and not another repository.
fn is_saved(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => meta.is_symlink() || open(path).is_ok(),
        Err(_) => true,
    }
}

/// Removes a file, and the folders that it leaves empty.
fn remove(root: &Path, path: &Path) -> Result<(), WorktreeError> {
    let full = root.join(path);
    match fs::remove_file(&full) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
        Err(error) => return Err(WorktreeError::io(full)(error)),
    }
    for folder in path
        .ancestors()
        .skip(1)
        .filter(|path| !path.as_os_str().is_empty())
    {
        if fs::remove_dir(root.join(folder)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Whether a file can be written without destroying what no snapshot holds.
fn way_is_free(root: &Path, change: &RawChange) -> bool {
    // The commit of another repository is its own affair.
    if change.mode.is_none_or(|mode| mode == Mode::Repo) {
        return false;
    }
    let full = root.join(&change.path);
    // Something there, and not in the safety copy: it is ignored.
    let ignored = change.status == ChangeStatus::Added && full.symlink_metadata().is_ok();
    let blocks = |path: &Path| {
        root.join(path)
            .symlink_metadata()
            .is_ok_and(|meta| !meta.is_dir())
    };
    let mut folders = change
        .path
        .ancestors()
        .skip(1)
        .filter(|path| !path.as_os_str().is_empty());
    !ignored && is_saved(&full) && !folders.any(blocks)
}

/// Writes files of a tree, through the user's filters.
fn check_out(repo: &Repo, tree: &str, paths: &[PathBuf]) -> Result<(), WorktreeError> {
    if paths.is_empty() {
        return Ok(());
    }
    let index = PrivateIndex::empty(repo)?;
    index
        .call()
        .args(["read-tree", tree])
        .output(Deadline::after(PATIENCE))?;
    let list = text::zero_joined(paths.iter().map(PathBuf::as_path));
    let write = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
    index
        .call()
        .args(write)
        .stdin(list)
        .output(Deadline::after(PATIENCE))
        .map(drop)
}
