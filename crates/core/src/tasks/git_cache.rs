//! What a repository was asked once and need not be asked again: commits, which never change, and what
//! an index says while it is the same file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::worktree::stamp::Stamp;

/// A commit that is in the repository.
#[derive(Clone, Debug)]
pub(super) struct CommitObject {
    pub(super) commit: String,
    pub(super) tree: String,
}

/// The state of a file: git puts a new one in its place whenever an index changes.
pub(super) fn stamp_of(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().map(|meta| Stamp::of(&meta))
}

/// Whether there is surely nothing.
pub(super) fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Kept for all trees of one repository.
#[derive(Debug, Default)]
pub(super) struct RepoCache {
    /// The tree of each commit that was found.
    commits: Mutex<HashMap<String, String>>,
    /// The first line of each commit's message that was asked for.
    subjects: Mutex<HashMap<String, String>>,
    /// Commits, each with one that was found to come after it.
    ancestors: Mutex<HashSet<(String, String)>>,
    indexes: Mutex<HashMap<PathBuf, (Stamp, Arc<IndexSummary>)>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RepoCache {
    pub(super) fn commit(&self, commit: &str) -> Option<CommitObject> {
        let tree = held(&self.commits).get(commit)?.clone();
        let commit = commit.to_owned();
        Some(CommitObject { commit, tree })
    }

    pub(super) fn note_commit(&self, found: CommitObject) {
        held(&self.commits).insert(found.commit, found.tree);
    }

    pub(super) fn subject(&self, commit: &str) -> Option<String> {
        held(&self.subjects).get(commit).cloned()
    }

    pub(super) fn note_subject(&self, commit: &str, subject: &str) {
        held(&self.subjects).insert(commit.to_owned(), subject.to_owned());
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> bool {
        let pair = (old.to_owned(), new.to_owned());
        held(&self.ancestors).contains(&pair)
    }

    pub(super) fn note_ancestor(&self, old: &str, new: &str) {
        held(&self.ancestors).insert((old.to_owned(), new.to_owned()));
    }

    pub(super) fn index(&self, path: &Path) -> Option<Arc<IndexSummary>> {
        let stamp = stamp_of(path)?;
        let indexes = held(&self.indexes);
        let (known, index) = indexes.get(path)?;
        (*known == stamp).then(|| Arc::clone(index))
    }

    pub(super) fn note_index(&self, path: PathBuf, stamp: Stamp, index: &Arc<IndexSummary>) {
        held(&self.indexes).insert(path, (stamp, Arc::clone(index)));
    }
}

/// A repository inside a tree, as its index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) commit: String,
    pub(super) path: PathBuf,
}

/// The file that says what git ignores in a folder.
pub(super) const IGNORE_FILE: &str = ".gitignore";

/// What an index says, as far as anybody asks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IndexSummary {
    pub(super) links: Vec<Link>,
    /// Every folder with tracked files.
    pub(super) folders: BTreeSet<PathBuf>,
    /// The ignore files among them.
    pub(super) ignore_files: BTreeSet<PathBuf>,
    /// Files that git was told to take for unchanged.
    pub(super) assumed: Vec<PathBuf>,
    /// Files that git was told to leave out of the tree.
    pub(super) skipped: Vec<PathBuf>,
    /// Files with unresolved conflicts.
    pub(super) unmerged: Vec<PathBuf>,
}

impl IndexSummary {
    /// Reads what `ls-files -v --stage -z` prints: a letter, mode, object and stage, and the path.
    pub(super) fn parse(listed: &[u8]) -> Self {
        let mut index = Self::default();
        for row in listed.split(|byte| *byte == 0) {
            index.add(row);
        }
        index.unmerged.dedup();
        index
    }

    fn add(&mut self, row: &[u8]) -> Option<()> {
        let tab = row.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(row.get(..tab)?).ok()?;
        let path = PathBuf::from(OsStr::from_bytes(row.get(tab + 1..)?));
        let mut words = head.split(' ');
        let (mark, mode) = (words.next()?.bytes().next()?, words.next()?);
        let (object, stage) = (words.next()?, words.next()?);
        if mark.eq_ignore_ascii_case(&b's') {
            self.skipped.push(path.clone());
        }
        if mark.is_ascii_lowercase() {
            self.assumed.push(path.clone());
        }
        if stage != "0" {
            self.unmerged.push(path.clone());
        }
        if mode == "160000" {
            let commit = object.to_owned();
            self.links.push(Link { commit, path });
        } else {
            add_folders(&mut self.folders, &path);
            if path.file_name() == Some(OsStr::new(IGNORE_FILE)) {
                self.ignore_files.insert(path);
            }
        }
        Some(())
    }
}

/// Adds every folder above a file.
pub(super) fn add_folders(folders: &mut BTreeSet<PathBuf>, path: &Path) {
    let mut folder = path.parent();
    while let Some(inside) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        if !folders.insert(inside.to_owned()) {
            break;
        }
        folder = inside.parent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_of_an_index_is_read() {
        let hash = "a".repeat(40);
        let rows = [
            format!("H 100644 {hash} 0\ta/b/file"),
            format!("h 100644 {hash} 0\tassumed"),
            format!("S 100644 {hash} 0\tskipped"),
            format!("s 100644 {hash} 0\tboth"),
            format!("M 100644 {hash} 1\ttab\tin name"),
            format!("M 100644 {hash} 2\ttab\tin name"),
            format!("H 160000 {hash} 0\tlib/inner"),
        ];
        let index = IndexSummary::parse(rows.join("\0").as_bytes());
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let commit = hash;
        let path = PathBuf::from("lib/inner");
        assert_eq!(index.links, [Link { commit, path }]);
        assert_eq!(
            index.folders.into_iter().collect::<Vec<_>>(),
            paths(&["a", "a/b"])
        );
        assert_eq!(index.assumed, paths(&["assumed", "both"]));
        assert_eq!(index.skipped, paths(&["skipped", "both"]));
        assert_eq!(index.unmerged, paths(&["tab\tin name"]));
    }
}
