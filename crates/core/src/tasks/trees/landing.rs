//! Bringing proven work together, and into the user's checkout.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use descartes_kernel::sched::MergeEnd;
use descartes_kernel::tasks::{ByHand, Landing, TaskMarks, git_reason};
use tracing::{debug, info};

use super::integration::{Hooks, Integration, LockPatience, Proof, Squashed, Theirs};
use super::train::Placed;
use super::{Done, GitError, Trees};
use crate::tasks::locks::Passed;
use crate::tasks::place::{Gates, Wave, Work};

/// Time for a lock in the user's checkout to go before work is put aside to land later: somebody
/// may be writing a commit message.
const CHECKOUT: Duration = Duration::from_secs(60);

/// Waits between landings that found the user's branch moved.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// After so many it is said.
const SAID_AFTER: u32 = 4;

/// What came of a landing: the commit that the user's branch is at, where it moved, and where the
/// work is, where there was any.
pub(super) type Landed = (Option<String>, Option<Landing>);

/// Why work could not be put onto the user's commit.
enum Stuck {
    Person(String),
    Conflict(String, ByHand),
    Stopped,
}

impl Trees {
    /// Makes room for branches of tasks.
    pub(super) fn move_ready_branch_aside(&self) -> Done<()> {
        let whole = self.whole_branch();
        let name = format!("refs/heads/{whole}");
        let Some(commit) = self.user.commit_of(&name)? else {
            return Ok(());
        };
        let listed = self.user.ask(&["worktree", "list", "--porcelain"])?;
        if listed.lines().any(|line| line == format!("branch {name}")) {
            return Err(GitError::Refused(format!(
                "the branch {whole} is checked out, and git cannot create the task branches next \
                 to it: check out another branch, or rename it: git branch -m {} NAME",
                descartes_text::shell::word(&whole)
            )));
        }
        let is_ours = self.put_by_us(&whole)?.as_deref() == Some(&*commit);
        if is_ours {
            // The one is gone before the other can be, so the commit is named apart meanwhile.
            let apart = format!("refs/descartes/{}/ready", self.ref_tag);
            self.user.quiet(&["update-ref", &apart, &commit])?;
            self.drop_branch(&whole)?;
            self.put_branch(&self.ready_branch(), &commit)?;
            return self
                .user
                .quiet(&["update-ref", "-d", &apart, &commit])
                .map(drop);
        }
        // A person's, or ours with a person's commits on top.
        self.drop_branch(&whole)
    }

    /// Everything that is done waits in one commit: branches of tasks that are in it go, and where
    /// none is left it gets the name that people look for.
    pub(super) fn collect_finished_branches(&self, done: &[Work]) -> Done<Option<String>> {
        let branch = self.ready_branch();
        let ready = format!("refs/heads/{branch}");
        let Some(commit) = self.put_by_us(&branch)? else {
            return Ok(None);
        };
        for work in done {
            self.drop_branch(&self.branch_of(work))?;
        }
        let folder = format!("refs/heads/{}/", self.whole_branch());
        let left = self
            .user
            .ask(&["for-each-ref", "--format=%(refname)", &folder])?;
        if left != ready {
            return Ok(None);
        }
        let apart = format!("refs/descartes/{}/ready", self.ref_tag);
        self.user.quiet(&["update-ref", &apart, &commit])?;
        self.drop_branch(&branch)?;
        self.put_branch(&self.whole_branch(), &commit)?;
        self.user.quiet(&["update-ref", "-d", &apart, &commit])?;
        Ok(Some(self.whole_branch()))
    }

