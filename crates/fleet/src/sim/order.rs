//! What simulated parties say to each other.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use descartes_bridge::OfferTarget;
use serde::{Deserialize, Serialize};

/// An offer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimOrder {
    pub subject: String,
    /// The number of `offered`.
    pub seq: u64,
    pub work_ms: u64,
    pub ttl_s: u64,
}

/// What stands under a task's subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SimState {
    Offered { at: u64 },
    Held { worker: String, at: u64 },
    Done { worker: String },
    Closed,
}

impl SimState {
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether this worker is at it. What it has done may be offered once more, where its acknowledgement was lost.
    pub fn is_held_by(&self, name: &str) -> bool {
        matches!(self, Self::Held { worker, .. } if worker == name)
    }
}

/// The queue of all of them.
pub fn lane() -> OfferTarget {
    OfferTarget::Pool {
        pool: "any".to_owned(),
        agent: "sim".to_owned(),
    }
}

/// Microseconds by the wall clock: all parties are on one machine.
pub fn now_us() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(now.as_micros()).unwrap_or_default()
}
