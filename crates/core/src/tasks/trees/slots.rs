//! Slots: a worktree for each task at work, made ready, and emptied into safety.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Done, Trees};
use crate::tasks::git::Repo;
use crate::tasks::place::{Proven, Ready, Work};
use crate::tasks::shell::Shell;

/// Time for the command that makes a worktree ready.
const SETUP: Duration = Duration::from_secs(30 * 60);

impl Trees {
    pub(super) fn worktree(&self, name: &str, fresh: &mut bool) -> Done<Repo> {
        let path = self.folder.join(name);
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let repo = self.user.beside(&path);
        if path.join(".git").is_file() && repo.ask(&["rev-parse", "HEAD"]).is_ok() {
            repo.unlock()?;
            repo.mend()?;
            return Ok(repo);
        }
        // What a dead host made half of, or an earlier repository of the same path left.
        drop(fs_err::remove_dir_all(&path));
        self.user.quiet(&["worktree", "prune"])?;
        fs_err::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
        let merged = self.merged()?;
        let text = path.to_string_lossy();
        self.user
            .quiet(&["worktree", "add", "--quiet", "--detach", &text, &merged])?;
        *fresh = true;
        Ok(repo)
    }

    /// Work that a dead host left in a slot goes onto the branch that is checked out there.
    pub(super) fn rescue(&self, repo: &Repo) -> Done<()> {
        let branch = repo.branch()?;
        let ours = format!("descartes/{}/", self.ref_tag);
        if branch.is_some_and(|branch| branch.starts_with(&ours)) && repo.is_dirty()? {
            repo.unlock()?;
            self.commit_all(repo, "work of an attempt that was cut short", Proven::No)?;
        }
        Ok(())
    }

    /// Commits everything but the files of the tasks; nothing to commit is fine.
    pub(super) fn commit_all(&self, repo: &Repo, message: &str, proven: Proven) -> Done<()> {
        repo.quiet(&["add", "-A"])?;
        self.put_back(repo)?;
        let merging = repo.commit_of("MERGE_HEAD")?.is_some();
        if !merging && repo.holds(&["diff", "--cached", "--quiet"])? {
            return Ok(());
        }
        let commit = ["commit", "--quiet", "--allow-empty", "-m", message];
        match proven {
            Proven::Green => repo.act(&commit).map(drop),
            Proven::No => repo.quiet(&commit).map(drop),
        }
    }

    /// Takes the files of the tasks, and our own folder, out of what is about to be committed.
    pub(super) fn put_back(&self, repo: &Repo) -> Done<()> {
        let own = self
            .prefix
            .join(".descartes")
            .to_string_lossy()
            .into_owned();
        for path in self
            .shielded
            .iter()
            .map(String::as_str)
            .chain([own.as_str()])
        {
            let spec = format!(":(literal){path}");
            repo.quiet(&["reset", "--quiet", "HEAD", "--", &spec])?;
        }
        Ok(())
    }

    /// Makes a tree of ours what a commit says, leaving what git ignores: build caches stay warm.
    pub(super) fn set_to(&self, repo: &Repo, commit: &str) -> Done<()> {
        // What was begun there and never finished is of no worth: its commits are elsewhere.
        drop(repo.attempt(&["merge", "--abort"])?);
        repo.quiet(&["reset", "--quiet", "--hard"])?;
        repo.quiet(&["clean", "--quiet", "-fd"])?;
        repo.quiet(&["checkout", "--quiet", "--detach", commit])?;
        Ok(())
    }

    pub(super) fn furnish(&self, repo: &Repo) -> Done<()> {
        for name in &self.copy {
            let (from, to) = (self.user.dir.join(name), repo.dir.join(name));
            if !from.exists() {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs_err::create_dir_all(parent).map_err(|error| error.to_string())?;
            }
            copy_all(&from, &to).map_err(|error| format!("cannot copy {name}: {error}"))?;
        }
        let Some(setup) = &self.setup else {
            return Ok(());
        };
        let mut shell =
            Shell::new(&self.settings, &self.settings.mark()).map_err(|error| error.to_string())?;
        let log = self.folder.join("setup.log");
        let setups = || self.setups.lock().unwrap_or_else(PoisonError::into_inner);
        setups().push(shell.stopper());
        let ran = shell.run(&repo.dir.join(&self.prefix), setup, SETUP, log);
        match ran.is_green() {
            true => Ok(()),
            false => Err(format!("worktree_setup `{setup}` failed:\n{}", ran.tail)),
        }
    }

