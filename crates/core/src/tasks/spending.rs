//! What all agents of a task loop spend together, while they work.

use std::time::Duration;

use descartes_kernel::budget::{self, Reached};
use descartes_kernel::fact;
use descartes_kernel::state::Spent;
use descartes_plans::graph::TaskId;

use super::runner::Runner;
use crate::host::HostError;

impl Runner<'_> {
    /// Counts the time up to now. To be called whenever an agent starts or ends, before it is
    /// entered or taken out.
    pub(super) fn count_time(&mut self) {
        let (now, busy) = (self.d.mono(), self.is_busy());
        self.at_work.count(now, busy);
    }

    /// Whether an agent is at work; its place may still be made ready.
    fn is_busy(&self) -> bool {
        self.live.values().any(|live| live.opened)
    }

    /// The time that is in no record yet, to be put into one.
    pub(super) fn take_time(&mut self) -> u64 {
        self.count_time();
        let ms = self.at_work.counted.as_millis();
        let whole = Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX));
        self.at_work.counted -= whole;
        u64::try_from(ms).unwrap_or(u64::MAX)
    }

    /// What was spent, with what the agents at work have told and the time they have used.
    pub(super) fn spent_now(&self) -> Spent {
        let mut at_work = self.at_work;
        at_work.count(self.d.mono(), self.is_busy());
        let live = self.live.values().map(|live| &live.spent);
        let told = budget::with_live(&self.d.state.spent, live);
        budget::with_time(&told, at_work.counted)
    }

    /// A budget of the whole that is used up.
    pub(super) fn exhausted(&self) -> Option<Reached> {
        budget::reached(&self.d.state.config, &self.spent_now())
    }

    /// Whether the time is used up, with some in which no agent was at work: that ends the loop.
    pub(super) fn is_time_up(&mut self, more: Duration) -> Option<Reached> {
        let state = (!self.early.is_decided()).then_some(&self.d.state)?;
        let spent = budget::with_time(&state.spent, more);
        let reached = budget::time_reached(&state.config, &spent)?;
        self.early.time_is_up(reached);
        Some(reached)
    }

    /// The run of a piece of work has told what it spent so far.
    pub(super) fn spent_by(&mut self, serial: u64, spent: Spent) {
        let Some(live) = self.live.get_mut(&serial) else {
            return;
        };
        live.spent = spent;
        if let Some(reached) = self.exhausted() {
            self.inputs.push_back(reached.into());
        }
    }

    /// Spending of a run that died with its host, and that nobody has heard of.
    pub(super) fn count_unheard(&mut self, task: &TaskId, spent: Spent) -> Result<(), HostError> {
        let decided = fact::task_spent(task.clone(), spent, self.config.parallel);
        self.d.append_all(decided)?;
        if let Some(reached) = self.exhausted() {
            self.inputs.push_back(reached.into());
        }
        Ok(())
    }
}
