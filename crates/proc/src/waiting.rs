//! Waiting for the end of a child with a limit, without a thread of its own.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use crate::guard::timeout;
use crate::sys;

/// Between two looks where the kernel does not tell.
const LOOK: Duration = Duration::from_millis(5);

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It has ended and can be reaped.
    Ended,
    /// The limit came first.
    Late,
    /// What was to interrupt the wait came first.
    Woken,
}

/// Waits until a child of this process has ended, for at most `limit`, or until `wake` can be read.
/// The child is not reaped.
pub fn wait_for_exit(child: u32, limit: Duration, wake: Option<BorrowedFd<'_>>) -> Waiting {
    let until = Instant::now().checked_add(limit);
    let is_late = || until.is_some_and(|until| Instant::now() >= until);
    let pid = child.cast_signed();
    let Ok(pidfd) = sys::pidfd_open(pid) else {
        // No descriptor left, or an old kernel.
        loop {
            if sys::peek(pid).is_some() {
                return Waiting::Ended;
            }
            if is_late() {
                return Waiting::Late;
            }
            std::thread::sleep(LOOK);
        }
    };
    let mut fds = vec![PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    fds.extend(wake.map(|wake| PollFd::new(wake, PollFlags::POLLIN)));
    loop {
        match poll(&mut fds, timeout(until)) {
            Ok(0) | Err(Errno::EINTR) if is_late() => return Waiting::Late,
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) if fds.first().and_then(PollFd::any) == Some(false) => return Waiting::Woken,
            Ok(_) | Err(_) => return Waiting::Ended,
        }
    }
}
