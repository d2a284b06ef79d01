//! Attempts begin once their tasks are claimed.

use descartes_kernel::sched::{Attempt, AttemptEnd, Input};
use descartes_plans::graph::TaskStatus;

use super::asking::Write;
use super::launch;
use super::runner::Runner;
use super::runner_state::HeldStart;
use crate::host::HostError;

impl Runner<'_> {
    /// Starts attempts whose tasks have all been claimed, or were not to be had.
    pub(super) fn start_held(&mut self) -> Result<(), HostError> {
        let claims = &self.questions.claims;
        let is_ready = |held: &mut HeldStart| {
            let mut tasks = held.tasks.iter();
            !held.looks_up && !tasks.any(|attempt| claims.contains(&attempt.task))
        };
        let ready: Vec<HeldStart> = self.questions.held.extract_if(.., is_ready).collect();
        for held in ready {
            if !held.stopped && !self.is_ending() {
                self.start_attempt(held.slot, held.tasks)?;
                continue;
            }
            for Attempt { task, .. } in held.tasks {
                if !self.refused.remove(&task) {
                    // It was to be ours: nobody works on it now.
                    self.claimed.remove(&task);
                    self.write(&task, Write::Status(TaskStatus::Pending))?;
                    let found = TaskStatus::Pending;
                    self.inputs.push_back(Input::ClaimRefused { task, found });
                }
            }
        }
        Ok(())
    }

    /// Starts the attempts of tasks that are ours.
    pub(super) fn start_attempt(
        &mut self,
        slot: u32,
        tasks: Vec<Attempt>,
    ) -> Result<(), HostError> {
        let refused = &mut self.refused;
        let tasks: Vec<_> = tasks
            .into_iter()
            .filter(|attempt| !refused.remove(&attempt.task))
            .collect();
        let tasks = self.without_refused_commands(tasks);
        if tasks.is_empty() {
            return Ok(());
        }
        let unknown = launch::not_looked_up(self, &tasks);
        if unknown.is_empty() {
            return launch::attempt(self, slot, &tasks);
        }
        self.questions.held.push(HeldStart {
            slot,
            tasks,
            looks_up: true,
            stopped: false,
        });
        launch::look_up(self, slot, unknown)
    }

    /// What the work before an attempt has delivered is known.
    pub(super) fn looked_up(
        &mut self,
        slot: u32,
        words: Vec<(String, Option<String>)>,
    ) -> Result<(), HostError> {
        self.delivered.extend(words);
        let held = self.questions.held.iter_mut();
        held.filter(|held| held.slot == slot)
            .for_each(|held| held.looks_up = false);
        self.start_held()
    }

    /// Tasks that may be started; one that was added while the loop ran, with commands that nobody has
    /// agreed to run, waits for a person.
    fn without_refused_commands(&mut self, tasks: Vec<Attempt>) -> Vec<Attempt> {
        let (refused, tasks): (Vec<_>, Vec<_>) = tasks
            .into_iter()
            .partition(|attempt| self.orders.refused(&attempt.task).is_some());
        for Attempt { task, .. } in refused {
            let commands = self.orders.refused(&task).unwrap_or_default().join(", ");
            let message = format!(
                "it was added while the loop was running, with commands of its own ({commands}): \
                 a person can start it with: descartes loop resume --retry-blocked"
            );
            let end = AttemptEnd::AtLimit { message };
            self.inputs.push_back(Input::Finished { task, end });
        }
        tasks
    }
}
