//! Bringing proven work together, and into the user's checkout.

use std::time::Duration;

use descartes_kernel::sched::MergeEnd;
use descartes_kernel::tasks::Landing;

use super::{Done, Trees};
use crate::tasks::locks::Passed;
use crate::tasks::place::{Gates, Wave, Work};

/// Time for a lock in the user's checkout to go before work is put aside to land later: somebody
/// may be writing a commit message.
const CHECKOUT: Duration = Duration::from_secs(60);

impl Trees {
    /// Makes room for branches of tasks.
    pub(super) fn make_room(&self) -> Done<()> {
        let whole = format!("refs/heads/{}", self.whole_branch());
        let Some(commit) = self.user.commit_of(&whole)? else {
            return Ok(());
        };
        // The one is gone before the other can be, so the commit is named apart meanwhile.
        let apart = format!("refs/descartes/{}/ready", self.ref_tag);
        let ready = format!("refs/heads/{}", self.ready_branch());
        self.move_refs(&[(apart.clone(), &commit)])?;
        self.user.quiet(&["update-ref", "-d", &whole])?;
        self.move_refs(&[(ready, &commit)])?;
        self.user.quiet(&["update-ref", "-d", &apart]).map(drop)
    }

    /// Everything that is done waits in one commit: branches of tasks that are in it go, and where
    /// none is left it gets the name that people look for.
    pub(super) fn gather(&self, done: &[Work]) -> Done<Option<String>> {
        let ready = format!("refs/heads/{}", self.ready_branch());
        let Some(commit) = self.user.commit_of(&ready)? else {
            return Ok(None);
        };
        for work in done {
            let branch = self.branch_of(work);
            self.user.tidy(&["branch", "--quiet", "-D", &branch]);
        }
        let folder = format!("refs/heads/{}/", self.whole_branch());
        let left = self
            .user
            .ask(&["for-each-ref", "--format=%(refname)", &folder])?;
        if left != ready {
            return Ok(None);
        }
        let apart = format!("refs/descartes/{}/ready", self.ref_tag);
        let whole = format!("refs/heads/{}", self.whole_branch());
        self.move_refs(&[(apart.clone(), &commit)])?;
        self.user.quiet(&["update-ref", "-d", &ready])?;
        self.move_refs(&[(whole, &commit)])?;
        self.user.quiet(&["update-ref", "-d", &apart])?;
        Ok(Some(self.whole_branch()))
    }

