//! Worktrees as a place to work.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use descartes_kernel::sandbox::SandboxConfig;
use descartes_kernel::sched::{CommitEnd, MergeEnd};
use descartes_kernel::tasks::{Landing, ProvenStep, ProvenTree, TaskMarks, WorkBase};
use descartes_proc::Ending;

use super::integration::LockPatience;
use super::{Done, GitError, Trees};
use crate::host::git_of;
use crate::host::slot_objects::SlotObjects;
use crate::tasks::git::Repo;
use crate::tasks::locks::{HURRY, Locks};
use crate::tasks::place::{
    Closed, Finished, Fresh, GateFailure, Gates, LandDone, MergeDone, Proven, Published, Ready,
    StackDone, TrainDone, Wave, WaveDone, Work, WorkDelivery, Workplace,
};

/// How a git under way is ended when somebody wants the end.
const END: Ending = Ending::Ask {
    grace: Duration::from_secs(5),
};

/// Files of a task that are told by name to those that depend on it.
const TOLD_FILES: usize = 20;

/// A preparation that fails is tried so often: gits of agents work on the same repository.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

impl Workplace for Trees {
    fn locks(&self) -> Option<&Locks> {
        Some(&self.user.locks)
    }

    fn land_on(&self, branch: &str) {
        *self.branch.lock().unwrap_or_else(PoisonError::into_inner) = Some(branch.to_owned());
    }

    fn confine_as(&self, sandbox: &SandboxConfig) {
        self.confine_more(sandbox);
    }

    fn begin(&self, fresh: Fresh, slots: u32) -> Done<Option<Landing>> {
        self.follow_rename()?;
        self.keep_name()?;
        self.unlock_cut_short()?;
        self.user.locks.look_around();
        for lock in self.user.git_paths(&["packed-refs.lock"])? {
            // It keeps little from being done, but makes every git wait: better said at once.
            self.user.locks.pass_within(&lock, HURRY);
        }
        // A git that outlived an earlier host fills or empties one of our trees. One that stays is
        // met again where its lock is in the way.
        self.user.locks.await_gits(&self.folder);
        // A host that died has not brought what its confined agents wrote into the repository.
        for objects in SlotObjects::of_repository(&self.settings.root, &self.common_dir()?) {
            objects
                .take_over(&git_of(&self.settings))
                .map_err(GitError::Refused)?;
        }
        self.take_over_moved()?;
        if fresh == Fresh::No && !self.has_control() {
            self.adopt_branches()?;
        }
        if fresh == Fresh::Yes || !self.has_control() {
            self.take_control()?;
        }
        self.note_settings(fresh)?;
        self.unstage_statuses()?;
        if fresh == Fresh::Yes || !self.has_noted_stashes() {
            self.note_stashes()?;
        }
        if slots > 1 {
            self.watch_stashes()?;
        }
        self.move_ready_branch_aside()?;
        self.recall_merged()?;
        // Refs of a loop that ended long ago do not hold this one back.
        self.caught_up()?;
        // All at once, before any agent is at work: git cannot bear a worktree that is half made.
        for slot in 0..slots {
            self.worktree(&self.slot_name(slot))?;
        }
        if slots > 0 {
            // Before any agent is at work.
            let place = self.integration()?;
            self.note_leftovers(&place);
        }
        match fresh {
            Fresh::Yes => self.left_waiting(),
            Fresh::No => Ok(None),
        }
    }

    fn recall(&self, base: &WorkBase, _: &[ProvenStep]) {
        self.recall_base(base);
    }

    fn base(&self) -> Option<WorkBase> {
        Some(self.work_base())
    }

    fn lost_work(&self) -> bool {
        self.take_lost()
    }

    fn remember(&self, proven: &[ProvenTree]) {
        self.proofs().known.extend_from_slice(proven);
    }

