//! Worktrees that are not removed, since they hold what is found nowhere else.

use std::path::{Path, PathBuf};

use descartes_kernel::tasks::KeptTree;

use super::files::{open_folders, remove_all, write_note};
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;

/// How the file beside a kept tree ends.
const MARK: &str = "kept";

impl Trees {
    pub(super) fn kept_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{MARK}"))
    }

    pub(super) fn mark_kept(&self, name: &str, holds: &[String]) -> Done<()> {
        let text = holds.join("\n");
        write_note(&self.kept_mark(name), text).map_err(GitError::from)
    }

    /// Leaves a tree as it is from now on.
    pub(super) fn keep_tree(&self, repo: &Repo, name: &str, holds: &[String]) -> Done<()> {
        // Its branch is wanted elsewhere.
        self.detach(repo, &self.merged()?)?;
        self.mark_kept(name, holds)
    }

    /// Removes a tree, unless that would lose something.
    pub(super) fn remove_tree(&self, path: &Path) -> Done<()> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if self.kept_mark(&name).exists() {
            return Ok(());
        }
        if name != "merged" {
            self.mend_link(path)?;
            let repo = self.tree_at(path)?;
            repo.unlock()?;
            repo.mend()?;
            self.rescue(&repo)?;
            let untracked = self.untracked(&repo)?;
            let holds = self.unsaved(&repo, &untracked)?;
            if !holds.is_empty() {
                return self.keep_tree(&repo, &name, &holds);
            }
            let hidden = self.hidden(&repo, untracked)?;
            if !hidden.is_empty() {
                self.save_hidden(&repo, &hidden)?;
            }
            let head = repo.commit_of("HEAD")?;
            if let Some(head) = head
                && !self.is_in_a_ref(&head)?
            {
                let kept = self.keep_commit(&head)?;
                let message = format!(
                    "what was checked out in {} is kept on {kept}",
                    path.display()
                );
                self.user.locks.tell(message);
            }
        }
        // Everything in it is in a ref or ignored.
        let text = path.to_string_lossy();
        let remove = || {
            self.user
                .quiet(&["worktree", "remove", "--force", "--force", &text])
        };
        if remove().is_err() {
            open_folders(path);
            // git has forgotten it, or does now.
            remove_all(path)?;
            self.unregister(path);
        }
        self.drop_marks(&name);
        drop(fs_err::remove_file(
            self.folder.join(format!("{name}-setup.log")),
        ));
        Ok(())
    }

    /// All trees that are kept.
    pub(super) fn kept_trees(&self) -> Vec<KeptTree> {
        kept_in(&self.folder)
    }

    /// Worktrees that git knows of in our folder and that are not there.
    pub(super) fn unregister_lost(&self) {
        let Ok(listed) = self.user.ask(&["worktree", "list", "--porcelain"]) else {
            return;
        };
        let paths = listed
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        for path in paths
            .map(PathBuf::from)
            .filter(|path| path.starts_with(&self.folder))
        {
            self.unregister(&path);
        }
    }
}

/// The trees in a folder of worktrees that are kept; marks of those that a person removed go.
pub(in crate::tasks) fn kept_in(folder: &Path) -> Vec<KeptTree> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let mut kept: Vec<KeptTree> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == MARK))
        .filter_map(|mark| {
            let path = mark.with_extension("");
            if !path.exists() {
                drop(fs_err::remove_file(&mark));
                return None;
            }
            let text = fs_err::read_to_string(&mark).unwrap_or_default();
            let holds = text.lines().map(str::to_owned).collect();
            Some(KeptTree { path, holds })
        })
        .collect();
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    kept
}
