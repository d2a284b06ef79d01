//! Worktrees as a place to work.

use std::sync::PoisonError;
use std::time::Duration;

use descartes_kernel::sched::{CommitEnd, MergeEnd};
use descartes_proc::Ending;

use super::Trees;
use crate::tasks::locks::{HURRY, Locks};
use crate::tasks::place::{Gates, MergeDone, Proven, Ready, Wave, WaveDone, Work, Workplace};

/// How a git under way is ended when somebody wants the end.
const END: Ending = Ending::Ask {
    grace: Duration::from_secs(5),
};

/// Files of a task that are told by name to those that depend on it.
const TOLD_FILES: usize = 20;

impl Workplace for Trees {
    fn locks(&self) -> Option<&Locks> {
        Some(&self.user.locks)
    }

    fn begin(&self) -> Result<(), String> {
        self.user.locks.look_around();
        for lock in self.user.git_paths(&["packed-refs.lock"])? {
            // It keeps little from being done, but makes every git wait: better said at once.
            self.user.locks.pass_within(&lock, HURRY);
        }
        // A git that outlived an earlier host fills or empties one of our trees. One that stays is
        // met again where its lock is in the way.
        self.user.locks.await_gits(&self.folder);
        self.make_room()?;
        // Refs of a loop that ended long ago do not hold this one back.
        self.caught_up().map(drop)
    }

    fn prepare(&self, slot: u32, work: &Work) -> Result<Ready, String> {
        self.ready(slot, work)
    }

    fn finish(&self, slot: u32, work: &Work, proven: Proven) -> Result<(), String> {
        self.keep(slot, work, proven)
    }

    fn outside(&self, work: &Work, files: &[String]) -> Result<Vec<String>, String> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged()?);
        let inside: Vec<String> = files
            .iter()
            .map(|file| format!(":(exclude){file}"))
            .collect();
        let mut args = vec!["diff", "--name-only", &range, "--", ":/"];
        args.extend(inside.iter().map(String::as_str));
        // Where the loop works in a folder of the repository, the patterns begin there.
        let here = self.user.beside(&self.user.dir.join(&self.prefix));
        Ok(here.ask(&args)?.lines().map(str::to_owned).collect())
    }

    fn delivered(&self, work: &Work) -> Option<String> {
        let theirs = format!("refs/heads/{}", self.branch_of(work));
        let range = format!("{}...{theirs}", self.merged().ok()?);
        self.user.commit_of(&theirs).ok()??;
        let out = self.user.ask(&["diff", "--name-only", &range]).ok()?;
        let files: Vec<&str> = out.lines().collect();
        let named = files.iter().take(TOLD_FILES).copied();
        let named: Vec<&str> = named.collect();
        let more = files.len() - named.len();
        match (files.is_empty(), more) {
            (true, _) => None,
            (_, 0) => Some(format!("changed {}", named.join(", "))),
            _ => Some(format!("changed {} and {more} more", named.join(", "))),
        }
    }

    fn merge(&self, work: &Work, gates: Gates<'_>) -> MergeDone {
        let end = match self.bring_together(work, gates) {
            Ok(end) => end,
            Err(message) => MergeEnd::Failed { message },
        };
        let mut landing = None;
        if end == MergeEnd::Merged && !self.barrier {
            landing = match self.land(&work.title, gates) {
                Ok((_, landing)) => landing,
                Err(why) => self.merged().and_then(|m| self.wait_to_land(&m, &why)).ok(),
            };
        }
        MergeDone { end, landing }
    }

    fn gate_merged(&self, gates: Gates<'_>) -> Result<Result<(), String>, String> {
        self.gate_integration(gates)
    }

    fn commit_wave(&self, wave: &Wave, gates: Gates<'_>) -> WaveDone {
        match self.close_wave(wave, gates) {
            Ok((commit, landing)) => WaveDone {
                end: CommitEnd::Committed { commit },
                landing,
            },
            Err(message) => WaveDone {
                end: CommitEnd::Failed { message },
                landing: None,
            },
        }
    }

    fn stop(&self) {
        self.user.locks.hurry();
        self.user.end_calls(END);
        let mut setups = self.setups.lock().unwrap_or_else(PoisonError::into_inner);
        setups.drain(..).for_each(|setup| setup.stop());
    }

    fn kill(&self) {
        self.stop();
        self.user.end_calls(Ending::Kill);
    }

    fn close(&self, done: &[Work]) -> Option<String> {
        self.user.locks.hurry();
        let merged = self.merged().ok()?;
        let landed = self
            .user
            .commit_of("HEAD")
            .ok()
            .flatten()
            .is_some_and(|head| self.user.is_ancestor(&merged, &head).unwrap_or(false));
        // Slots and branches of finished work; what is not done keeps its branch.
        let slots = fs_err::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        for slot in slots
            .map(|entry| entry.path())
            .filter(|path| path.join(".git").is_file())
        {
            let repo = self.user.beside(&slot);
            if self.rescue(&repo).is_ok() {
                let text = slot.to_string_lossy();
                drop(self.user.quiet(&["worktree", "remove", "--force", &text]));
            }
        }
        let mut waits = None;
        if landed {
            for work in done {
                let branch = self.branch_of(work);
                self.user.tidy(&["branch", "--quiet", "-D", &branch]);
            }
            let ready = format!("refs/heads/{}", self.ready_branch());
            for name in [ready, self.merged_ref(), self.waves_ref()] {
                self.user.tidy(&["update-ref", "-d", &name]);
            }
        } else {
            // What cannot be gathered stays where it is, and is accounted for there.
            waits = self.gather(done).ok().flatten();
        }
        drop(fs_err::remove_dir(&self.folder));
        waits
    }
}