    fn prepare(&self, slot: u32, work: &Work) -> Done<Ready> {
        let mut tries = 1;
        // A host that was killed has left them.
        self.remove_pipes(&self.folder.join(self.slot_name(slot)), work);
        loop {
            let made = self.ready(slot, work);
            if let Err(GitError::NotEmptied(why)) = &made {
                // What one task left costs one worktree.
                self.leave_slot(slot, why)?;
            }
            let lost = self.user.locks.stuck().is_some();
            if made.is_ok() || tries >= TRIES || lost || !self.pause(BETWEEN_TRIES * tries) {
                return made;
            }
            tries += 1;
        }
    }

    fn agent_ended(&self, slot: u32, work: &Work) {
        let name = self.slot_name(slot);
        if let Some(pipes) = self.remove_pipes(&self.folder.join(&name), work) {
            let mut removed = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
            removed.insert(name.clone(), pipes);
        }
        if let Err(error) = self.note_work(&self.folder.join(&name)) {
            error.log("looking at what an agent left");
            self.user.locks.tell(format!(
                "task {}: cannot tell the work of its agent from what gates leave: {error}",
                work.id
            ));
        }
    }

    fn finish(&self, slot: u32, work: &Work, proven: Proven) -> Done<Finished> {
        self.slots_of()
            .insert(work.id.clone(), self.folder.join(self.slot_name(slot)));
        let name = self.slot_name(slot);
        let before = {
            let mut removed = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
            removed.remove(&name)
        };
        let pipes = before.or(self.remove_pipes(&self.folder.join(&name), work));
        self.tell_settings();
        let finished = self.keep(slot, work, proven)?;
        // What it left is safe.
        drop(fs_err::remove_file(self.at_work_mark(&name)));
        Ok(match (finished, pipes) {
            (Finished::Safe, Some(pipes)) => Finished::Uncarried(pipes),
            (Finished::Uncarried(more), Some(pipes)) => {
                Finished::Uncarried(format!("{pipes}\n{more}"))
            }
            (finished, None) => finished,
        })
    }