    pub(super) fn ready(&self, slot: u32, work: &Work) -> Done<Ready> {
        let mut fresh = false;
        let repo = self.worktree(&format!("slot-{slot}"), &mut fresh)?;
        self.rescue(&repo)?;
        let merged = self.merged()?;
        let branch = self.branch_of(work);
        let known = self.user.commit_of(&format!("refs/heads/{branch}"))?;
        match known {
            None => {
                self.set_to(&repo, &merged)?;
                repo.quiet(&["checkout", "--quiet", "-B", &branch])?;
            }
            Some(commit) => {
                self.set_to(&repo, &commit)?;
                // Another slot may still have it checked out, cut short by a dead host.
                self.free(&branch, &repo)?;
                repo.quiet(&["checkout", "--quiet", &branch])?;
            }
        }
        if fresh {
            self.furnish(&repo)?;
        }
        let note = self.catch_up(&repo, &merged)?;
        Ok(Ready {
            dir: repo.dir.join(&self.prefix),
            note,
        })
    }

    /// Takes a branch away from every other slot, with the work that lies there.
    pub(super) fn free(&self, branch: &str, ours: &Repo) -> Done<()> {
        let slots = fs_err::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        for slot in slots.map(|entry| self.user.beside(&entry.path())) {
            if slot.dir == ours.dir || !slot.dir.join(".git").is_file() {
                continue;
            }
            if slot.branch()?.as_deref() == Some(branch) {
                self.rescue(&slot)?;
                slot.quiet(&["checkout", "--quiet", "--detach"])?;
            }
        }
        Ok(())
    }

    /// Brings what was merged meanwhile into a task's tree. Conflicts stay in the files, for the
    /// agent to resolve.
    pub(super) fn catch_up(&self, repo: &Repo, merged: &str) -> Done<Option<String>> {
        if repo.is_ancestor(merged, "HEAD")? {
            return Ok(None);
        }
        let words = repo.attempt(&["merge", "--no-edit", "--quiet", merged])?;
        if words.is_ok() {
            return Ok(None);
        }
        let files = repo.unmerged()?;
        if files.is_empty() {
            return Err(words.err().unwrap_or_default());
        }
        let list: Vec<String> = files.iter().map(|file| format!("- {file}")).collect();
        Ok(Some(format!(
            "---\nMERGE CONFLICT: other work was merged meanwhile, and these files hold conflict markers.\n\
             Resolve them so that both changes keep their meaning:\n{}\n---",
            list.join("\n")
        )))
    }

    pub(super) fn keep(&self, slot: u32, work: &Work, proven: Proven) -> Done<()> {
        let repo = self.user.beside(&self.folder.join(format!("slot-{slot}")));
        // A git of the agent's may have been ended with it.
        repo.unlock()?;
        if repo.branch()?.as_deref() != Some(self.branch_of(work).as_str()) {
            // The agent went elsewhere: what it committed there is named, so that it is not lost.
            let head = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
            if repo.is_dirty()? {
                self.commit_all(&repo, &work.title, Proven::No)?;
            }
            let head = repo.commit_of("HEAD")?.unwrap_or(head);
            let name = format!("refs/heads/{}", self.branch_of(work));
            let known = self.user.commit_of(&name)?;
            let onward = match &known {
                Some(known) => repo.is_ancestor(known, &head)?,
                None => true,
            };
            if !onward {
                return Err(format!(
                    "its agent left the branch {}",
                    self.branch_of(work)
                ));
            }
            repo.quiet(&["checkout", "--quiet", "--detach"])?;
            return self.move_refs(&[(name, &head)]);
        }
        let marked = self.still_marked(&repo)?;
        let message = match proven {
            Proven::Green => work.title.clone(),
            Proven::No => format!("{} (unproven)", work.title),
        };
        self.commit_all(&repo, &message, proven)?;
        // What is left are the agent's copies of the task files.
        repo.quiet(&["reset", "--quiet", "--hard"])?;
        repo.quiet(&["checkout", "--quiet", "--detach"])?;
        match marked {
            Some(file) => Err(format!("{file} still holds conflict markers")),
            None => Ok(()),
        }
    }

    /// A file with unresolved conflicts that still looks like one.
    pub(super) fn still_marked(&self, repo: &Repo) -> Done<Option<String>> {
        let marked = |file: &String| {
            let text = fs_err::read(repo.dir.join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            text.lines().any(|line| line.starts_with("<<<<<<< "))
        };
        Ok(repo.unmerged()?.into_iter().find(marked))
    }
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs_err::copy(from, to).map(drop);
    }
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
