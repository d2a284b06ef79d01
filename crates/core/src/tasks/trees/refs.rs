//! Refs of ours: what we put where, and commits there that we did not.
//!
//! `refs/descartes/TAG/ours/NAME` says which commit we put onto the branch NAME. A branch is
//! moved or deleted only while it is there; what somebody else put onto it gets a name of its own
//! first, and that is said.

use std::collections::{HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use super::{Done, GitError, Trees};
use crate::tasks::git::Repo;
use crate::tasks::place::Work;

/// Where commits of people go that stood on a branch of ours.
const KEPT: &str = "descartes-kept";

/// The commit that we put onto each branch.
type Put = HashMap<String, String>;

impl Trees {
    pub(super) fn merged_ref(&self) -> String {
        format!("refs/descartes/{}/merged", self.ref_tag)
    }

    pub(super) fn waves_ref(&self) -> String {
        format!("refs/descartes/{}/waves", self.ref_tag)
    }

    pub(super) fn branch_of(&self, work: &Work) -> String {
        format!("descartes/{}/{}", self.ref_tag, self.name_of(&work.id))
    }

    /// Where finished work waits that cannot land, while tasks have branches of their own: git has
    /// no room for a branch `descartes/TAG` beside branches under that name.
    pub(super) fn ready_branch(&self) -> String {
        format!("descartes/{}/=ready", self.ref_tag)
    }

    /// Where it waits once no task has one.
    pub(super) fn whole_branch(&self) -> String {
        format!("descartes/{}", self.ref_tag)
    }

    /// The record of what we put onto a branch.
    fn record_of(&self, branch: &str) -> String {
        let inside = format!("descartes/{}/", self.ref_tag);
        // The whole is called by a name that no task has.
        let name = branch.strip_prefix(&inside).unwrap_or("=whole");
        format!("refs/descartes/{}/ours/{name}", self.ref_tag)
    }

    /// What we put onto a branch.
    pub(super) fn put_by_us(&self, branch: &str) -> Done<Option<String>> {
        self.put_before(&self.put(), branch)
    }

    /// The same for who holds the map: it is held over every move, since a look in between would take
    /// the move for an agent's.
    fn put_before(&self, put: &Put, branch: &str) -> Done<Option<String>> {
        let record = self.record_of(branch);
        let found = self.user.commit_of(&record)?;
        match put.get(branch).cloned() {
            Some(known) if found.as_ref() != Some(&known) => {
                // An agent has the same repository in its hands.
                self.user.locks.tell(format!(
                    "someone else moved {record}: it was reset to where this loop had left it"
                ));
                self.move_own(&[(record, found.as_deref(), &known)])?;
                Ok(Some(known))
            }
            _ => Ok(found),
        }
    }

    fn put(&self) -> MutexGuard<'_, Put> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A loop of a version that wrote nothing down about its branches: those are its own.
    pub(super) fn adopt_branches(&self) -> Done<()> {
        let list = |folder: &str| {
            let args = ["for-each-ref", "--format=%(refname)", folder];
            self.user.ask(&args)
        };
        let records = list(&format!("refs/descartes/{}/ours/", self.ref_tag))?;
        if !records.is_empty() || self.user.commit_of(&self.merged_ref())?.is_none() {
            return Ok(());
        }
        for name in list(&format!("refs/heads/descartes/{}/", self.ref_tag))?.lines() {
            let branch = name.trim_start_matches("refs/heads/");
            if let Some(tip) = self.user.commit_of(name)? {
                self.take_as_ours(branch, &tip)?;
            }
        }
        Ok(())
    }

    /// Writes down that what is on a branch now is ours: an agent of ours made it.
    pub(super) fn take_as_ours(&self, branch: &str, commit: &str) -> Done<()> {
        self.take(&mut self.put(), branch, commit)
    }

    /// The same for what an agent left on its branch. Commits below it that were not made in its tree
    /// are somebody else's (a checked out branch can be moved by `git update-ref` and `git push`): they
    /// get a name of their own, since the work may land as other commits.
    pub(super) fn take_from_agent(&self, tree: &Repo, branch: &str, tip: &str) -> Done<()> {
        let mut kept: Vec<String> = Vec::new();
        for commit in self.made_elsewhere(tree, branch, tip)? {
            let mut names = kept.iter();
            if names.try_fold(false, |below, kept| {
                Ok::<bool, GitError>(below || self.user.is_ancestor(&commit, kept)?)
            })? {
                continue;
            }
            let name = self.keep_commit(&commit)?;
            self.user.locks.tell(format!(
                "{branch} contained commits that are not from this loop: they are kept on {name}"
            ));
            kept.push(commit);
        }
        self.take_as_ours(branch, tip)
    }

    /// Commits of a branch, the newest first, that are in no ref of the user's and that HEAD of the tree
    /// was never at.
    fn made_elsewhere(&self, tree: &Repo, branch: &str, tip: &str) -> Done<Vec<String>> {
        let merged = self.merged()?;
        let ours = self.put_by_us(branch)?;
        if tip == merged || ours.as_deref() == Some(tip) {
            return Ok(Vec::new());
        }
        let mut args = vec!["rev-list", "--topo-order", tip, "--not", &merged];
        args.extend(ours.as_deref());
        args.extend(["--exclude=descartes/*", "--branches", "--tags", "--remotes"]);
        let new = self.user.ask(&args)?;
        if new.is_empty() {
            return Ok(Vec::new());
        }
        // Without a reflog nobody can tell: then all of them are named.
        let seen = tree.ask(&["log", "--walk-reflogs", "--format=%H", "HEAD"]);
        let seen: HashSet<String> = seen
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect();
        let new = new.lines().filter(|commit| !seen.contains(*commit));
        Ok(new.map(str::to_owned).collect())
    }

    fn take(&self, put: &mut Put, branch: &str, commit: &str) -> Done<()> {
        let old = self.put_before(put, branch)?;
        if old.as_deref() != Some(commit) {
            self.move_own(&[(self.record_of(branch), old.as_deref(), commit)])?;
        }
        put.insert(branch.to_owned(), commit.to_owned());
        Ok(())
    }

    /// Moves refs under `refs/descartes`, each from where it is known to be.
    pub(super) fn move_own(&self, moves: &[(String, Option<&str>, &str)]) -> Done<()> {
        let mut script = String::new();
        for (name, old, new) in moves {
            let zero = "0".repeat(new.len());
            script.push_str(&format!("update {name} {new} {}\n", old.unwrap_or(&zero)));
        }
        self.user.update_refs(&script)
    }

    /// Puts a commit onto a branch of ours. What others put there gets another name first.
    pub(super) fn put_branch(&self, branch: &str, commit: &str) -> Done<()> {
        self.move_branch(&mut self.put(), branch, commit)
    }

    fn move_branch(&self, put: &mut Put, branch: &str, commit: &str) -> Done<()> {
        let name = format!("refs/heads/{branch}");
        let old = self.user.commit_of(&name)?;
        if old.as_deref() == Some(commit) {
            return self.take(put, branch, commit);
        }
        if let Some(old) = &old {
            self.rename(put, branch, old)?;
        }
        let zero = "0".repeat(commit.len());
        let old = old.unwrap_or(zero);
        let known = self.put_before(put, branch)?;
        let known = known.unwrap_or_else(|| "0".repeat(commit.len()));
        let record = self.record_of(branch);
        self.user.update_refs(&format!(
            "update {record} {commit} {known}\nupdate {name} {commit} {old}\n"
        ))?;
        put.insert(branch.to_owned(), commit.to_owned());
        Ok(())
    }

    /// Branches that somebody else deleted while the loop ran are put back: work that is not done
    /// is in no other ref.
    pub(super) fn restore_branches(&self) -> Done<()> {
        let mut put = self.put();
        for (branch, commit) in put.clone() {
            let name = format!("refs/heads/{branch}");
            if self.user.commit_of(&name)?.is_some() || self.user.commit_of(&commit)?.is_none() {
                continue;
            }
            self.move_branch(&mut put, &branch, &commit)?;
            self.user.locks.tell(format!(
                "someone else deleted the branch {branch}: it was restored to where this loop \
                 had left it"
            ));
        }
        Ok(())
    }

    /// Deletes a branch of ours. What others put there gets another name first.
    pub(super) fn drop_branch(&self, branch: &str) -> Done<()> {
        self.drop_branches(&[branch.to_owned()])
    }

    /// Deletes branches of ours, all or none.
    pub(super) fn drop_branches(&self, branches: &[String]) -> Done<()> {
        let mut put = self.put();
        let mut script = String::new();
        for branch in branches {
            let name = format!("refs/heads/{branch}");
            if let Some(tip) = self.user.commit_of(&name)? {
                self.rename(&put, branch, &tip)?;
                script.push_str(&format!("delete {name} {tip}\n"));
            }
            if let Some(known) = self.put_before(&put, branch)? {
                script.push_str(&format!("delete {} {known}\n", self.record_of(branch)));
            }
        }
        if !script.is_empty() {
            self.user.update_refs(&script)?;
        }
        put.retain(|branch, _| !branches.contains(branch));
        Ok(())
    }

    /// Gives a commit that stands on a branch of ours another name, unless we put it there or it
    /// is in a branch of the user's anyway.
    pub(super) fn set_aside(&self, branch: &str, tip: &str) -> Done<()> {
        self.rename(&self.put(), branch, tip)
    }

    fn rename(&self, put: &Put, branch: &str, tip: &str) -> Done<()> {
        if self.put_before(put, branch)?.as_deref() == Some(tip) || self.is_elsewhere(tip)? {
            return Ok(());
        }
        let kept = self.keep_commit(tip)?;
        self.user.locks.tell(format!(
            "{branch} contained commits that are not from this loop: they are kept on {kept}"
        ));
        Ok(())
    }

    /// Gives a commit a name under which a person finds it.
    pub(super) fn keep_commit(&self, commit: &str) -> Done<String> {
        let short = commit.get(..12).unwrap_or(commit);
        let mut folder = KEPT.to_owned();
        for n in 2.. {
            // A branch of the user's that is called so leaves no room under its name.
            let whole = format!("refs/heads/{folder}");
            let inside = format!("{whole}/{}", self.ref_tag);
            if self.user.commit_of(&whole)?.is_none() && self.user.commit_of(&inside)?.is_none() {
                break;
            }
            folder = format!("{KEPT}-{n}");
        }
        let kept = format!("{folder}/{}/{short}", self.ref_tag);
        let name = format!("refs/heads/{kept}");
        self.user.quiet(&["update-ref", &name, commit])?;
        Ok(kept)
    }

    /// Whether a commit is in a branch or tag that is not of ours.
    pub(super) fn is_elsewhere(&self, commit: &str) -> Done<bool> {
        let contains = format!("--contains={commit}");
        let refs = self.user.ask(&[
            "for-each-ref",
            "--format=%(refname)",
            &contains,
            "refs/heads",
            "refs/remotes",
            "refs/tags",
        ])?;
        Ok(refs
            .lines()
            .any(|name| !name.starts_with("refs/heads/descartes/")))
    }

    /// Whether a commit is in any ref at all.
    pub(super) fn is_in_a_ref(&self, commit: &str) -> Done<bool> {
        let contains = format!("--contains={commit}");
        let refs = self
            .user
            .ask(&["for-each-ref", "--count=1", "--format=x", &contains])?;
        Ok(!refs.is_empty())
    }

    /// What was merged so far; at first, the user's commit.
    pub(super) fn merged(&self) -> Done<String> {
        let mut known = self.known();
        let found = self.user.commit_of(&self.merged_ref())?;
        if let Some(known) = known.as_ref()
            && found.as_ref() != Some(known)
        {
            // An agent has the same repository in its hands.
            if let Some(found) = &found
                && !self.is_elsewhere(found)?
            {
                let kept = self.keep_commit(found)?;
                self.user.locks.tell(format!(
                    "someone else moved {}: it was reset, and what was there is kept on {kept}",
                    self.merged_ref()
                ));
            }
            self.move_own(&[(self.merged_ref(), found.as_deref(), known)])?;
            return Ok(known.clone());
        }
        if let Some(commit) = found {
            *known = Some(commit.clone());
            self.remember_merged(&commit);
            return Ok(commit);
        }
        let head = match self.target_commit()? {
            Some(head) => head,
            None => self.user.commit_of("HEAD")?.ok_or("there is no commit")?,
        };
        let waves = self.user.commit_of(&self.waves_ref())?;
        self.move_own(&[
            (self.merged_ref(), None, &head),
            (self.waves_ref(), waves.as_deref(), &head),
        ])?;
        *known = Some(head.clone());
        self.remember_merged(&head);
        self.stands_on(&head);
        Ok(head)
    }

    /// The last commit of a wave, or what the loop began from.
    pub(super) fn waves(&self) -> Done<String> {
        let merged = self.merged()?;
        Ok(self.user.commit_of(&self.waves_ref())?.unwrap_or(merged))
    }

    /// Something more was merged and proven.
    pub(super) fn set_merged(&self, old: &str, new: &str) -> Done<()> {
        // Held over both: who looks in between would take the move for an agent's.
        let mut known = self.known();
        self.move_own(&[(self.merged_ref(), Some(old), new)])?;
        self.remember_merged(new);
        *known = Some(new.to_owned());
        Ok(())
    }

    /// The same, where it is also the last commit of a wave.
    pub(super) fn set_waves(&self, new: &str) -> Done<()> {
        let merged = self.merged()?;
        let waves = self.user.commit_of(&self.waves_ref())?;
        let mut known = self.known();
        self.move_own(&[
            (self.merged_ref(), Some(&merged), new),
            (self.waves_ref(), waves.as_deref(), new),
        ])?;
        self.remember_merged(new);
        *known = Some(new.to_owned());
        Ok(())
    }

    /// The same, once commits that the user made since our last landing are taken up.
    pub(super) fn caught_up(&self) -> Done<String> {
        let merged = self.merged()?;
        let Some(head) = self.target_commit()? else {
            return Ok(merged);
        };
        if head == merged {
            self.stands_on(&head);
            return Ok(merged);
        }
        // Where nothing of ours waits, commits that the user took back are not built upon either.
        let onwards = self.user.is_ancestor(&merged, &head)?;
        if onwards || self.all_has_landed(&merged) {
            if !onwards {
                self.note_taken_back();
            }
            self.set_waves(&head)?;
            self.stands_on(&head);
            return Ok(head);
        }
        Ok(merged)
    }

    /// Forgets what was merged: all of it is in the user's branch.
    pub(super) fn forget_merged(&self) {
        let mut known = self.known();
        for name in [self.merged_ref(), self.waves_ref()] {
            if let Ok(Some(commit)) = self.user.commit_of(&name) {
                self.user.tidy(&["update-ref", "-d", &name, &commit]);
            }
        }
        *known = None;
    }
}
