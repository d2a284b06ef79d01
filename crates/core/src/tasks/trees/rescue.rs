//! What a dead host or an agent that went astray left in a slot: into safety, before the slot is
//! used again.

use std::path::{Path, PathBuf};

use super::brought::Spared;
use super::files::{is_gone, open_folders, remove_all, remove_with_folders};
use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;
use crate::tasks::git_error::GitErrorKind;
use crate::tasks::place::{Proven, Work};

/// What git keeps in its folder of a worktree while a merge, rebase or the like is under way.
const UNDER_WAY: [&str; 22] = [
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "refs/bisect",
    "refs/rewritten",
];

/// Where a rebase or merge that is under way keeps what it put aside at its beginning.
const PUT_ASIDE: [&str; 3] = [
    "rebase-merge/autostash",
    "rebase-apply/autostash",
    "MERGE_AUTOSTASH",
];

/// Who worked in a slot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// An earlier attempt at the same work, or nobody.
    Same,
    /// Another task, which left files that are in no commit.
    Another,
    /// Another task, which left none.
    Tidy,
}

impl Trees {
    /// There from the moment an agent may enter a slot until what it left is safe.
    pub(super) fn at_work_mark(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.at-work"))
    }

    /// The branch of the task that was worked on last in a tree.
    fn last_branch(&self, name: &str) -> Done<Option<String>> {
        let id = self.last_task(name)?;
        Ok(id.map(|id| self.branch_of(&Work::named(id, String::new()))))
    }

    /// Makes HEAD of a tree a commit, so that no branch moves with it. Where HEAD is none, that of
    /// a branch without commits, it becomes the given one; files and index stay as they are.
    pub(super) fn detach(&self, repo: &Repo, otherwise: &str) -> Done<()> {
        let head = repo.commit_of("HEAD")?;
        if head.is_some() && repo.branch()?.is_none() {
            return Ok(());
        }
        let head = head.as_deref().unwrap_or(otherwise);
        repo.quiet(&["update-ref", "--no-deref", "HEAD", head])
            .map(drop)
    }

    /// An agent deleted its branch while it was on it: it is put back to what we know of it, and what lies in the
    /// tree becomes a commit on top of that.
    pub(super) fn put_branch_back(&self, repo: &Repo, branch: &str) -> Done<()> {
        let is_gone = repo.commit_of("HEAD")?.is_none();
        if !is_gone || repo.branch()?.as_deref() != Some(branch) {
            return Ok(());
        }
        let known = match self.put_by_us(branch)? {
            Some(known) => known,
            None => self.merged()?,
        };
        self.put_branch(branch, &known)
    }

