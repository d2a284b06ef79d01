//! What other threads tell a view, and its sleep until there is something to show.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// What the view is told from other threads.
#[derive(Debug)]
pub struct Signal {
    wake: EventFd,
    finished: Mutex<bool>,
    ended: Condvar,
    interrupts: AtomicU32,
    continued: AtomicBool,
}

impl Signal {
    /// A signal that nobody gave yet.
    pub fn new() -> nix::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
            finished: Mutex::new(false),
            ended: Condvar::new(),
            interrupts: AtomicU32::new(0),
            continued: AtomicBool::new(false),
        }))
    }

    /// There is something new.
    pub fn wake(&self) {
        // A full counter wakes as well.
        let _ = self.wake.write(1);
    }

    /// The loop is over: show the rest and end.
    pub fn finish(&self) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
        self.wake();
    }

    /// Whether the loop is over.
    pub fn is_finished(&self) -> bool {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, unless the loop is over: other news can wait that long.
    pub fn rest(&self, length: Duration) {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.ended
                .wait_timeout_while(finished, length, |finished| !*finished),
        );
    }

    /// Sleeps until a call, or until `other` is readable, at most `limit`.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, limit: Option<Duration>) {
        self.wait_any(other, limit);
    }

    /// Sleeps until a call, or until one of the others is readable, at most `limit`.
    pub fn wait_any<'a>(
        &self,
        others: impl IntoIterator<Item = BorrowedFd<'a>>,
        limit: Option<Duration>,
    ) {
        let mut fds = vec![PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        let others = others.into_iter();
        fds.extend(others.map(|other| PollFd::new(other, PollFlags::POLLIN)));
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, timeout(limit));
        let _ = self.wake.read();
    }

    /// The process is back from Ctrl-Z: whatever stood on the terminal is gone.
    pub fn carry_on(&self) {
        self.continued.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Whether it is back since this was last asked.
    pub fn was_away(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }

    /// Ctrl-C was pressed once more.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
        self.wake();
    }

    /// How often Ctrl-C was pressed.
    pub fn interrupts(&self) -> u32 {
        self.interrupts.load(Ordering::Relaxed)
    }
}

fn timeout(limit: Option<Duration>) -> PollTimeout {
    // Rounded up: a sleep that is too short would be followed by another.
    let millis = limit.map(|limit| u64::try_from(limit.as_micros().div_ceil(1000)));
    match millis {
        None => PollTimeout::NONE,
        Some(Ok(millis)) => PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX),
        Some(Err(_)) => PollTimeout::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_call_or_another_file_ends_a_wait() {
        let (signal, other) = (Signal::new().unwrap(), Signal::new().unwrap());
        let begun = Instant::now();
        signal.wake();
        signal.wait(Some(other.wake.as_fd()), Some(LONG));
        other.wake();
        signal.wait(Some(other.wake.as_fd()), Some(LONG));
        signal.wait(None, Some(Duration::from_millis(1)));
        assert!(begun.elapsed() < LONG / 2);
    }

    #[test]
    fn only_the_end_cuts_a_rest_short_and_calls_are_remembered() {
        let signal = Signal::new().unwrap();
        signal.interrupt();
        signal.carry_on();
        let begun = Instant::now();
        signal.rest(Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        assert_eq!(signal.interrupts(), 1);
        assert!(signal.was_away() && !signal.was_away());
        signal.finish();
        signal.rest(LONG);
        assert!(signal.is_finished() && begun.elapsed() < LONG / 2);
    }
}