    fn outside(&self, work: &Work, files: &[String]) -> Done<Vec<String>> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged()?);
        let inside: Vec<String> = files
            .iter()
            .map(|file| format!(":(exclude){file}"))
            .collect();
        let mut args = vec!["diff", "--name-only", "-z", &range, "--", ":/"];
        args.extend(inside.iter().map(String::as_str));
        // Where the loop works in a folder of the repository, the patterns begin there.
        let here = self.user.within(&self.user.dir.join(&self.prefix));
        Ok(names_in(&here.ask(&args)?).map(str::to_owned).collect())
    }

    fn delivered(&self, work: &Work) -> Option<String> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged().ok()?);
        self.user.commit_of(&theirs).ok()??;
        let out = self.user.ask(&["diff", "--name-only", "-z", &range]).ok()?;
        let files: Vec<&str> = names_in(&out).collect();
        let named = files.iter().take(TOLD_FILES).copied();
        let named: Vec<&str> = named.collect();
        let more = files.len() - named.len();
        match (files.is_empty(), more) {
            (true, _) => None,
            (_, 0) => Some(format!("changed {}", named.join(", "))),
            _ => Some(format!("changed {} and {more} more", named.join(", "))),
        }
    }

    fn merge(&self, work: &Work, gates: Gates<'_>, marks: &TaskMarks) -> MergeDone {
        let _one = self.integrating();
        let end = match self.bring_together(work, gates) {
            Ok(end) => end,
            Err(error) => self.failed_merge(&error),
        };
        let mut landing = None;
        if end == MergeEnd::Merged && !self.barrier {
            let later = LockPatience::UntilLater;
            landing = self.land_or_wait(&work.message(), gates, marks, later);
        }
        MergeDone {
            end,
            landing,
            proven: self.new_proofs(),
        }
    }

    fn stack(&self, works: &[Work]) -> StackDone {
        let _one = self.integrating();
        self.stack_now(works)
    }

    fn gate_train(
        &self,
        works: &[Work],
        members: usize,
        gates: Gates<'_>,
        marks: &TaskMarks,
    ) -> TrainDone {
        let _one = self.integrating();
        self.gate_train_now(works, members, gates, marks)
    }

    fn gate_merged(&self, gates: Gates<'_>) -> Done<Result<(), GateFailure>> {
        self.gate_integration(gates)
    }

    fn commit_wave(&self, wave: &Wave, gates: Gates<'_>, marks: &TaskMarks) -> WaveDone {
        let _one = self.integrating();
        let (end, landing) = match self.close_wave(wave, gates, marks) {
            Ok((commit, landing)) => (CommitEnd::Committed { commit }, landing),
            Err(error) => {
                error.log("commit of a wave");
                let message = error.to_string();
                (CommitEnd::Failed { message }, None)
            }
        };
        WaveDone {
            end,
            landing,
            proven: self.new_proofs(),
        }
    }

    fn publish(&self, work: &Work, known: Option<&str>, to: Option<&Path>) -> Done<Published> {
        let published = self.tips_for(work)?;
        match to {
            Some(to) => self.bundles_for(work, published, known, to),
            None => Ok(published),
        }
    }

    fn carrier(&self, dir: &Path) -> Done<Repo> {
        self.carrier_at(dir)
    }

    fn import(&self, work: &Work, delivery: &WorkDelivery) -> Done<()> {
        self.take_delivery(work, delivery)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.user.locks.hurry();
        self.user.end_calls(END);
        self.setups.stop();
    }

    fn kill(&self) {
        self.stop();
        self.setups.kill();
        self.user.end_calls(Ending::Kill);
    }

    fn land_rest(&self, gates: Gates<'_>, marks: &TaskMarks) -> LandDone {
        let _one = self.integrating();
        let message = format!("work of {}", self.tag);
        LandDone {
            landing: self.land_or_wait(&message, gates, marks, LockPatience::UntilGone),
            proven: self.new_proofs(),
        }
    }

    fn close(&self, done: &[Work]) -> Closed {
        let _one = self.integrating();
        self.user.locks.hurry();
        let mut closed = Closed::default();
        self.unwatch_stashes();
        let Ok(merged) = self.merged() else {
            closed.kept = self.kept_trees();
            return closed;
        };
        if let Err(message) = self.keep_stashes() {
            let message = format!("could not look for stashes left by agents: {message}");
            self.user.locks.tell(message);
        }
        let target = self.target_commit().ok().flatten();
        let landed =
            target.is_some_and(|head| self.user.is_ancestor(&merged, &head).unwrap_or(false));
        // Slots and branches of finished work; what is not done keeps its branch.
        let trees = self.trees_there().unwrap_or_else(|error| {
            self.user
                .locks
                .tell(format!("worktrees stay where they are: {error}"));
            Vec::new()
        });
        for tree in trees {
            if let Err(message) = self.remove_tree(&tree) {
                self.user.locks.tell(format!(
                    "the worktree {} could not be removed: {message}",
                    tree.display()
                ));
            }
        }
        self.unregister_lost();
        if let Err(message) = self.restore_branches() {
            self.user
                .locks
                .tell(format!("could not look for branches: {message}"));
        }
        if landed {
            let mut branches: Vec<String> = done.iter().map(|work| self.branch_of(work)).collect();
            branches.push(self.ready_branch());
            if self.drop_branches(&branches).is_err() {
                // One that is in use does not hold back the others.
                for branch in &branches {
                    drop(self.drop_branch(branch));
                }
            }
            self.forget_merged();
            self.release_name();
            drop(fs_err::remove_dir_all(self.folder.join("control")));
        } else {
            // What cannot be gathered stays where it is, and is accounted for there.
            closed.waits = self.collect_finished_branches(done).ok().flatten();
        }
        self.forget_conflicts();
        closed.kept = self.kept_trees();
        drop(fs_err::remove_dir(&self.folder));
        closed
    }
}

/// Names that a call lists with a NUL after each, for people: otherwise git writes `ä` as `\303\244`.
fn names_in(listed: &str) -> impl Iterator<Item = &str> {
    listed.split('\0').filter(|name| !name.is_empty())
}
