//! Trees that may work only until a given time: past it they stand still, whoever else is stuck.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::boot_time::BootTime;

/// Until when a tree may work. Past it the guard stops every process of the tree; a later end lets it
/// go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLease {
    /// The end. Others count the same time, and they do while this machine sleeps.
    pub until: BootTime,
    /// A tree that stood still for so long is killed.
    pub kill_after: Duration,
}

/// Counts the time for which trees stood still, since their lease had ended; time in which the machine slept
/// counts nowhere.
#[derive(Debug, Clone, Default)]
pub struct LeaseClock(Arc<Mutex<FrozenTime>>);

#[derive(Debug, Default)]
struct FrozenTime {
    lease: Option<TreeLease>,
    /// Since when its trees stand still, as far as was seen.
    since: Option<Instant>,
    /// When the lease was last renewed.
    renewed: Option<Instant>,
    total: Duration,
    has_stood: bool,
}

impl FrozenTime {
    /// Looks whether the lease has ended.
    fn look(&mut self, now: Instant) {
        let over = self.lease.map(|lease| lease.until.elapsed());
        let Some(over) = over.filter(|over| !over.is_zero()) else {
            return;
        };
        self.has_stood = true;
        let known = self.renewed.unwrap_or(now);
        // Longer ago than it was renewed, by a clock that stood still: the machine has slept.
        let since = now.checked_sub(over).filter(|since| *since >= known);
        self.since.get_or_insert(since.unwrap_or(now));
    }

    fn frozen(&self, now: Instant) -> Duration {
        let since = self.since.map(|since| now.saturating_duration_since(since));
        self.total + since.unwrap_or_default()
    }
}

impl LeaseClock {
    /// From now on this is the lease.
    pub fn renew(&self, lease: TreeLease) {
        let now = Instant::now();
        let mut time = self.looked_at(now);
        time.total = time.frozen(now);
        (time.lease, time.since, time.renewed) = (Some(lease), None, Some(now));
    }

    /// The lease, where there is one.
    pub fn current(&self) -> Option<TreeLease> {
        self.looked_at(Instant::now()).lease
    }

    /// All time so far in which the lease had ended. Without a lease there is none.
    pub fn frozen(&self) -> Duration {
        self.frozen_at(Instant::now())
    }

    pub(crate) fn frozen_at(&self, now: Instant) -> Duration {
        self.looked_at(now).frozen(now)
    }

    /// Whether it ever was.
    pub fn has_stood_still(&self) -> bool {
        self.looked_at(Instant::now()).has_stood
    }

    /// Whether the lease has ended.
    pub fn is_frozen(&self) -> bool {
        let lease = self.current();
        lease.is_some_and(|lease| BootTime::now() >= lease.until)
    }

    fn looked_at(&self, now: Instant) -> MutexGuard<'_, FrozenTime> {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        time.look(now);
        time
    }
}
