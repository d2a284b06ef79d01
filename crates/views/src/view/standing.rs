//! Where a loop stands, in the words that people use; and how many of its iterations came to nothing.

use super::{Life, Status};
use descartes_kernel::outcome::IterativeExitReason as Reason;
use descartes_kernel::state::{LoopState, Phase};
use descartes_text::units::plural;

/// What people call the state of a loop: one table for every view.
pub fn people_state(state: &LoopState, life: Life) -> &'static str {
    match Status::of(state, life) {
        Status::Ready | Status::Running | Status::Judging => "Running",
        Status::Waiting { .. } => "Waiting",
        Status::Paused => "Paused",
        Status::Interrupted => "Interrupted",
        Status::Ended { reason } => ended(&reason, state.is_proven()),
    }
}

fn ended(reason: &Reason, is_proven: bool) -> &'static str {
    match reason {
        Reason::Running => "Running",
        Reason::CompletionPromiseDetected | Reason::ProcessSuccess | Reason::GatesPassed => {
            match is_proven {
                true => "Done",
                false => "Done, unproven",
            }
        }
        Reason::MaxIterationsReached => "Stopped (iteration limit)",
        Reason::BudgetExhausted { .. } => "Stopped (budget)",
        Reason::Stalled { .. } => "Stopped (no progress)",
        Reason::AgentBlocked { .. } => "Stopped (blocked by the agent)",
        Reason::AgentFailed { .. } => "Stopped (agent failed)",
        Reason::TasksBlocked {
            tasks,
            unlanded: Some(_),
        } if tasks.is_empty() => "Stopped (work not landed)",
        Reason::TasksBlocked { .. } => "Stopped (tasks blocked)",
        Reason::UserCancelled => "Cancelled",
        Reason::Error { .. } => "Failed",
    }
}

/// Iterations that are done, and those that died with their host: these count against the limit, but nothing came
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub done: u32,
    pub lost: u32,
}

impl Lost {
    /// `3 done, 1 lost`.
    pub fn describe(self) -> String {
        format!("{} done, {} lost", self.done, self.lost)
    }

    /// For the first line of a loop that is taken up: `3 iterations done before, 1 lost`.
    pub fn before(self) -> String {
        let done = plural(u64::from(self.done), "iteration");
        format!("{done} done before, {} lost", self.lost)
    }
}

/// The lost iterations of a loop, that included which nobody has closed yet; `None` where there are none.
pub fn lost(state: &LoopState, life: Life) -> Option<Lost> {
    let is_open = life == Life::Gone && matches!(state.phase, Phase::Running(_));
    let lost = state.lost + u32::from(is_open);
    (lost > 0).then(|| Lost {
        done: state.iterations.saturating_sub(state.lost),
        lost,
    })
}