    pub(super) fn bring_together(&self, work: &Work, gates: Gates<'_>) -> Done<MergeEnd> {
        let branch = format!("refs/heads/{}", self.branch_of(work));
        let Some(theirs) = self.user.commit_of(&branch)? else {
            return Err(format!("the branch {} is gone", self.branch_of(work)));
        };
        let merged = self.caught_up()?;
        let mut fresh = false;
        let repo = self.worktree("merged", &mut fresh)?;
        if fresh {
            self.furnish(&repo)?;
        }
        self.set_to(&repo, &merged)?;
        if let Err(words) = repo.attempt(&["merge", "--squash", "--quiet", &theirs])? {
            let files = repo.unmerged()?;
            let tail = match files.is_empty() {
                true => words,
                false => format!("{words}\nconflicts in: {}", files.join(", ")),
            };
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Conflict { tail });
        }
        self.put_back(&repo)?;
        if repo.holds(&["diff", "--cached", "--quiet"])? {
            // Merged before a host died, or a task that changed nothing.
            return Ok(MergeEnd::Merged);
        }
        if let Err(message) = repo.act(&["commit", "--quiet", "-m", &work.title]) {
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Failed { message });
        }
        let commit = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        // The gates were green on the task's own tree: the same tree is not proven twice.
        let same = repo.tree_of(&commit)? == repo.tree_of(&theirs)?;
        if !same && let Err(tail) = gates(&repo.dir.join(&self.prefix)) {
            self.set_to(&repo, &merged)?;
            return Ok(MergeEnd::Red { tail });
        }
        self.user
            .quiet(&["update-ref", &self.merged_ref(), &commit, &merged])?;
        Ok(MergeEnd::Merged)
    }

    /// One commit for the wave on top of the last one, then into the user's checkout.
    pub(super) fn close_wave(
        &self,
        wave: &Wave,
        gates: Gates<'_>,
    ) -> Done<(Option<String>, Option<Landing>)> {
        let message = wave.message(&self.tag);
        let (merged, last) = (self.merged()?, self.waves()?);
        let new = self.user.tree_of(&merged)? != self.user.tree_of(&last)?;
        let commit = if self.squash && new {
            let tree = self.user.tree_of(&merged)?;
            Some(
                self.user
                    .quiet(&["commit-tree", &tree, "-p", &last, "-m", &message])?,
            )
        } else if self.marks_waves
            && self.user.ask(&["log", "-1", "--format=%s", &merged])? != message
        {
            let tree = self.user.tree_of(&merged)?;
            Some(
                self.user
                    .quiet(&["commit-tree", &tree, "-p", &merged, "-m", &message])?,
            )
        } else if self.user.ask(&["log", "-1", "--format=%s", &last])? == message {
            // Committed before a host died.
            Some(last)
        } else {
            (merged != last).then_some(merged)
        };
        if let Some(commit) = &commit {
            self.move_refs(&[(self.waves_ref(), commit), (self.merged_ref(), commit)])?;
        }
        let (landed, landing) = self.land(&message, gates)?;
        let commit = commit.map(|commit| landed.unwrap_or(commit));
        Ok((commit, landing))
    }

    /// Brings what was merged into the user's checkout: fast-forward, or not at all.
    pub(super) fn land(
        &self,
        message: &str,
        gates: Gates<'_>,
    ) -> Done<(Option<String>, Option<Landing>)> {
        let merged = self.merged()?;
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        if head == merged || self.user.is_ancestor(&merged, &head)? {
            self.user
                .tidy(&["branch", "--quiet", "-D", &self.ready_branch()]);
            return Ok((None, None));
        }
        if self.user.branch()? != self.branch {
            let why = "another branch is checked out than when the loop began";
            return self
                .wait_to_land(&merged, why)
                .map(|landing| (None, Some(landing)));
        }
        let mut commit = merged.clone();
        if !self.user.is_ancestor(&head, &merged)? {
            match self.redo_on(&head, &merged, message, gates)? {
                Ok(new) => commit = new,
                Err(why) => {
                    return self
                        .wait_to_land(&merged, &why)
                        .map(|landing| (None, Some(landing)));
                }
            }
        }
        if let Err(why) = self.await_checkout()? {
            self.move_refs(&[(self.waves_ref(), &commit), (self.merged_ref(), &commit)])?;
            return self
                .wait_to_land(&commit, &why)
                .map(|landing| (None, Some(landing)));
        }
        match self
            .user
            .attempt(&["merge", "--ff-only", "--quiet", &commit])?
        {
            Ok(()) => {
                self.move_refs(&[(self.waves_ref(), &commit), (self.merged_ref(), &commit)])?;
                self.user
                    .tidy(&["branch", "--quiet", "-D", &self.ready_branch()]);
                let landing = Landing::Landed {
                    commit: commit.clone(),
                };
                Ok((Some(commit), Some(landing)))
            }
            Err(words) => {
                let why = words.lines().next().unwrap_or("git refused").to_owned();
                self.move_refs(&[(self.waves_ref(), &commit), (self.merged_ref(), &commit)])?;
                self.wait_to_land(&commit, &why)
                    .map(|landing| (None, Some(landing)))
            }
        }
    }

    /// Locks in the user's checkout are looked for before anything is changed there: a merge that
    /// meets one on the branch has changed the files already. Work that cannot land now lands
    /// with the next that can.
    fn await_checkout(&self) -> Done<Result<(), String>> {
        let branch = self.branch.as_ref();
        let branch = branch.map(|branch| format!("refs/heads/{branch}.lock"));
        let names: Vec<&str> = ["index.lock", "HEAD.lock"]
            .into_iter()
            .chain(branch.as_deref())
            .collect();
        for lock in self.user.git_paths(&names)? {
            if let Passed::Stays(why) = self.user.locks.pass_within(&lock, CHECKOUT) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// The user's branch moved: merge and gates are done again on top of it.
    pub(super) fn redo_on(
        &self,
        head: &str,
        merged: &str,
        message: &str,
        gates: Gates<'_>,
    ) -> Done<Result<String, String>> {
        let repo = self.worktree("merged", &mut false)?;
        self.set_to(&repo, head)?;
        if let Err(words) = repo.attempt(&["merge", "--squash", "--quiet", merged])? {
            self.set_to(&repo, merged)?;
            let first = words.lines().next().unwrap_or("").to_owned();
            return Ok(Err(format!(
                "it conflicts with commits made meanwhile: {first}"
            )));
        }
        self.put_back(&repo)?;
        if repo.holds(&["diff", "--cached", "--quiet"])? {
            return Ok(Ok(head.to_owned()));
        }
        repo.quiet(&["commit", "--quiet", "-m", message])?;
        let commit = repo.commit_of("HEAD")?.ok_or("there is no commit")?;
        if let Err(tail) = gates(&repo.dir.join(&self.prefix)) {
            self.set_to(&repo, merged)?;
            let first = tail.lines().next().unwrap_or("").to_owned();
            return Ok(Err(format!(
                "with commits made meanwhile it is red: {first}"
            )));
        }
        Ok(Ok(commit))
    }

    pub(super) fn wait_to_land(&self, commit: &str, why: &str) -> Done<Landing> {
        let branch = self.ready_branch();
        self.move_refs(&[(format!("refs/heads/{branch}"), commit)])?;
        Ok(Landing::Ready {
            commit: commit.to_owned(),
            branch,
            why: why.to_owned(),
        })
    }
}
