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
        /// When, by the clock of whoever took it back by force. Nothing is decided by it: clocks of walls are set,
        /// and differ from machine to machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// The same by a clock that nobody sets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moment: Option<BootMoment>,
    },
}

/// A moment by the clock of one boot of one machine, which goes on while that sleeps. Moments of two clocks
/// cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMoment {
    pub clock: String,
    pub ms: u64,
}

impl TaskClaim {
    /// What is stored as it is taken back.
    pub fn closed(forced: bool, now: Timestamp, moment: Option<BootMoment>) -> Self {
        Self::Closed {
            forced,
            at: Some(now).filter(|_| forced),
            moment: moment.filter(|_| forced),
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

    /// How long its holder may still be at work without knowing that it was taken back by force. Whoever has no
    /// clock in common with who took it back waits a whole lease.
    pub fn rest_of_lease(&self, lease: Duration, now: Option<&BootMoment>) -> Duration {
        let passed = match (self, now) {
            (
                Self::Value {
                    claim:
                        TaskClaim::Closed {
                            moment: Some(then), ..
                        },
                    ..
                },
                Some(now),
            ) if then.clock == now.clock => now.ms.saturating_sub(then.ms),
            _ => 0,
        };
        lease.saturating_sub(Duration::from_millis(passed))
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
    fn a_lease_that_was_ended_by_force_is_waited_for_once_and_by_one_clock() {
        let at: Timestamp = "2026-01-02T10:00:00Z".parse().unwrap();
        let moment = |clock: &str, seconds: u64| BootMoment {
            clock: clock.to_owned(),
            ms: seconds * 1000,
        };
        let stored = |claim: TaskClaim| StoredClaim::Value { seq: 1, claim };
        let lease = Duration::from_secs(60);
        let closed = stored(TaskClaim::closed(true, at, Some(moment("a", 100))));
        for (now, rest) in [
            (Some(moment("a", 100)), 60),
            (Some(moment("a", 120)), 40),
            (Some(moment("a", 160)), 0),
            (Some(moment("a", 9000)), 0),
            // A copy of the machine that is behind.
            (Some(moment("a", 95)), 60),
            // Resumed elsewhere, or after a boot.
            (Some(moment("b", 9000)), 60),
            (None, 60),
        ] {
            let found = closed.rest_of_lease(lease, now.as_ref());
            assert_eq!(found, Duration::from_secs(rest), "{now:?}");
        }
        // Of versions before.
        for old in [
            r#"{"state":"closed","forced":true}"#,
            r#"{"state":"closed","forced":true,"at":"2026-01-02T10:00:00Z"}"#,
        ] {
            let old: TaskClaim = serde_json::from_str(old).unwrap();
            let now = moment("a", 9000);
            assert_eq!(stored(old).rest_of_lease(lease, Some(&now)), lease);
        }
    }
}
