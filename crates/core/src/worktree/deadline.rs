//! A moment by which something must be over.

use std::time::{Duration, Instant};

use super::error::Stop;

/// Until when a piece of work may go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    /// How long it was given in all, for messages.
    pub(crate) limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + limit,
            limit,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    pub(super) fn check(&self) -> Result<(), Stop> {
        if self.left().is_zero() {
            Err(Stop::Late)
        } else {
            Ok(())
        }
    }
}
