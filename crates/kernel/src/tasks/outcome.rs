//! How a task loop ends, in the words of any loop.

use super::state::Landing;
use crate::outcome::{IterativeExitReason, Unlanded};
use crate::sched::{AttemptEnd, Ended, Gates, Outcome, StopReason};
use IterativeExitReason as R;

/// Why a task loop ended whose scheduler came to its end. Done is what has landed.
pub fn end_reason(ended: &Ended, gates: Gates, landing: Option<&Landing>) -> R {
    let open = || R::TasksBlocked {
        tasks: ended.account.not_done(),
        unlanded: None,
    };
    let reason = match &ended.outcome {
        Outcome::Complete => complete(gates),
        Outcome::TasksBlocked => open(),
        Outcome::MaxIterations { .. } => R::MaxIterationsReached,
        Outcome::Stopped { why } => match why {
            StopReason::Cancelled => R::UserCancelled,
            StopReason::TaskFailed { .. } => open(),
            StopReason::CommitFailed { wave, message } => R::Error {
                message: format!("wave {wave} could not be committed: {message}"),
            },
            StopReason::Budget {
                budget,
                limit,
                used,
            } => R::BudgetExhausted {
                budget: *budget,
                limit: *limit,
                used: *used,
            },
        },
    };
    or_unlanded(reason, landing)
}

/// The end of a task loop that had ended and was taken up only to land its work: as it had ended
/// before, save for what has landed since.
pub fn end_after_landing(before: &R, gates: Gates, landing: Option<&Landing>) -> R {
    let reason = match before {
        R::TasksBlocked { tasks, .. } if tasks.is_empty() => complete(gates),
        R::TasksBlocked { tasks, .. } => R::TasksBlocked {
            tasks: tasks.clone(),
            unlanded: None,
        },
        other => other.clone(),
    };
    or_unlanded(reason, landing)
}

fn complete(gates: Gates) -> R {
    match gates {
        Gates::Some => R::GatesPassed,
        Gates::None => R::CompletionPromiseDetected,
    }
}

fn or_unlanded(reason: R, landing: Option<&Landing>) -> R {
    let Some(Landing::Ready { branch, why, .. }) = landing else {
        return reason;
    };
    let unlanded = Some(Unlanded {
        branch: branch.clone(),
        why: why.clone(),
    });
    match reason {
        R::TasksBlocked { tasks, .. } => R::TasksBlocked { tasks, unlanded },
        reason if reason.is_success() => R::TasksBlocked {
            tasks: Vec::new(),
            unlanded,
        },
        reason => reason,
    }
}

/// Attempts in a row, of whatever tasks, whose agent failed and left no work behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedAttempts(u32);

impl FailedAttempts {
    /// Takes the end of an attempt, whose run may have changed files (`worked`), in a loop in which so
    /// many tasks are done. An agent that fails again and again before anything was ever done fails for
    /// every task: that is the end.
    pub fn count(
        &mut self,
        end: &AttemptEnd,
        worked: bool,
        done: usize,
        max_failures: u32,
    ) -> Option<R> {
        match end {
            AttemptEnd::Failed { message } if !worked => {
                self.0 += 1;
                let hopeless = done == 0 && self.0 >= max_failures.max(1);
                return hopeless.then(|| R::AgentFailed {
                    failures: self.0,
                    last: message.clone(),
                });
            }
            // Nothing was tried; or it did nothing, and nothing is wrong with it as far as can be told.
            AttemptEnd::Limited { .. } | AttemptEnd::Interrupted | AttemptEnd::NothingDone => {}
            _ => self.0 = 0,
        }
        None
    }
}
