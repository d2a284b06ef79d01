//! Sleeping until there is something to show: a call from the host, or growth of a log.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use descartes_store::layout::RunDir;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// Where logs cannot be watched they are looked at so often.
const BLIND: Duration = Duration::from_millis(250);

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

/// Waits for a signal or for growth of the run's logs. Nothing polls: a silent agent costs
/// no wake-up.
#[derive(Debug)]
pub struct Watch {
    signal: Arc<Signal>,
    inotify: Option<Inotify>,
    watched: Option<WatchDescriptor>,
    /// The run's folder is not there yet: the folder above is watched for it.
    waiting_for: Option<RunDir>,
}

impl Watch {
    /// Watches no log yet.
    pub fn new(signal: Arc<Signal>) -> Self {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok();
        Self {
            signal,
            inotify,
            watched: None,
            waiting_for: None,
        }
    }

    /// Watches the logs of this run, which need not be there yet. The caller looks at them
    /// once more afterwards: what was written before is not told.
    pub fn run(&mut self, run: &RunDir) {
        self.stop();
        let growth = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_CREATE;
        if self.add(run.path(), growth) {
            return;
        }
        self.waiting_for = Some(run.clone());
        let above = run
            .path()
            .ancestors()
            .skip(1)
            .find(|folder| folder.is_dir());
        if let Some(above) = above
            && !self.add(above, AddWatchFlags::IN_CREATE)
        {
            self.inotify = None;
        }
        // It may have come while the folder above was not watched yet.
        if run.path().is_dir() {
            self.waiting_for = None;
            self.run(run);
        }
    }

    /// Watches no log.
    pub fn stop(&mut self) {
        self.waiting_for = None;
        if let (Some(inotify), Some(watched)) = (&self.inotify, self.watched.take()) {
            // The folder may be gone, and its watch with it.
            let _ = inotify.rm_watch(watched);
        }
    }

    fn add(&mut self, path: &Path, what: AddWatchFlags) -> bool {
        let Some(inotify) = &self.inotify else {
            return false;
        };
        self.watched = inotify.add_watch(path, what).ok();
        self.watched.is_some()
    }

    /// Sleeps until something happens, at most `limit`.
    pub fn wait(&mut self, limit: Option<Duration>) {
        let blind = self.inotify.is_none().then_some(BLIND);
        let limit = [limit, blind].into_iter().flatten().min();
        let mut fds = vec![PollFd::new(self.signal.wake.as_fd(), PollFlags::POLLIN)];
        if let Some(inotify) = &self.inotify {
            fds.push(PollFd::new(inotify.as_fd(), PollFlags::POLLIN));
        }
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, timeout(limit));
        let _ = self.signal.wake.read();
        if let Some(inotify) = &self.inotify {
            drop(inotify.read_events());
        }
        if let Some(run) = self.waiting_for.take() {
            self.run(&run);
        }
    }
}

fn timeout(limit: Option<Duration>) -> PollTimeout {
    match limit {
        // Rounded up: a sleep that is too short would be followed by another.
        Some(limit) => {
            let millis = limit.as_micros().div_ceil(1000);
            PollTimeout::try_from(u64::try_from(millis).unwrap_or(u64::MAX))
                .unwrap_or(PollTimeout::MAX)
        }
        None => PollTimeout::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use descartes_store::layout::StateRoot;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(20);

    fn woken(watch: &mut Watch) -> bool {
        let begun = Instant::now();
        watch.wait(Some(LONG));
        begun.elapsed() < LONG / 2
    }

    #[test]
    fn growth_of_a_log_wakes_whether_or_not_its_folder_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateRoot::at(folder.path()).loop_dir("x").unwrap();
        std::fs::create_dir_all(dir.path()).unwrap();
        let mut watch = Watch::new(Signal::new().unwrap());
        let run = dir.run(1);
        watch.run(&run);
        std::fs::create_dir_all(run.path()).unwrap();
        assert!(woken(&mut watch), "the folder");
        std::fs::write(run.stdout(), "x").unwrap();
        assert!(woken(&mut watch), "the log");
        watch.run(&dir.run(2));
        watch.signal.wake();
        assert!(woken(&mut watch), "a call");
        watch.wait(Some(Duration::from_millis(1)));
    }

    #[test]
    fn only_the_end_cuts_a_rest_short_and_calls_are_remembered() {
        let signal = Signal::new().unwrap();
        let mut watch = Watch::new(Arc::clone(&signal));
        signal.interrupt();
        signal.carry_on();
        let begun = Instant::now();
        signal.rest(Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        assert!(woken(&mut watch));
        assert_eq!(signal.interrupts(), 1);
        assert!(signal.was_away() && !signal.was_away());
        signal.finish();
        signal.rest(LONG);
        assert!(signal.is_finished() && begun.elapsed() < LONG / 2);
    }
}
