//! What is stored about one epoch of a task.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is stored under the subject of one epoch of a task. It only ever moves forward: offered, held,
/// done, accepted; or closed, which is the end of that epoch. Only one worker ever holds an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TaskClaim {
    /// Nobody holds it yet.
    Offered { attempt: u32 },
    /// A worker holds it, as long as it renews this in time.
    Held {
        worker: String,
        /// Tells two claims of one worker apart.
        claim: String,
    },
    /// The attempt is over; whoever held it has written this, and nobody else could.
    Done {
        worker: String,
        claim: String,
        /// What the attempt came to.
        result: Box<Value>,
    },
    /// The coordinator has what the attempt came to in its journal.
    Accepted,
    /// The engine lost what was stored, and the coordinator says that this epoch is still wanted: whoever
    /// held it may take it again, and nobody else.
    Recalled,
    /// The coordinator has taken it back.
    Closed {
        /// Its holder may not know it yet, and be at work until it has to renew its claim.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forced: bool,
    },
}

/// What is stored, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredClaim {
    /// Nothing was ever stored, or all of it was lost.
    Nothing,
    /// The time of what was stored is over.
    Lapsed {
        seq: u64,
    },
    Value {
        seq: u64,
        claim: TaskClaim,
    },
}

/// The same without what an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    Nothing,
    Lapsed,
    Offered,
    Held,
    Done,
    Accepted,
    Recalled,
    Closed,
    /// Closed while its holder may have been at work.
    ForceClosed,
}

impl StoredClaim {
    /// The number that a writer has to name.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Lapsed { seq } | Self::Value { seq, .. } => *seq,
        }
    }

    /// How it stands.
    pub fn state(&self) -> ClaimState {
        match self {
            Self::Nothing => ClaimState::Nothing,
            Self::Lapsed { .. } => ClaimState::Lapsed,
            Self::Value { claim, .. } => match claim {
                TaskClaim::Offered { .. } => ClaimState::Offered,
                TaskClaim::Held { .. } => ClaimState::Held,
                TaskClaim::Done { .. } => ClaimState::Done,
                TaskClaim::Accepted => ClaimState::Accepted,
                TaskClaim::Recalled => ClaimState::Recalled,
                TaskClaim::Closed { forced: false } => ClaimState::Closed,
                TaskClaim::Closed { forced: true } => ClaimState::ForceClosed,
            },
        }
    }

    /// Who holds it or has done it.
    pub fn worker(&self) -> Option<&str> {
        match self {
            Self::Value {
                claim: TaskClaim::Held { worker, .. } | TaskClaim::Done { worker, .. },
                ..
            } => Some(worker),
            _ => None,
        }
    }
}
