//! Trees that may work only until a given time: past it they stand still, whoever else is stuck.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Until when a tree may work. Past it the guard stops every process of the tree; a later end lets it
/// go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLease {
    /// The end, by a clock that nobody sets.
    pub until: Instant,
    /// A tree that stood still for so long is killed.
    pub kill_after: Duration,
}

/// Counts the time for which trees stood still, since their lease had ended.
#[derive(Debug, Clone, Default)]
pub struct LeaseClock(Arc<Mutex<FrozenTime>>);

#[derive(Debug, Default)]
struct FrozenTime {
    lease: Option<TreeLease>,
    total: Duration,
}

impl FrozenTime {
    fn at(&self, now: Instant) -> Duration {
        let since = self
            .lease
            .map(|lease| now.saturating_duration_since(lease.until));
        self.total + since.unwrap_or_default()
    }
}

impl LeaseClock {
    /// From now on this is the lease.
    pub fn renew(&self, lease: TreeLease) {
        let mut time = self.time();
        time.total = time.at(Instant::now());
        time.lease = Some(lease);
    }

    /// The lease, where there is one.
    pub fn current(&self) -> Option<TreeLease> {
        self.time().lease
    }

    /// All time so far in which the lease had ended. Without a lease there is none.
    pub fn frozen(&self) -> Duration {
        self.time().at(Instant::now())
    }

    /// Whether the lease has ended.
    pub fn is_frozen(&self) -> bool {
        let lease = self.current();
        lease.is_some_and(|lease| Instant::now() >= lease.until)
    }

    fn time(&self) -> MutexGuard<'_, FrozenTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
