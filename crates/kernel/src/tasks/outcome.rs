//! How a task loop ends, in the words of any loop.

use super::state::Landing;
use crate::outcome::{IterativeExitReason, Unlanded};
use crate::sched::{Ended, Outcome, StopReason};
use IterativeExitReason as R;

/// Whether every task of a loop has a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gates {
    All,
    /// The word of an agent is all that is known of some.
    NotAll,
}

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
        Gates::All => R::GatesPassed,
        Gates::NotAll => R::CompletionPromiseDetected,
    }
}

fn or_unlanded(reason: R, landing: Option<&Landing>) -> R {
    let Some(Landing::Ready {
        branch,
        why,
        full_disk,
        ..
    }) = landing
    else {
        return reason;
    };
    let unlanded = Some(Unlanded {
        branch: branch.clone(),
        why: why.clone(),
        full_disk: *full_disk,
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