    /// Work that a dead host left in a slot. On the branch of its task it becomes a commit there;
    /// anywhere else it gets a name of its own. Gives what the next agent has to know.
    pub(super) fn rescue(&self, repo: &Repo) -> Done<Option<String>> {
        let name = repo.dir.file_name().unwrap_or_default().to_string_lossy();
        let Some(branch) = self.last_branch(&name)? else {
            // No agent was ever there.
            return Ok(None);
        };
        if repo.branch()?.as_ref() == Some(&branch) {
            self.restore_settings(repo)?;
            self.clear_marks(repo)?;
            self.put_branch_back(repo, &branch)?;
            // Without an agent there, what lies about is that of a setup that was cut short.
            if self.at_work_mark(&name).exists() && repo.is_dirty()? {
                repo.unlock()?;
                self.commit_all(repo, "work of an attempt that was cut short", Proven::No)?;
            }
            if let Some(tip) = repo.commit_of("HEAD")? {
                self.take_from_agent(repo, &branch, &tip)?;
            }
            return Ok(None);
        }
        if !self.at_work_mark(&name).exists() {
            return Ok(None);
        }
        self.restore_settings(repo)?;
        self.clear_marks(repo)?;
        let otherwise = match self.user.commit_of(&format!("refs/heads/{branch}"))? {
            Some(tip) => {
                // The agent had it in its hands before it left it.
                if let Some(ours) = self.put_by_us(&branch)?
                    && self.user.is_ancestor(&ours, &tip)?
                {
                    self.take_from_agent(repo, &branch, &tip)?;
                }
                tip
            }
            None => self.merged()?,
        };
        if repo.is_dirty()? {
            repo.unlock()?;
            self.detach(repo, &otherwise)?;
            self.commit_all(repo, "work of an attempt that was cut short", Proven::No)?;
        }
        let mut kept = self.keep_put_aside(repo)?;
        let head = repo.commit_of("HEAD")?;
        if let Some(head) = head.filter(|head| *head != otherwise)
            && !self.is_in_a_ref(&head)?
        {
            kept.push(self.keep_commit(&head)?);
        }
        if kept.is_empty() {
            return Ok(None);
        }
        let kept = kept.join(" and ");
        self.user.locks.tell(format!(
            "an interrupted attempt had switched away from {branch}: what it was working on is \
             kept on {kept}"
        ));
        Ok(Some(format!(
            "---\nEARLIER WORK: an attempt at this task was interrupted while a commit other \
             than {branch} was checked out. What was there is kept on {kept}; take what is \
             useful (for example: git cherry-pick or git checkout \
             from there), and stay on {branch}.\n---"
        )))
    }

    /// Changes that a rebase or merge put aside are named by a file of its own alone.
    fn keep_put_aside(&self, repo: &Repo) -> Done<Vec<String>> {
        let mut kept = Vec::new();
        for file in repo.git_paths(&PUT_ASIDE)? {
            let text = match fs_err::read(file) {
                Err(error) if is_gone(&error) => continue,
                text => text?,
            };
            let text = String::from_utf8_lossy(&text);
            let commit = text.trim();
            let is_name = !commit.is_empty() && commit.bytes().all(|b| b.is_ascii_hexdigit());
            if is_name && let Some(commit) = repo.commit_of(commit)? {
                kept.push(self.keep_commit(&commit)?);
            }
        }
        Ok(kept)
    }

    /// Ends a merge, rebase or the like that nobody will finish: its commits are in refs.
    fn end_under_way(&self, repo: &Repo) -> Done<()> {
        let folder = repo.git_dir()?;
        for name in UNDER_WAY {
            remove_all(&folder.join(name))?;
        }
        Ok(())
    }

    /// Makes a slot what a commit says, leaving what git ignores, so that build caches stay warm, and what the
    /// setup made.
    pub(super) fn set_to(
        &self,
        repo: &Repo,
        commit: &str,
        before: Before,
        spared: &Spared,
    ) -> Done<()> {
        self.end_under_way(repo)?;
        self.restore_settings(repo)?;
        self.clear_sparse_marks(repo)?;
        self.empty(repo, before, spared)?;
        // What is left is hidden by rules of the last agent's own.
        let left = |repo: &Repo| -> Done<Vec<PathBuf>> {
            let mut left = self.files_in(self.untracked(repo)?);
            left.retain(|path| !spared.holds(path));
            Ok(left)
        };
        let mut hidden = match before {
            Before::Same | Before::Tidy => Vec::new(),
            Before::Another => left(repo)?,
        };
        if !hidden.is_empty() {
            self.save_hidden(repo, &hidden)?;
        }
        self.detach(repo, commit)?;
        if repo.commit_of("HEAD")?.as_deref() != Some(commit) {
            repo.quiet(&["reset", "--quiet", "--hard", commit])?;
            if before != Before::Same {
                // What the last task had git ignore, and this one has not.
                hidden = left(repo)?;
            }
        }
        for path in hidden {
            let removed = remove_with_folders(&repo.dir, &path);
            let removed = removed.or_else(|_| {
                open_folders(&repo.dir);
                remove_with_folders(&repo.dir, &path)
            });
            removed.map_err(|error| GitError::NotEmptied(error.to_string()))?;
        }
        Ok(())
    }

