//! Merging the work of several tasks at once: each a commit of its own on top of the one before, and
//! the gates on the last of them.

use std::sync::PoisonError;

use descartes_kernel::sched::{MergeEnd, TrainEnd};
use descartes_kernel::tasks::TaskMarks;
use tracing::debug;

use super::integration::{Hooks, Integration, LockPatience, Proof, Squashed, Theirs};
use super::{Done, GitError, Trees};
use crate::tasks::place::{Gates, StackDone, TrainDone, Work};

/// Work of tasks, stacked in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// The merged work below it.
    base: String,
    tasks: Vec<String>,
    /// The commit that each task ends with.
    commits: Vec<String>,
}

/// What came of putting one task's work on top of a commit.
pub(super) enum Placed {
    Commit(String),
    /// It does not fit, or cannot be committed.
    Not(MergeEnd),
}

impl Trees {
    /// Puts a task's work on top of a commit, as one commit of its own.
    pub(super) fn place_work(
        &self,
        place: &Integration,
        merged: &str,
        base: &str,
        work: &Work,
    ) -> Done<Placed> {
        let branch = self.branch_of(work);
        // What the attempt left there: commits that a person made since are not part of it.
        let theirs = match self.put_by_us(&branch)? {
            Some(commit) => Some(commit),
            None => self.user.commit_of(&format!("refs/heads/{branch}"))?,
        };
        let Some(theirs) = theirs else {
            return Err(format!("the branch {branch} is gone").into());
        };
        let from = self.built_on(merged, &theirs)?;
        let theirs = Theirs {
            commit: &theirs,
            from: from.as_deref(),
        };
        Ok(
            match place.squash(self, base, theirs, &work.message(), Hooks::Run)? {
                Squashed::Commit(commit) => Placed::Commit(commit),
                // Merged before a host died, or a task that changed nothing.
                Squashed::Nothing => Placed::Commit(base.to_owned()),
                Squashed::Conflict { message, files } => {
                    let tail = match files.is_empty() {
                        true => message,
                        false => format!("{message}\nconflicts in: {}", files.join(", ")),
                    };
                    Placed::Not(MergeEnd::Conflict { tail })
                }
                // Ended with everything else, while a hook was at it.
                Squashed::Refused(error) => Placed::Not(self.failed_merge(&error)),
            },
        )
    }

    pub(super) fn stack_now(&self, works: &[Work]) -> StackDone {
        self.stack(works).unwrap_or_else(|error| {
            let end = self.failed_merge(&error);
            let all = works.iter().map(|work| (work.id.clone(), end.clone()));
            StackDone {
                out: all.collect(),
                held: Vec::new(),
            }
        })
    }

    /// What an error means for a merge: nothing, where everything was stopped.
    pub(super) fn failed_merge(&self, error: &GitError) -> MergeEnd {
        if self.is_stopped() {
            return MergeEnd::Interrupted;
        }
        error.log("merge");
        let message = error.to_string();
        MergeEnd::Failed { message }
    }

    /// Stacks work on top of what was merged. What does not fit onto the merged work itself goes back;
    /// what only does not fit onto other members waits until those are merged or sent back.
    fn stack(&self, works: &[Work]) -> Done<StackDone> {
        let base = self.caught_up()?;
        let place = self.integration()?;
        let mut done = StackDone::default();
        let mut stack = Stack {
            base: base.clone(),
            ..Stack::default()
        };
        for work in works {
            let tip = stack.commits.last().unwrap_or(&base).clone();
            let placed = self.place_work(&place, &base, &tip, work);
            match placed.unwrap_or_else(|error| Placed::Not(self.failed_merge(&error))) {
                Placed::Commit(commit) => {
                    stack.tasks.push(work.id.clone());
                    stack.commits.push(commit);
                }
                Placed::Not(MergeEnd::Conflict { tail }) if tip != base => {
                    match self.place_work(&place, &base, &base, work)? {
                        Placed::Commit(_) => {
                            debug!(task = work.id, "held: conflicts with other work: {tail}");
                            done.held.push(work.id.clone());
                        }
                        Placed::Not(end) => done.out.push((work.id.clone(), end)),
                    }
                }
                Placed::Not(end) => done.out.push((work.id.clone(), end)),
            }
        }
        *self.last_stack() = Some(stack);
        Ok(done)
    }

    fn last_stack(&self) -> std::sync::MutexGuard<'_, Option<Stack>> {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stack of this work: the last one made, or, after the host died, the same again.
    fn stack_of(&self, works: &[Work], merged: &str) -> Done<Result<Stack, TrainEnd>> {
        let tasks = works.iter().map(|work| &work.id);
        let known = self.last_stack().clone().filter(|stack| {
            let below = stack.base == merged || stack.commits.iter().any(|commit| commit == merged);
            below && stack.tasks.iter().eq(tasks)
        });
        if let Some(stack) = known {
            return Ok(Ok(stack));
        }
        let done = self.stack(works)?;
        if self.is_stopped() {
            return Ok(Err(TrainEnd::Interrupted));
        }
        let left = done.out.first().map(|(task, _)| task).or(done.held.first());
        if let Some(task) = left {
            // The user's branch moved meanwhile: each is merged alone.
            let message = format!("the work of task {task} no longer fits onto that of the others");
            return Ok(Err(TrainEnd::Failed { message }));
        }
        Ok(Ok(self.last_stack().clone().unwrap_or_default()))
    }

    /// Runs the gates on the work of the first `members`, and merges it where they are green.
    fn gate_stack(&self, works: &[Work], members: usize, gates: Gates<'_>) -> Done<TrainEnd> {
        let merged = self.caught_up()?;
        let stack = match self.stack_of(works, &merged)? {
            Ok(stack) => stack,
            Err(end) => return Ok(end),
        };
        let Some(commit) = members.checked_sub(1).and_then(|at| stack.commits.get(at)) else {
            return Err("there is no such stack".into());
        };
        let tasks: Vec<String> = stack.tasks[..members].to_vec();
        let slots = works[..members].iter().rev();
        let slot = slots.filter_map(|work| self.slot_of(work)).next();
        let place = self.integration()?;
        match self.prove(&place, commit, gates, &tasks, slot.as_deref())? {
            Proof::Green => {}
            Proof::Red(tail) => {
                let check_of = None;
                return Ok(TrainEnd::Red { tail, check_of });
            }
            Proof::Stopped => return Ok(TrainEnd::Interrupted),
        }
        // A task of it may have left the file meanwhile.
        if gates.is_stopped() {
            return Ok(TrainEnd::Interrupted);
        }
        if *commit != merged && !self.user.is_ancestor(commit, &merged)? {
            self.set_merged(&merged, commit)?;
        }
        Ok(TrainEnd::Green)
    }

    pub(super) fn gate_train_now(
        &self,
        works: &[Work],
        members: usize,
        gates: Gates<'_>,
        marks: &TaskMarks,
    ) -> TrainDone {
        let end = match self.gate_stack(works, members, gates) {
            Ok(end) => end,
            Err(_) if self.is_stopped() => TrainEnd::Interrupted,
            Err(error) => {
                error.log("merge of several tasks");
                let message = error.to_string();
                TrainEnd::Failed { message }
            }
        };
        let is_merged = end == TrainEnd::Green;
        let mut landing = None;
        if is_merged && !self.barrier {
            let message = Work::messages(&works[..members]);
            landing = self.land_or_wait(&message, gates, marks, LockPatience::UntilLater);
        }
        TrainDone {
            end,
            landing,
            proven: self.new_proofs(),
        }
    }
}
