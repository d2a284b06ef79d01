//! Being told by the kernel when files change (inotify), and what to do where it cannot tell: a
//! user has a limited number of such instances and watches, and other programs take them. Whoever
//! gets none looks again every so often, and the process says so once ([`untold`]).

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{InitFlags, Inotify};
use tracing::warn;

pub use nix::sys::inotify::{AddWatchFlags, InotifyEvent, WatchDescriptor};

/// Where files cannot be watched they are looked at so often.
pub const BLIND: Duration = Duration::from_millis(250);

/// The kernel queues 16,384 events: after so many reads all that was there has been read, also
/// where somebody writes without a pause.
const ENOUGH_READS: usize = 20_000;

/// Why files are looked at instead of being watched.
static POLLING: OnceLock<&'static str> = OnceLock::new();
static TOLD: AtomicBool = AtomicBool::new(false);

/// Words for a person about files that cannot be watched in this process: once, and only if so.
pub fn untold() -> Option<String> {
    let why = POLLING.get()?;
    let told = TOLD.swap(true, Ordering::AcqRel);
    (!told).then(|| {
        format!(
            "{why}: polling files every {} ms instead",
            BLIND.as_millis()
        )
    })
}

/// Watches, as long as the system gives them.
#[derive(Debug)]
pub struct Watching {
    inotify: Option<Inotify>,
}

impl Default for Watching {
    fn default() -> Self {
        Self::new()
    }
}

impl Watching {
    /// Nothing is watched yet.
    pub fn new() -> Self {
        Self::try_new().unwrap_or_else(|error| {
            warn!(%error, "no inotify: polling instead");
            note(error);
            Self { inotify: None }
        })
    }

    /// The same for those who have another way where nothing can be watched.
    pub fn try_new() -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self {
            inotify: Some(inotify),
        })
    }

    /// Watches a path. `None` where it is not there; where it cannot be watched though it is there,
    /// nothing is watched any more: [`is_blind`](Self::is_blind).
    pub fn add(&mut self, path: &Path, what: AddWatchFlags) -> Option<WatchDescriptor> {
        self.try_add(path, what).unwrap_or_else(|error| {
            warn!(path = %path.display(), %error, "cannot be watched: polling instead");
            note(error);
            self.inotify = None;
            None
        })
    }

    /// The same for those who have another way where nothing can be watched.
    pub fn try_add(
        &self,
        path: &Path,
        what: AddWatchFlags,
    ) -> Result<Option<WatchDescriptor>, Errno> {
        let Some(inotify) = &self.inotify else {
            return Ok(None);
        };
        match inotify.add_watch(path, what) {
            Ok(watch) => Ok(Some(watch)),
            // Gone, or a link by now.
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches it no more. It may be gone, and its watch with it.
    pub fn remove(&self, watch: WatchDescriptor) {
        if let Some(inotify) = &self.inotify {
            let _ = inotify.rm_watch(watch);
        }
    }

    /// Gives up: from here on nothing is told.
    pub fn close(&mut self) {
        self.inotify = None;
    }

    /// Whether nothing will be told: one has to look.
    pub fn is_blind(&self) -> bool {
        self.inotify.is_none()
    }

    /// Readable when something happened.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// What happened so far.
    pub fn events(&self) -> Vec<InotifyEvent> {
        let mut all = Vec::new();
        // All that can be told is told by the events before an error.
        let _ = self.read(|event| all.push(event));
        all
    }

    /// Gives each event so far to `each`; an error where events may be missing.
    pub fn read(&self, mut each: impl FnMut(InotifyEvent)) -> Result<(), Errno> {
        let Some(inotify) = &self.inotify else {
            return Ok(());
        };
        for _ in 0..ENOUGH_READS {
            match inotify.read_events() {
                Ok(events) => events.into_iter().for_each(&mut each),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sleeps until something happened, at most `limit`; where nothing is told, at most `blind`.
    pub fn wait(&self, limit: Option<Duration>, blind: Duration) {
        let Some(inotify) = &self.inotify else {
            return std::thread::sleep(limit.map_or(blind, |limit| limit.min(blind)));
        };
        let mut fds = [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)];
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, timeout(limit));
    }
}

/// A length of time for `poll`.
pub fn timeout(limit: Option<Duration>) -> PollTimeout {
    // Rounded up: a sleep that is too short would be followed by another.
    let millis = |limit: Duration| u64::try_from(limit.as_micros().div_ceil(1000)).ok();
    match limit {
        None => PollTimeout::NONE,
        Some(limit) => millis(limit)
            .and_then(|millis| PollTimeout::try_from(millis).ok())
            .unwrap_or(PollTimeout::MAX),
    }
}

/// Remembers why nothing can be watched, where a person can do something about it.
fn note(error: Errno) {
    let why = match error {
        Errno::EMFILE => "out of inotify instances (fs.inotify.max_user_instances)",
        Errno::ENFILE => "this machine is out of file handles",
        Errno::ENOSPC => "out of inotify watches (fs.inotify.max_user_watches)",
        Errno::ENOMEM => "out of memory for watching files",
        _ => return,
    };
    POLLING.get_or_init(|| why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_is_not_there_is_not_watched_and_what_cannot_be_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let mut watching = Watching::new();
        let changes = AddWatchFlags::IN_CREATE;
        assert!(watching.add(&folder.path().join("no"), changes).is_none());
        assert!(!watching.is_blind());
        assert!(watching.add(folder.path(), changes).is_some());
        std::fs::write(folder.path().join("x"), "").unwrap();
        watching.wait(Some(Duration::from_secs(20)), BLIND);
        assert_eq!(watching.events().len(), 1);
        watching.close();
        let begun = Instant::now();
        watching.wait(None, Duration::from_millis(20));
        assert!(watching.is_blind() && begun.elapsed() >= Duration::from_millis(20));
        assert!(watching.events().is_empty() && watching.fd().is_none());
    }
}
