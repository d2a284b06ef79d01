//! Ends the questions that a program is being asked, from another thread.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use descartes_kernel::tasks::Hurry;
use nix::sys::eventfd::{EfdFlags, EventFd};

/// How urgently the calls that are made on it are to end.
#[derive(Debug)]
pub struct QuestionLine {
    /// The place in [`Hurry::ALL`].
    hurry: AtomicUsize,
    /// Without one, a call that is under way goes on to its limit.
    wake: Option<EventFd>,
}

impl Default for QuestionLine {
    fn default() -> Self {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Self {
            hurry: AtomicUsize::new(0),
            wake: EventFd::from_flags(flags).ok(),
        }
    }
}

impl QuestionLine {
    /// Calls are to end as urgently as this; never less urgently than before.
    pub fn hurry(&self, hurry: Hurry) {
        let place = Hurry::ALL.iter().position(|known| *known == hurry);
        let before = self
            .hurry
            .fetch_max(place.unwrap_or_default(), Ordering::AcqRel);
        if let Some(wake) = self.wake.as_ref().filter(|_| Some(before) < place) {
            // A counter that is full wakes as well.
            let _ = wake.write(1);
        }
    }

    /// Calls are made again as if nobody had wanted their end.
    pub fn calm(&self) {
        self.hurry.store(0, Ordering::Release);
    }

    /// Whether nothing is to be asked for any more.
    pub fn is_urgent(&self) -> bool {
        self.now() != Hurry::No
    }

    pub(super) fn now(&self) -> Hurry {
        let place = self.hurry.load(Ordering::Acquire);
        Hurry::ALL.get(place).copied().unwrap_or(Hurry::Kill)
    }

    pub(super) fn wake(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }

    /// What woke a call was heard.
    pub(super) fn heard(&self) {
        if let Some(wake) = &self.wake {
            // Nothing to read is heard as well.
            let _ = wake.read();
        }
    }
}
