//! Sleeping until a file of a loop changes. The kernel tells; where it cannot, a look every now
//! and then has to do.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use descartes_store::layout::{LoopDir, RunDir};
use descartes_store::watching::{
    AddWatchFlags, BLIND, InotifyEvent, WatchDescriptor, Watching, timeout,
};
use nix::poll::{PollFd, PollFlags, poll};

use crate::released::{Alarm, Released};

/// Growth, new names (a journal made anew, a run's folder), and a lock given back: its holder
/// wrote in it, so the kernel tells when the last one closes it (see [`Released`]).
const CHANGES: AddWatchFlags = AddWatchFlags::IN_MODIFY
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_CLOSE_WRITE);

#[derive(Debug)]
pub(crate) struct FollowWatch {
    watching: Watching,
    /// The run's folder; or, while that is not there, a folder above it.
    run: Option<WatchDescriptor>,
    waiting_for: Option<RunDir>,
    /// Whether something happened to the lock since this was last asked.
    lock_news: bool,
    /// Since when the lock is being given back.
    released: Option<Released>,
    /// Wakes whoever waits for the descriptor meanwhile.
    alarm: Option<Alarm>,
}

impl FollowWatch {
    /// Watches the folder of a loop.
    pub(crate) fn new(dir: &LoopDir) -> Self {
        let mut watching = Watching::new();
        if watching.add(dir.path(), CHANGES).is_none() {
            watching.close();
        }
        Self {
            watching,
            run: None,
            waiting_for: None,
            lock_news: true,
            released: None,
            alarm: None,
        }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let told = self.watching.fd()?;
        Some(self.alarm.as_ref().map_or(told, AsFd::as_fd))
    }

    /// Watches the logs of a run, which need not be there yet. The caller looks at them once
    /// more afterwards: what was written before is not told.
    pub(crate) fn run(&mut self, run: &RunDir) {
        self.no_run();
        self.run = self.watching.add(run.path(), CHANGES);
        if self.run.is_some() || self.watching.is_blind() {
            return;
        }
        // The loop's own folder is watched anyway: one watch more would take its place.
        let above = run.path().parent().filter(|folder| folder.is_dir());
        self.run = above.and_then(|above| self.watching.add(above, CHANGES));
        // It may have come while the folder above was not watched yet.
        match self.watching.add(run.path(), CHANGES) {
            Some(watch) => {
                self.run
                    .replace(watch)
                    .into_iter()
                    .for_each(|above| self.watching.remove(above));
            }
            None => self.waiting_for = Some(run.clone()),
        }
    }

    /// Watches no logs.
    pub(crate) fn no_run(&mut self) {
        self.waiting_for = None;
        if let Some(run) = self.run.take() {
            self.watching.remove(run);
        }
    }

    /// Whether the lock may have changed hands since this was last asked.
    pub(crate) fn take_lock_news(&mut self) -> bool {
        std::mem::take(&mut self.lock_news) || self.watching.is_blind()
    }

    /// The lock has changed hands: nothing more is expected of it.
    pub(crate) fn lock_settled(&mut self) {
        (self.released, self.alarm) = (None, None);
    }

    /// Sleeps until something happens, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) {
        match self.alarm.as_ref().map(AsFd::as_fd) {
            Some(fd) => {
                // An interrupted sleep is a short one.
                let _ = poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout(limit));
            }
            None => self.watching.wait(limit, BLIND),
        }
        let of_lock = |event: &&InotifyEvent| {
            let lost = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
            lost || event.name.as_deref().is_some_and(|name| name == "lock")
        };
        for event in self.watching.events().iter().filter(of_lock) {
            self.lock_news = true;
            if Released::is_told_by(event) {
                self.released = Some(Released::now());
            }
        }
        self.look_at_lock_again();
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

    fn look_at_lock_again(&mut self) {
        self.released.take_if(|released| released.is_over());
        self.alarm = match (&self.released, self.watching.fd()) {
            (Some(_), Some(fd)) => Alarm::set(fd),
            _ => None,
        };
        self.lock_news |= self.released.is_some();
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
        let mut watch = FollowWatch::new(&dir);
        assert!(watch.fd().is_none());
        let begun = Instant::now();
        watch.wait(None);
        assert!(begun.elapsed() >= BLIND && begun.elapsed() < BLIND * 50);
        assert!(watch.take_lock_news() && watch.take_lock_news());
        watch.run(&dir.run(1));
        watch.wait(Some(Duration::ZERO));
    }
}
