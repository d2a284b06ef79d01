//! Ctrl-Z: this process stops, and with it everything that its guards have started; the time that it
//! was stopped counts nowhere.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::getpid;

use crate::lease::LeaseClock;
use crate::orphans;

/// How long this process was stopped in all, and since when it is.
static STOPPED: Mutex<(Duration, Option<Instant>)> = Mutex::new((Duration::ZERO, None));

fn stopped() -> MutexGuard<'static, (Duration, Option<Instant>)> {
    STOPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time for which this process was stopped by [`stop_with_trees`] so far. While it is being stopped it
/// grows with the clock, so that no time passes for who takes it off.
pub fn time_stopped() -> Duration {
    let (total, since) = *stopped();
    total + since.map_or(Duration::ZERO, |since| since.elapsed())
}

/// Stops this process as its terminal asked for, after all trees of its guards; comes back when it
/// goes on, and they with it. To be called from a thread in which SIGTSTP is blocked, as in all others.
pub fn stop_with_trees() {
    stopped().1 = Some(Instant::now());
    orphans::signal_guards(Signal::SIGTSTP);
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTSTP);
    // Blocked everywhere, it waits for this thread to take it; then all threads stop. A process whose
    // shell has no job control is not stopped, and goes on at once.
    let _ = kill(getpid(), Signal::SIGTSTP);
    let _ = stop.thread_unblock();
    let _ = stop.thread_block();
    orphans::signal_guards(Signal::SIGCONT);
    let mut stopped = stopped();
    if let Some(since) = stopped.1.take() {
        stopped.0 += since.elapsed();
    }
}

/// A clock that stands still while this process is stopped, and while its trees are since their lease
/// has ended.
#[derive(Debug, Clone)]
pub struct RunClock {
    began: Instant,
    stopped: Duration,
    lease: LeaseClock,
    frozen: Duration,
}

impl RunClock {
    /// Begins now.
    pub fn start(lease: &LeaseClock) -> Self {
        Self {
            began: Instant::now(),
            stopped: time_stopped(),
            lease: lease.clone(),
            frozen: lease.frozen(),
        }
    }

    /// Time since it began, without that for which this process was stopped or its trees stood still.
    pub fn elapsed(&self) -> Duration {
        // The stopped time first: it must not have grown beyond what is taken off.
        let stopped = time_stopped().saturating_sub(self.stopped);
        // Both at the same moment: time would go back a little else.
        let now = Instant::now();
        let frozen = self.lease.frozen_at(now).saturating_sub(self.frozen);
        let since = now.saturating_duration_since(self.began);
        since.saturating_sub(stopped + frozen)
    }
}