    pub(super) fn bring_together(&self, work: &Work, gates: Gates<'_>) -> Done<MergeEnd> {
        let merged = self.caught_up()?;
        let place = self.integration()?;
        let commit = match self.place_work(&place, &merged, &merged, work)? {
            Placed::Commit(commit) => commit,
            Placed::Not(end) => return Ok(end),
        };
        let slot = self.slot_of(work);
        let tasks = [work.id.clone()];
        match self.prove(&place, &commit, gates, &tasks, slot.as_deref())? {
            Proof::Green => {}
            Proof::Red(tail) => return Ok(MergeEnd::Red { tail }),
            Proof::Stopped => return Ok(MergeEnd::Interrupted),
        }
        // Its task may have left the file meanwhile.
        if gates.is_stopped() {
            return Ok(MergeEnd::Interrupted);
        }
        if commit != merged {
            self.set_merged(&merged, &commit)?;
        }
        Ok(MergeEnd::Merged)
    }

    /// One commit for the wave on top of the last one, then into the user's checkout.
    pub(super) fn close_wave(
        &self,
        wave: &Wave,
        gates: Gates<'_>,
        marks: &TaskMarks,
    ) -> Done<Landed> {
        let message = wave.message(&self.tag);
        let (merged, last) = (self.merged()?, self.waves()?);
        // Where statuses were committed on top, the wave is the commit below them.
        let (merged_wave, last_wave) = (self.below_statuses(&merged)?, self.below_statuses(&last)?);
        let new = self.user.tree_of(&merged)? != self.user.tree_of(&last)?;
        let commit = if self.squash && new {
            let tree = self.user.tree_of(&merged)?;
            Some(self.user.commit_tree(&tree, &last, &message)?)
        } else if self.marks_waves && self.user.subject_of(&merged_wave)? != wave.subject(&self.tag)
        {
            let tree = self.user.tree_of(&merged)?;
            Some(self.user.commit_tree(&tree, &merged, &message)?)
        } else if self.user.subject_of(&last_wave)? == message {
            // Committed before a host died.
            let landed = self.land_or_wait(&message, gates, marks, LockPatience::UntilLater);
            return Ok((Some(last_wave), landed));
        } else {
            (merged != last).then_some(merged)
        };
        if let Some(commit) = &commit {
            self.set_waves(commit)?;
        }
        // The wave is committed: what keeps it from landing is told, and it lands later.
        let later = LockPatience::UntilLater;
        let (landed, landing) = match self.land(&message, gates, marks, later) {
            Ok(landed) => landed,
            Err(error) => {
                error.log("landing");
                self.not_landed(&self.merged()?, &error, &error.to_string())?
            }
        };
        let commit = commit.map(|commit| landed.unwrap_or(commit));
        Ok((commit, landing))
    }

