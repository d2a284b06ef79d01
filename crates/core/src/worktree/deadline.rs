//! A moment by which something must be over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::Stop;

/// Until when a piece of work may go on.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    /// How long it was given in all, for messages.
    pub(crate) limit: Duration,
    stop: Option<StopFlag>,
}

/// How often a wait looks at the flag.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ends work that looks at it before its deadline.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + limit,
            limit,
            stop: None,
        }
    }

    /// The same, unless this is raised before.
    pub(crate) fn or_at(self, stop: StopFlag) -> Deadline {
        Deadline {
            stop: Some(stop),
            ..self
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// How long a wait may go on before it looks again whether it is over.
    pub(super) fn next_look(&self) -> Duration {
        match &self.stop {
            Some(_) => self.left().min(STOP_POLL_INTERVAL),
            None => self.left(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(StopFlag::is_raised)
    }

    pub(super) fn check(&self) -> Result<(), Stop> {
        if self.is_stopped() {
            Err(Stop::Asked)
        } else if self.left().is_zero() {
            Err(Stop::Late)
        } else {
            Ok(())
        }
    }
}