    /// Removes what is in no commit and not ignored.
    fn empty(&self, repo: &Repo, before: Before, spared: &Spared) -> Done<()> {
        let emptied = || -> Done<()> {
            repo.quiet(&["reset", "--quiet", "--hard"])?;
            if spared.is_nothing() {
                return repo.quiet(&["clean", "--quiet", "-fd"]).map(drop);
            }
            for path in self.files_in(repo.changed()?.untracked) {
                if !spared.holds(&path) {
                    let removed = remove_with_folders(&repo.dir, &path);
                    removed.map_err(|error| GitError::SaidNo {
                        command: "clean".to_owned(),
                        message: error.to_string(),
                    })?;
                }
            }
            Ok(())
        };
        match emptied() {
            Err(error) if error.kind() == GitErrorKind::Failed => {}
            done => return done,
        }
        open_folders(&repo.dir);
        if before != Before::Same {
            // Paths that are too long for git. Of the same work there may be repositories that are kept.
            let rest = [
                "ls-files",
                "-z",
                "--others",
                "--exclude-standard",
                "--directory",
            ];
            for path in repo.paths(&rest)? {
                drop(remove_all(&repo.dir.join(path)));
            }
        }
        emptied().map_err(|error| match error.kind() {
            GitErrorKind::Failed => GitError::NotEmptied(error.to_string()),
            _ => error,
        })
    }

    /// Leaves a tree as it is, which cannot be made ready for another task.
    pub(super) fn leave_slot(&self, slot: u32, why: &str) -> Done<()> {
        let name = self.slot_name(slot);
        let path = self.folder.join(&name);
        let holds = format!("files that cannot be removed: {why}");
        self.keep_tree(&self.tree_at(&path)?, &name, &[holds])?;
        // The task that it was to be made ready for has left nothing there, and does not take it up.
        drop(fs_err::remove_file(self.task_mark(&name)));
        self.user.locks.tell(format!(
            "{} is left as it is, and another worktree is used: {why}",
            path.display()
        ));
        Ok(())
    }

    /// Takes a branch away from every other worktree, with the work that lies in slots.
    pub(super) fn free(&self, branch: &str, ours: &Repo) -> Done<()> {
        for slot in self.trees_there()? {
            if slot == ours.dir || self.kept_mark(&file_name(&slot)).exists() {
                continue;
            }
            let Ok(slot) = self.tree_at(&slot) else {
                continue;
            };
            if slot.branch()?.as_deref() == Some(branch) {
                self.rescue(&slot)?;
                self.detach(&slot, &self.merged()?)?;
            }
        }
        if self.user.branch()?.as_deref() == Some(branch) {
            return Err(GitError::Refused(format!(
                "the branch {branch} is checked out in {}, but its task is about to be worked \
                 on: check out another branch there",
                self.user.dir.display()
            )));
        }
        let loops = self.settings.root.worktrees();
        for (admin, tree) in self.others_with(branch)? {
            if tree.starts_with(&loops) {
                return Err(GitError::Refused(format!(
                    "a loop with the same tag in another checkout of this repository has \
                     {branch} in {}: let it finish, or if it is over: git -C {} checkout --detach \
                     (its files stay as they are)",
                    tree.display(),
                    shell_words::quote(&tree.to_string_lossy())
                )));
            }
            // Its files, index and commit stay as they are.
            let other = self.user.with_env("GIT_DIR", &admin);
            if let Some(head) = other.commit_of("HEAD")? {
                other.quiet(&["update-ref", "--no-deref", "HEAD", &head])?;
                self.user.locks.tell(format!(
                    "{branch} was checked out in {} and is needed by this loop: the same commit \
                     is now checked out there, without the branch",
                    tree.display()
                ));
            }
        }
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