    /// Brings what was merged into the user's checkout: fast-forward, or not at all. Again and
    /// again while the user's branch moves; else it waits for a person.
    pub(super) fn land(
        &self,
        message: &str,
        gates: Gates<'_>,
        marks: &TaskMarks,
        patience: LockPatience,
    ) -> Done<Landed> {
        self.unstage_statuses()?;
        let merged = self.merged()?;
        let (mut tries, mut wait) = (0, FIRST_WAIT);
        loop {
            let head = self.target_commit()?;
            let not_here = self.not_here()?;
            if let Some(head) = &head
                && (*head == merged || self.user.is_ancestor(&merged, head)?)
            {
                self.stands_on(&merged);
                let statuses = match not_here {
                    None => self.land_statuses(head, marks)?,
                    Some(_) => None,
                };
                return self.has_landed(&merged, tries > 0, statuses);
            }
            if let Some(why) = not_here {
                return self.wait_to_land(&merged, &why);
            }
            let head = head.ok_or("there is no commit")?;
            let commit = match self.on_top_of(&head, &merged, message, gates)? {
                Ok(commit) => commit,
                Err(Stuck::Person(why)) => return self.wait_to_land(&merged, &why),
                Err(Stuck::Conflict(why, by_hand)) => {
                    return self.wait_for_hand(&merged, &why, Some(by_hand));
                }
                Err(Stuck::Stopped) => {
                    let why = "the loop was stopped before the work landed";
                    return self.wait_to_land(&merged, why);
                }
            };
            if let Err(why) = self.await_checkout(patience)? {
                return self.wait_to_land(&merged, &why);
            }
            let statuses = self.statuses_on(&head, &commit, marks)?;
            let last = statuses
                .as_ref()
                .map_or(&commit, |statuses| &statuses.commit);
            if let Some(statuses) = &statuses {
                self.stage_statuses(statuses)?;
            }
            let moved = self.fast_forward(&head, last);
            let unstaged = self.unstage_statuses();
            // What kept it from landing is the cause of what else fails.
            let Err(error) = moved? else {
                unstaged?;
                self.set_waves(last)?;
                self.stands_on(last);
                let statuses = statuses.map(|statuses| statuses.commit);
                return self.has_landed(&commit, true, statuses);
            };
            if self.user.commit_of("HEAD")?.as_ref() == Some(&head) {
                return self.not_landed(&merged, &error, &git_reason(&error.to_string()));
            }
            unstaged?;
            tries += 1;
            debug!(tries, "the user's branch moved while work was landing");
            if tries == SAID_AFTER {
                self.user.locks.tell(
                    "your branch moved while the gates ran: merging and running the gates again \
                     until the work lands"
                        .to_owned(),
                );
            }
            if !self.pause(wait) {
                let why = "your branch moved, and the loop was stopped before the work landed";
                return self.wait_to_land(&merged, why);
            }
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Nothing waits any more.
    fn has_landed(&self, commit: &str, moved: bool, statuses: Option<String>) -> Done<Landed> {
        let waited = self
            .user
            .commit_of(&format!("refs/heads/{}", self.ready_branch()))?;
        if waited.is_some() {
            self.drop_branch(&self.ready_branch())?;
        }
        let is_new = moved || waited.is_some() || statuses.is_some();
        if is_new {
            info!(commit, "work has landed");
        }
        let landing = is_new.then(|| Landing::Landed {
            commit: commit.to_owned(),
            statuses,
        });
        Ok((moved.then(|| commit.to_owned()), landing))
    }

    /// What was merged, on top of the user's commit and proven there.
    fn on_top_of(
        &self,
        head: &str,
        merged: &str,
        message: &str,
        gates: Gates<'_>,
    ) -> Done<Result<String, Stuck>> {
        let place = self.integration()?;
        let taken_back = self.taken_back(head)?;
        let onward = taken_back.is_none() && self.user.is_ancestor(head, merged)?;
        let theirs = Theirs {
            commit: merged,
            from: taken_back.as_deref(),
        };
        let commit = match onward {
            true => merged.to_owned(),
            false => match self.redo_on(&place, head, theirs, message)? {
                Ok(commit) => commit,
                Err(stuck) => return Ok(Err(stuck)),
            },
        };
        if commit == head {
            return Ok(Ok(commit));
        }
        match self.prove(&place, &commit, gates, &[], None)? {
            Proof::Green => Ok(Ok(commit)),
            Proof::Stopped => Ok(Err(Stuck::Stopped)),
            Proof::Red(tail) => {
                let first = tail.lines().next().unwrap_or("").to_owned();
                let why = match onward {
                    true => format!("a gate fails: {first}"),
                    false => format!("with commits made in the meantime a gate fails: {first}"),
                };
                Ok(Err(Stuck::Person(why)))
            }
        }
    }

    /// The user's branch moved: the merge is done again on top of it.
    fn redo_on(
        &self,
        place: &Integration,
        head: &str,
        merged: Theirs<'_>,
        message: &str,
    ) -> Done<Result<String, Stuck>> {
        if let Some(from) = merged.from {
            self.note_taken_back();
            self.user.locks.tell(format!(
                "your branch no longer contains {}, which the work was based on: only the work's \
                 own changes are applied to it",
                from.get(..12).unwrap_or(from)
            ));
        }
        match place.squash(self, head, merged, message, Hooks::Skip)? {
            Squashed::Commit(commit) => Ok(Ok(commit)),
            Squashed::Nothing => Ok(Ok(head.to_owned())),
            Squashed::Refused(error) => Err(error),
            Squashed::Conflict { message, files } => {
                let where_ = match files.is_empty() {
                    true => git_reason(&message),
                    false => format!("in {}", files.join(", ")),
                };
                let by_hand = match merged.from {
                    None => ByHand::Merge,
                    Some(from) => ByHand::CherryPick {
                        after: from.to_owned(),
                    },
                };
                let why = format!("it conflicts with commits made in the meantime: {where_}");
                Ok(Err(Stuck::Conflict(why, by_hand)))
            }
        }
    }

    /// Locks in the user's checkout are looked for before anything is changed there: a merge that
    /// meets one on the branch has changed the files already. Work that cannot land now lands
    /// with the next that can.
    fn await_checkout(&self, patience: LockPatience) -> Done<Result<(), String>> {
        for lock in self.checkout_locks()? {
            let passed = match patience {
                LockPatience::UntilLater => self.user.locks.pass_within(&lock, CHECKOUT),
                LockPatience::UntilGone => self.user.locks.pass(&lock),
            };
            if let Passed::Stays(why) = passed {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    /// What an earlier loop under this name proved and could not land. Its tasks may be marked as done, so
    /// this loop is only done when that has landed, too.
    pub(super) fn left_waiting(&self) -> Done<Option<Landing>> {
        let merged = self.merged()?;
        let Some(head) = self.target_commit()? else {
            return Ok(None);
        };
        if self.user.is_ancestor(&merged, &head)? {
            return Ok(None);
        }
        let (_, landing) = self.wait_to_land(&merged, "an earlier loop left it")?;
        self.user.locks.tell(format!(
            "work that an earlier loop proved has not landed yet: it lands with this loop's, and waits \
             on {} until then",
            self.ready_branch()
        ));
        Ok(landing)
    }

    /// The locks that a fast-forward of the user's checkout takes.
    pub(super) fn checkout_locks(&self) -> Done<Vec<PathBuf>> {
        let branch = self.landing_branch();
        let branch = branch.map(|branch| format!("refs/heads/{branch}.lock"));
        let names = ["index.lock", "HEAD.lock"].into_iter();
        let names: Vec<&str> = names.chain(branch.as_deref()).collect();
        self.user.git_paths(&names)
    }

    /// Takes away locks that a fast-forward which was killed left in the user's way.
    pub(super) fn take_from_killed(&self, locks: &[PathBuf], since: SystemTime) {
        for lock in locks {
            self.user
                .locks
                .take_from_killed(lock, since, &self.user.dir);
        }
    }

    pub(super) fn wait_to_land(&self, commit: &str, why: &str) -> Done<Landed> {
        self.wait_for_hand(commit, why, None)
    }

    fn wait_for_hand(&self, commit: &str, why: &str, by_hand: Option<ByHand>) -> Done<Landed> {
        let branch = self.ready_branch();
        self.put_branch(&branch, commit)?;
        Ok(waiting(commit, branch, why, by_hand, false))
    }

    /// Work waits, since an error kept it from landing. On a full disk there may be no room for the
    /// branch either: the ref of what was merged has the work.
    pub(super) fn not_landed(&self, commit: &str, error: &GitError, why: &str) -> Done<Landed> {
        if !error.is_disk_full(self.free_bytes()) {
            return self.wait_to_land(commit, why);
        }
        let branch = self.ready_branch();
        if let Err(error) = self.put_branch(&branch, commit) {
            error.log("naming work that waits");
        }
        let why = match error {
            GitError::DiskFull(_) => why.to_owned(),
            _ => GitError::DiskFull(why.to_owned()).to_string(),
        };
        Ok(waiting(commit, branch, &why, None, true))
    }
}

fn waiting(
    commit: &str,
    branch: String,
    why: &str,
    by_hand: Option<ByHand>,
    full_disk: bool,
) -> Landed {
    info!(commit, branch, full_disk, "work waits to land");
    let landing = Landing::Ready {
        commit: commit.to_owned(),
        branch,
        why: why.to_owned(),
        by_hand,
        full_disk,
    };
    (None, Some(landing))
}
