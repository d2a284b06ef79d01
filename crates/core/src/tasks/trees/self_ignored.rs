//! Ignore files that git ignores: no commit holds them, nor what they hide.

use std::path::PathBuf;

use super::{Done, Trees};
use crate::tasks::git::Repo;
use crate::tasks::git::zero_ended;

/// An ignore file that no commit will hold.
pub(super) struct SelfIgnored {
    pub(super) file: PathBuf,
    pub(super) hides: Vec<PathBuf>,
}

impl Trees {
    /// Those in a tree of which everything that git takes is committed.
    pub(super) fn self_ignored(&self, repo: &Repo) -> Done<Vec<SelfIgnored>> {
        let index = repo.index()?;
        // Tools write such files into caches of their own, where nothing is tracked: those hide nobody's work.
        let suspects = self.new_ignore_files(repo, &index)?;
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = repo.paths(&[
            "ls-files",
            "-z",
            "--others",
            "--ignored",
            "--exclude-standard",
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
