//! Ignore files that git ignores: no commit holds them, nor what they hide.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files::zero_ended;
use super::{Done, Trees};
use crate::tasks::git::Repo;
use crate::tasks::git_cache::{IGNORE_FILE, IndexSummary};

/// An ignore file that no commit will hold.
pub(super) struct SelfIgnored {
    pub(super) file: PathBuf,
    /// What it hides, folders as one.
    pub(super) hides: Vec<PathBuf>,
}

/// Ignore files beside tracked files that are not tracked themselves. Tools write such files into caches of
/// their own, where nothing is tracked: those hide nobody's work.
fn untracked_beside_work(dir: &Path, index: &IndexSummary) -> BTreeSet<PathBuf> {
    let folders = index.folders.iter().map(PathBuf::as_path);
    let files = [Path::new("")].into_iter().chain(folders);
    files
        .map(|folder| folder.join(IGNORE_FILE))
        .filter(|file| !index.ignore_files.contains(file))
        .filter(|file| dir.join(file).symlink_metadata().is_ok())
        .collect()
}

impl Trees {
    /// Those in a tree of which everything that git takes is committed.
    pub(super) fn self_ignored(&self, repo: &Repo) -> Done<Vec<SelfIgnored>> {
        let index = repo.index()?;
        let suspects = untracked_beside_work(&repo.dir, &index);
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = repo.paths(&[
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
        ])?;
        if ignored.is_empty() {
            return Ok(Vec::new());
        }
        let asked = zero_ended("", ignored.iter().map(PathBuf::as_path));
        // It answers with the file that a rule stands in, its line, the rule and the path.
        let rules = repo.paths_of(&["check-ignore", "-v", "-z", "--stdin"], asked)?;
        let hidden_by = |file: &PathBuf| -> Vec<PathBuf> {
            let rows = rules.chunks_exact(4).filter(|row| row[0] == *file);
            let paths = rows.map(|row| row[3].clone());
            paths.filter(|path| !suspects.contains(path)).collect()
        };
        let found = suspects.iter().map(|file| SelfIgnored {
            file: file.clone(),
            hides: hidden_by(file),
        });
        Ok(found.filter(|found| !found.hides.is_empty()).collect())
    }
}
