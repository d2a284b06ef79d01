//! Where work goes: the branch of the loop's beginning, and the commit of it that the work is
//! built on.
//!
//! Both are written into the journal, so that a later host goes by them and not by what happens
//! to be checked out. A person may take commits back while a loop runs (`commit --amend`,
//! `reset`, `rebase`): the work's own changes are then told from those by the commit that it was
//! built on, since git's merge base lies before both.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use descartes_kernel::tasks::{WayBack, WorkBase, other_branch, was_renamed_from};

use super::integration::Theirs;
use super::{Done, Trees};

/// So many commits are remembered.
const REMEMBERED: usize = 256;

/// Commits that work may be built on.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier {
    /// What was merged, one after the other.
    merged: Vec<String>,
    /// Commits of the user's branch that this was built on, one after the other.
    users: Vec<String>,
    /// Whether the user took some of those back.
    taken_back: bool,
}

fn push(list: &mut Vec<String>, commit: &str) {
    if list.last().map(String::as_str) != Some(commit) {
        list.push(commit.to_owned());
    }
    let over = list.len().saturating_sub(REMEMBERED);
    list.drain(..over);
}

impl Trees {
    /// The branch that work lands on; none where none was checked out.
    pub(super) fn landing_branch(&self) -> Option<String> {
        let branch = self.branch.lock();
        branch.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_landing_branch(&self, branch: Option<&str>) {
        *self.branch.lock().unwrap_or_else(PoisonError::into_inner) = branch.map(str::to_owned);
    }

    fn base_commit(&self) -> MutexGuard<'_, Option<String>> {
        self.base.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn earlier(&self) -> MutexGuard<'_, Earlier> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was merged is built on this commit of the user's branch.
    pub(super) fn stands_on(&self, commit: &str) {
        *self.base_commit() = Some(commit.to_owned());
        push(&mut self.earlier().users, commit);
    }

    /// This was merged, and tasks may be built on it.
    pub(super) fn remember_merged(&self, commit: &str) {
        push(&mut self.earlier().merged, commit);
    }

    /// What a later host has to know.
    pub(super) fn work_base(&self) -> WorkBase {
        WorkBase {
            target: self.landing_branch(),
            commit: self.base_commit().clone(),
            merged: self.known().clone(),
            ..WorkBase::default()
        }
    }

    /// Takes what an earlier host wrote down.
    pub(super) fn recall_base(&self, base: &WorkBase) {
        self.set_landing_branch(base.target.as_deref());
        if let Some(commit) = &base.commit {
            self.stands_on(commit);
            self.remember_merged(commit);
        }
        // Where both are the same, everything has landed.
        let merged = base.merged.clone().filter(|_| base.merged != base.commit);
        *self.recalled.lock().unwrap_or_else(PoisonError::into_inner) = merged;
    }

    /// Where the ref of what was merged is gone, it is taken from what an earlier host wrote down.
    pub(super) fn recall_merged(&self) -> Done<()> {
        let mut recalled = self.recalled.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.merged_ref();
        let (Some(merged), None) = (recalled.take(), self.user.commit_of(&name)?) else {
            return Ok(());
        };
        let short = merged.get(..12).unwrap_or(&merged);
        if self.user.commit_of(&merged)?.is_none() {
            self.lost.store(true, Ordering::Relaxed);
            self.user.locks.tell(format!(
                "{name} was deleted, and the commit {short} with merged work that had not landed \
                 is gone from the repository: its tasks run again"
            ));
            return Ok(());
        }
        if let Some(head) = self.target_commit()?
            && self.user.is_ancestor(&merged, &head)?
        {
            return Ok(());
        }
        let mut moves = vec![(name.clone(), None, merged.as_str())];
        let base = self.base_commit().clone();
        if let Some(base) = &base
            && self.user.commit_of(&self.waves_ref())?.is_none()
            && self.user.commit_of(base)?.is_some()
        {
            moves.push((self.waves_ref(), None, base.as_str()));
        }
        self.move_own(&moves)?;
        self.user.locks.tell(format!(
            "{name} was deleted while no loop ran: it was restored to {short}, which holds merged \
             work that has not landed yet"
        ));
        Ok(())
    }

    /// Whether merged work is gone; told once.
    pub(super) fn take_lost(&self) -> bool {
        self.lost.swap(false, Ordering::Relaxed)
    }

    /// The commit that the branch is at on which work lands, whatever is checked out; none where
    /// there is no such branch.
    pub(super) fn target_commit(&self) -> Done<Option<String>> {
        match self.landing_branch() {
            Some(branch) => self.user.commit_of(&format!("refs/heads/{branch}")),
            None if self.user.branch()?.is_some() => Ok(None),
            None => self.user.commit_of("HEAD"),
        }
    }

    /// A branch that somebody renamed is the same branch.
    pub(super) fn follow_rename(&self) -> Done<()> {
        let (Some(target), Some(now)) = (self.landing_branch(), self.user.branch()?) else {
            return Ok(());
        };
        if target == now || self.target_commit()?.is_some() {
            return Ok(());
        }
        let name = format!("refs/heads/{now}");
        let log = ["log", "--walk-reflogs", "--format=%gs", &name, "--"];
        let log = self.user.ask(&log).unwrap_or_default();
        if was_renamed_from(&target, log.lines()) {
            self.set_landing_branch(Some(&now));
            self.user.locks.tell(format!(
                "the branch {target} was renamed to {now}: work lands there"
            ));
        }
        Ok(())
    }

    /// Why work cannot land in the user's checkout as it is now.
    pub(super) fn not_here(&self) -> Done<Option<String>> {
        self.follow_rename()?;
        let (target, now) = (self.landing_branch(), self.user.branch()?);
        let way = match self.target_commit()? {
            Some(_) => WayBack::Checkout,
            None => WayBack::Gone,
        };
        Ok(other_branch(target.as_deref(), now.as_deref(), way))
    }

    /// The commit that the work is built on, where the user's branch does not hold it any more.
    pub(super) fn taken_back(&self, head: &str) -> Done<Option<String>> {
        let base = self.base_commit().clone();
        let Some(base) = base.filter(|base| base != head) else {
            return Ok(None);
        };
        if self.user.commit_of(&base)?.is_none() || self.user.is_ancestor(&base, head)? {
            return Ok(None);
        }
        Ok(Some(base))
    }

    /// From now on tasks may be built on commits that the user took back.
    pub(super) fn note_taken_back(&self) {
        self.earlier().taken_back = true;
    }

    /// Whether everything that was merged is in the user's branch, or was until the user took it
    /// back.
    pub(super) fn all_has_landed(&self, merged: &str) -> bool {
        self.base_commit().as_deref() == Some(merged)
    }

    /// What a piece of work is built on, where it holds commits that the user took back: that
    /// tells the work's own changes.
    pub(super) fn built_on(&self, merged: &str, theirs: &str) -> Done<Option<String>> {
        let earlier = self.earlier().clone();
        if !earlier.taken_back {
            return Ok(None);
        }
        let is_in = |commit: &str, other: &str| -> Done<bool> {
            Ok(commit == other
                || (self.user.commit_of(commit)?.is_some()
                    && self.user.is_ancestor(commit, other)?))
        };
        // The nearest one: what came later may lie before it.
        let mut from: Option<String> = None;
        for commit in earlier.merged {
            let is_behind = match &from {
                Some(from) => is_in(&commit, from)?,
                None => false,
            };
            if !is_behind && is_in(&commit, theirs)? {
                from = Some(commit);
            }
        }
        let Some(from) = from else {
            return Ok(None);
        };
        if is_in(&from, merged)? {
            return Ok(None);
        }
        for commit in earlier.users.iter().rev() {
            if is_in(commit, theirs)? && !is_in(commit, merged)? {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }

    /// Whether a commit holds work that is none: a commit that was merged before. No tree has to be
    /// checked out to see that.
    pub(super) fn holds_already(&self, base: &str, theirs: Theirs<'_>) -> Done<bool> {
        if theirs.from.is_some() {
            return Ok(false);
        }
        let was_merged = || {
            self.earlier()
                .merged
                .iter()
                .any(|commit| commit == theirs.commit)
        };
        Ok(
            theirs.commit == base
                || (was_merged() && self.user.is_ancestor(theirs.commit, base)?),
        )
    }

    /// A commit that holds the changes from one commit to another, and has no other history.
    pub(super) fn changes_alone(&self, from: &str, to: &str) -> Done<String> {
        let tree = self.user.tree_of(to)?;
        self.user.commit_tree(&tree, from, "changes alone")
    }
}
