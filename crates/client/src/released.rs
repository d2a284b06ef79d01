//! A lock that is being given back. The kernel tells that the last holder closes the file, and only
//! then lets go of the lock: whoever looks at once may find it held, and is not told again.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use descartes_store::watching::{AddWatchFlags, InotifyEvent};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// So often is looked again,
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// and for so long: by then it is another host that holds it.
const AT_MOST: Duration = Duration::from_secs(10);

/// When a lock began to be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released(Instant);

impl Released {
    /// Whether an event of a lock tells that its last holder closes it, or that this may have been
    /// missed.
    pub(crate) fn is_told_by(event: &InotifyEvent) -> bool {
        let told = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_Q_OVERFLOW;
        event.mask.intersects(told)
    }

    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.elapsed() >= AT_MOST
    }
}

/// A descriptor that is readable when another one is, or when it is time to look again.
#[derive(Debug)]
pub(crate) struct Alarm {
    either: Epoll,
    /// Held open.
    _timer: TimerFd,
}

impl Alarm {
    /// Nothing where the system has no descriptor left: the next event is waited for.
    pub(crate) fn set(other: BorrowedFd<'_>) -> Option<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).ok()?;
        let time = TimeSpec::milliseconds(i64::try_from(LOOK_AGAIN.as_millis()).ok()?);
        let once = Expiration::OneShot(time);
        timer.set(once, TimerSetTimeFlags::empty()).ok()?;
        let either = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        either.add(other, readable).ok()?;
        either.add(timer.as_fd(), readable).ok()?;
        Some(Self {
            either,
            _timer: timer,
        })
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.either.0.as_fd()
    }
}
