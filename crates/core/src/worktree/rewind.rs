//! Putting the work tree back to what it was, with a way back.
//!
//! Only files that differ are touched. HEAD, the index and ignored files stay as they are: those
//! that are ignored now, and those that were ignored at that time, which no snapshot of then holds.
//! Where something is in the way, the file is left out and named.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::catalog;
use super::deadline::Deadline;
use super::diff::{RawChange, tree_of};
use super::error::WorktreeError;
use super::file::open;
use super::kind::Mode;
use super::objects;
use super::repo::{GIT_TIMEOUT, Repo};
use super::scan_root::ScanRoot;
use super::seed::{self, PrivateIndex};
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
    /// Files left as they are, because they were ignored at that time: no snapshot tells whether
    /// they were there.
    pub kept: Vec<PathBuf>,
    /// Repositories inside the work tree that are not as they were: what is in them is not put
    /// back.
    pub nested: Vec<PathBuf>,
    /// Files left as they are, because they lie outside of the working directory.
    pub outside: Vec<PathBuf>,
}

/// Puts the files of `to` that lie below a folder in place of those of `safety`, which is the work
/// tree as it is.
pub(super) fn rewind(
    repo: &Repo,
    scan_root: &ScanRoot,
    safety: Snapshot,
    to: &Snapshot,
    below: &Path,
) -> Result<Rewound, WorktreeError> {
    let changes = repo.raw_changes(tree_of(&safety)?, tree_of(to)?)?;
    let (inside, outside): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .filter(|change| !scan_root.is_apart(&change.path))
        .partition(|change| change.path.starts_with(below));
    let (gone, wanted): (Vec<_>, Vec<_>) = inside
        .into_iter()
        .partition(|change| change.status == ChangeStatus::Removed);
    let mut done = Rewound {
        safety_copy: safety,
        restored: vec![],
        removed: vec![],
        skipped: vec![],
        kept: vec![],
        nested: vec![],
        outside: outside.into_iter().map(|change| change.path).collect(),
    };
    let then = ignored_then(repo, tree_of(to)?, &gone)?;
    for RawChange { path, mode, .. } in gone {
        if mode == Some(Mode::Repo) || root_has_repo(&repo.root, &path) {
            done.nested.push(path);
        } else if then.contains(&path) {
            done.kept.push(path);
        } else if is_saved(&repo.root.join(&path)) {
            remove(&repo.root, &path)?;
            done.removed.push(path);
        } else {
            done.skipped.push(path);
        }
    }
    for change in wanted {
        if change.mode == Some(Mode::Repo) {
            done.nested.push(change.path);
            continue;
        }
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

/// Puts these files alone back to what they were in `to`; gives those that were put back.
pub(super) fn put_back(
    repo: &Repo,
    now: &Snapshot,
    to: &Snapshot,
    paths: &BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, WorktreeError> {
    let changes = repo.raw_changes(tree_of(now)?, tree_of(to)?)?;
    let (mut wanted, mut done) = (Vec::new(), BTreeSet::new());
    for change in changes {
        if !paths.contains(&change.path) {
            continue;
        }
        let gone = change.status == ChangeStatus::Removed;
        if gone && is_saved(&repo.root.join(&change.path)) {
            remove(&repo.root, &change.path)?;
            done.insert(change.path);
        } else if !gone && change.mode != Some(Mode::Repo) && way_is_free(&repo.root, &change) {
            wanted.push(change.path);
        }
    }
    check_out(repo, tree_of(to)?, &wanted)?;
    done.extend(wanted);
    Ok(done)
}

fn root_has_repo(root: &Path, path: &Path) -> bool {
    root.join(path).join(".git").symlink_metadata().is_ok()
}

/// Which of these were ignored at the time of a tree: by the ignore files in it, and by those
/// outside the work tree as they were noted with it. Whether they were there, nobody knows.
fn ignored_then(
    repo: &Repo,
    tree: &str,
    gone: &[RawChange],
) -> Result<HashSet<PathBuf>, WorktreeError> {
    if gone.is_empty() {
        return Ok(HashSet::new());
    }
    let index = PrivateIndex::empty(repo)?;
    let deadline = Deadline::after(GIT_TIMEOUT);
    index
        .call()
        .args(["read-tree", tree])
        .output(deadline.clone())?;
    let rules = index
        .call()
        .args(["ls-files", "-z", "--", ".gitignore", ":(glob)**/.gitignore"])
        .output(deadline.clone())?;
    let fail = |error| WorktreeError::io(&repo.objects)(error);
    // A work tree with nothing in it but the rules of then.
    let place = tempfile::Builder::new()
        .prefix("rules-")
        .tempdir_in(&repo.objects)
        .map_err(fail)?;
    let prefix = format!("--prefix={}/", place.path().display());
    index
        .call()
        .args(["checkout-index", "--quiet", &prefix, "-z", "--stdin"])
        .stdin(rules)
        .output(deadline.clone())?;
    let named: Vec<PathBuf> = gone
        .iter()
        .map(|change| Path::new(".").join(&change.path))
        .collect();
    let mut call = repo.read_at(place.path());
    if let Some(rules) = catalog::rules_of(&repo.objects, tree) {
        call = call.configured(&[("core.excludesFile".into(), rules.into_os_string())]);
    }
    let asked = call
        .args(["check-ignore", "--no-index", "-z", "--stdin"])
        .stdin(text::zero_joined(named.iter().map(PathBuf::as_path)))
        .run(deadline)?;
    if !matches!(asked.code, Some(0 | 1)) {
        return Err(asked.error());
    }
    let plain = |path: PathBuf| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
    let paths = text::zero_ended(&asked.stdout);
    Ok(paths.map(|path| plain(text::path(path))).collect())
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
    if change.mode.is_none() {
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

/// Writes files of a tree as they were.
fn check_out(repo: &Repo, tree: &str, paths: &[PathBuf]) -> Result<(), WorktreeError> {
    if paths.is_empty() {
        return Ok(());
    }
    let index = PrivateIndex::empty(repo)?;
    let deadline = Deadline::after(GIT_TIMEOUT);
    index
        .call()
        .args(["read-tree", tree])
        .output(deadline.clone())?;
    let through = through_filters(&index, tree, deadline.clone())?;
    let (filtered, plain): (Vec<&Path>, Vec<&Path>) = paths
        .iter()
        .map(PathBuf::as_path)
        .partition(|path| through.contains(*path));
    for (paths, call) in [(plain, index.call()), (filtered, index.filtered_call())] {
        if !paths.is_empty() {
            call.args(["checkout-index", "--force", "--quiet", "-z", "--stdin"])
                .stdin(text::zero_joined(paths))
                .output(deadline.clone())?;
        }
    }
    Ok(())
}

/// Files that the tree does not hold as they were: large ones that did not differ from the user's
/// index, and in snapshots of earlier versions all of them. They go through their filters again.
fn through_filters(
    index: &PrivateIndex<'_>,
    tree: &str,
    deadline: Deadline,
) -> Result<HashSet<PathBuf>, WorktreeError> {
    let repo = index.repo;
    let filters = repo.filters();
    if filters.is_empty() || !catalog::is_filtered(&repo.objects, tree) {
        return Ok(HashSet::new());
    }
    let rows = seed::tracked(index, deadline.clone())?;
    let filtered = seed::filtered(index, &rows, &filters, seed::Attributes::OfIndex, deadline)?;
    let is_new = catalog::holds(&repo.objects, tree);
    let is_ours = |row: &&seed::IndexRow| is_new && objects::has(&repo.objects, &row.oid);
    let theirs = filtered.into_iter().filter(|row| !is_ours(row));
    Ok(theirs.map(|row| row.path.clone()).collect())
}
