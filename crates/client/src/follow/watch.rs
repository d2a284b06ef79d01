//! Sleeping until a file of a loop changes. The kernel tells (inotify); where it cannot, a
//! look every 200 ms has to do.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use descartes_store::layout::{LoopDir, RunDir};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// Where files cannot be watched they are looked at so often.
const BLIND: Duration = Duration::from_millis(200);

/// Growth, new names (a journal made anew, a run's folder), and a lock given back: its holder
/// wrote in it, so the kernel tells when the last one closes it.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_CLOSE_WRITE);

#[derive(Debug)]
pub(crate) struct Watch {
    inotify: Option<Inotify>,
    home: Option<WatchDescriptor>,
    /// The run's folder; or, while that is not there, a folder above it.
    run: Option<WatchDescriptor>,
    waiting_for: Option<RunDir>,
    /// Whether something happened to the lock since this was last asked.
    lock_news: bool,
}

impl Watch {
    /// Watches the folder of a loop.
    pub(crate) fn new(dir: &LoopDir) -> Self {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok();
        let mut watch = Self {
            inotify,
            home: None,
            run: None,
            waiting_for: None,
            lock_news: true,
        };
        watch.home = watch.add(dir.path(), CHANGES);
        if watch.home.is_none() {
            watch.inotify = None;
        }
        watch
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Watches the logs of a run, which need not be there yet. The caller looks at them once
    /// more afterwards: what was written before is not told.
    pub(crate) fn run(&mut self, run: &RunDir) {
        self.no_run();
        self.run = self.add(run.path(), CHANGES);
        if self.run.is_some() {
            return;
        }
        self.waiting_for = Some(run.clone());
        // The loop's own folder is watched anyway: one watch more would take its place.
        let above = run.path().parent().filter(|folder| folder.is_dir());
        self.run = above.and_then(|above| self.add(above, CHANGES));
        if run.path().is_dir() {
            // It came while the folder above was not watched yet.
            self.run(run);
        }
    }

    /// Watches no logs.
    pub(crate) fn no_run(&mut self) {
        self.waiting_for = None;
        if let (Some(inotify), Some(run)) = (&self.inotify, self.run.take()) {
            // The folder may be gone, and its watch with it.
            let _ = inotify.rm_watch(run);
        }
    }

    /// Whether the lock may have changed hands since this was last asked.
    pub(crate) fn take_lock_news(&mut self) -> bool {
        std::mem::take(&mut self.lock_news) || self.inotify.is_none()
    }

    /// Sleeps until something happens, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) {
        let Some(inotify) = &self.inotify else {
            return std::thread::sleep(limit.map_or(BLIND, |limit| limit.min(BLIND)));
        };
        let mut fds = [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)];
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, timeout(limit));
        self.take_events();
        // Only when there is something nearer to watch: a watch that is taken away is an event
        // itself, and would wake us again and again.
        let watched = self.run.is_some();
        let nearer = |run: &mut RunDir| {
            let above = || run.path().parent().is_some_and(Path::is_dir);
            run.path().is_dir() || !watched && above()
        };
        if let Some(run) = self.waiting_for.take_if(nearer) {
            self.run(&run);
        }
    }

    fn take_events(&mut self) {
        let Some(inotify) = &self.inotify else { return };
        while let Ok(events) = inotify.read_events() {
            let of_lock = |event: &nix::sys::inotify::InotifyEvent| {
                let lost = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                lost || event.name.as_deref().is_some_and(|name| name == "lock")
            };
            self.lock_news |= events.iter().any(of_lock);
        }
    }

    fn add(&self, path: &Path, what: AddWatchFlags) -> Option<WatchDescriptor> {
        self.inotify.as_ref()?.add_watch(path, what).ok()
    }
}

pub(crate) fn timeout(limit: Option<Duration>) -> PollTimeout {
    // Rounded up: a sleep that is too short would be followed by another.
    let millis = |limit: Duration| u64::try_from(limit.as_micros().div_ceil(1000)).ok();
    match limit {
        None => PollTimeout::NONE,
        Some(limit) => millis(limit)
            .and_then(|millis| PollTimeout::try_from(millis).ok())
            .unwrap_or(PollTimeout::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_store::layout::StateRoot;
    use std::time::Instant;

    #[test]
    fn where_nothing_can_be_watched_it_is_looked_at_now_and_then() {
        let dir = StateRoot::at("/nowhere").loop_dir("x").unwrap();
        let mut watch = Watch::new(&dir);
        assert!(watch.fd().is_none());
        let begun = Instant::now();
        watch.wait(None);
        assert!(begun.elapsed() >= BLIND && begun.elapsed() < BLIND * 50);
        assert!(watch.take_lock_news() && watch.take_lock_news());
        watch.run(&dir.run(1));
        watch.wait(Some(Duration::ZERO));
    }
}
