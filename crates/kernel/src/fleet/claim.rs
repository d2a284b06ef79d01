//! What is stored about one epoch of a task.

use std::time::Duration;

use jiff::Timestamp;
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
        /// When, by the clock of whoever took it back by force.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
}

impl TaskClaim {
    /// What is stored as it is taken back.
    pub fn closed(forced: bool, now: Timestamp) -> Self {
        Self::Closed {
            forced,
            at: Some(now).filter(|_| forced),
        }
    }
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
                TaskClaim::Closed { forced: false, .. } => ClaimState::Closed,
                TaskClaim::Closed { forced: true, .. } => ClaimState::ForceClosed,
            },
        }
    }

    /// How long its holder may still be at work without knowing that it was taken back by force. A clock that was
    /// set back makes it a whole lease at most.
    pub fn rest_of_lease(&self, lease: Duration, now: Timestamp) -> Duration {
        let closed = match self {
            Self::Value {
                claim: TaskClaim::Closed { at: Some(at), .. },
                ..
            } => Duration::try_from(now.duration_since(*at)).ok(),
            _ => None,
        };
        lease.saturating_sub(closed.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_ended_by_force_is_waited_for_once() {
        let at: Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
        let after = |seconds: i64| at + jiff::SignedDuration::from_secs(seconds);
        let stored = |claim: TaskClaim| StoredClaim::Value { seq: 1, claim };
        let lease = Duration::from_secs(60);
        for (seconds, rest) in [(0, 60), (20, 40), (60, 0), (3600, 0), (-5, 60)] {
            let closed = stored(TaskClaim::closed(true, at));
            let found = closed.rest_of_lease(lease, after(seconds));
            assert_eq!(found, Duration::from_secs(rest), "{seconds}");
        }
        // Of a version before.
        let old: TaskClaim = serde_json::from_str(r#"{"state":"closed","forced":true}"#).unwrap();
        assert_eq!(stored(old).rest_of_lease(lease, after(3600)), lease);
    }
}
