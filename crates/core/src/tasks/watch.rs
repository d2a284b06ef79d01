//! Tells when the task file is written, by whomever.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use descartes_store::watching::{AddWatchFlags, BLIND, InotifyEvent, Watching, timeout};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::event::TaskEvent;
use crate::host::message::HostMessage;

/// Tools write a file in several steps.
const SETTLE: Duration = Duration::from_millis(20);

/// Watches a file for as long as it lives. Where the system cannot tell, it is looked at every
/// now and then.
pub(super) struct FileWatch {
    stop: Arc<EventFd>,
    /// It was told, and not heard yet.
    notified: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileWatch {
    /// Tells `tx` of every change from now on.
    pub(super) fn begin(path: &Path, tx: Sender<HostMessage>) -> Option<Self> {
        let (name, folders) = watched(path)?;
        let mut watching = Watching::new();
        let mut flags = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO;
        if name.is_none() {
            // Each task is a file: one that goes is news, too.
            flags |= AddWatchFlags::IN_MOVED_FROM | AddWatchFlags::IN_DELETE;
        }
        if folders
            .iter()
            .any(|folder| watching.add(folder, flags).is_none())
        {
            watching.close();
        }
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
        let stop = Arc::new(stop);
        let notified = Arc::new(AtomicBool::new(false));
        let watch = TaskFileWatch {
            watching,
            seen: shape(path),
            path: path.to_owned(),
            name,
            stop: Arc::clone(&stop),
            notified: Arc::clone(&notified),
            tx,
        };
        let thread = Builder::new().name("task file".to_owned());
        let mut watch = watch;
        let thread = thread.spawn(move || watch.run()).ok()?;
        Some(Self {
            stop,
            notified,
            thread: Some(thread),
        })
    }

    /// The file is about to be read: what is written from here on is told again.
    pub(super) fn heard(&self) {
        self.notified.store(false, Ordering::Release);
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        // A counter that is full wakes as well.
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct TaskFileWatch {
    watching: Watching,
    path: PathBuf,
    /// What the file looked like, where one has to look.
    seen: Shape,
    /// The file that counts; `None` is every one.
    name: Option<OsString>,
    stop: Arc<EventFd>,
    notified: Arc<AtomicBool>,
    tx: Sender<HostMessage>,
}

impl TaskFileWatch {
    fn run(&mut self) {
        loop {
            let mut fds = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
            let watched = self.watching.fd();
            fds.extend(watched.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            let limit = self.watching.is_blind().then_some(BLIND);
            // An interrupted sleep is a short one.
            let _ = poll(&mut fds, timeout(limit));
            if self.stop.read().is_ok() {
                return;
            }
            if !self.is_written() {
                continue;
            }
            std::thread::sleep(SETTLE);
            self.is_written();
            let news = HostMessage::Task(Box::new(TaskEvent::FileWritten));
            if !self.notified.swap(true, Ordering::AcqRel) && self.tx.send(news).is_err() {
                return;
            }
        }
    }

    fn is_written(&mut self) -> bool {
        if self.watching.is_blind() {
            let seen = shape(&self.path);
            return std::mem::replace(&mut self.seen, seen) != seen;
        }
        let events = self.watching.events();
        let file = self.name.as_deref();
        let told = |event: &InotifyEvent| may_concern(event.mask, event.name.as_deref(), file);
        let (told, lost) = events
            .iter()
            .fold((false, false), |(written, lost), event| {
                let gone = AddWatchFlags::IN_IGNORED | AddWatchFlags::IN_UNMOUNT;
                (written || told(event), lost || event.mask.intersects(gone))
            });
        if lost {
            // The folder is another one now, or none.
            self.watching.close();
        }
        told || lost
    }
}

/// Whether something that happened in a folder may be about the file: also where more happened than
/// the system could keep, and it says no more than that.
fn may_concern(mask: AddWatchFlags, name: Option<&OsStr>, file: Option<&OsStr>) -> bool {
    mask.contains(AddWatchFlags::IN_Q_OVERFLOW) || file.is_none() || name == file
}

/// The name that counts, and the folders to look at. For a file that is its folder, since a file that
/// is replaced as a whole is another file; for a folder of tasks it is the folder with those in it.
fn watched(path: &Path) -> Option<(Option<OsString>, Vec<PathBuf>)> {
    if !path.is_dir() {
        let name = path.file_name()?.to_owned();
        return Some((Some(name), vec![path.parent()?.to_owned()]));
    }
    let inside = fs_err::read_dir(path).ok()?.flatten();
    let inside = inside
        .map(|entry| entry.path())
        .filter(|entry| entry.is_dir());
    let folders = std::iter::once(path.to_owned()).chain(inside.take(16));
    Some((None, folders.collect()))
}

/// What tells that a file was written: which file it is, its size, when it was changed.
type Shape = Option<(u64, u64, i64, i64)>;

fn shape(path: &Path) -> Shape {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn more_events_than_the_system_keeps_may_concern_every_file() {
        let (file, other) = (OsStr::new("tasks.scg"), OsStr::new("other"));
        let (written, lost) = (AddWatchFlags::IN_CLOSE_WRITE, AddWatchFlags::IN_Q_OVERFLOW);
        assert!(may_concern(written, Some(file), Some(file)));
        assert!(!may_concern(written, Some(other), Some(file)));
        assert!(may_concern(lost, None, Some(file)));
        assert!(may_concern(written, Some(other), None));
    }

    #[test]
    fn a_folder_that_is_replaced_is_looked_at() {
        let world = tempfile::tempdir().unwrap();
        let folder = world.path().join("tasks");
        fs_err::create_dir(&folder).unwrap();
        let path = folder.join("tasks.scg");
        fs_err::write(&path, "a").unwrap();
        let (tx, rx) = channel();
        let watch = FileWatch::begin(&path, tx).unwrap();
        let patience = Duration::from_secs(20);
        fs_err::remove_dir_all(&folder).unwrap();
        assert!(rx.recv_timeout(patience).is_ok());
        watch.heard();
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(&path, "b").unwrap();
        assert!(rx.recv_timeout(patience).is_ok());
    }

    #[test]
    fn writes_and_replacements_are_told_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.scg");
        fs_err::write(&path, "a").unwrap();
        let (tx, rx) = channel();
        let watch = FileWatch::begin(&path, tx).unwrap();
        let patience = Duration::from_secs(20);
        fs_err::write(&path, "b").unwrap();
        assert!(rx.recv_timeout(patience).is_ok());
        // Not told twice before it is heard.
        fs_err::write(&path, "c").unwrap();
        assert!(rx.recv_timeout(Duration::from_millis(200)).is_err());
        watch.heard();
        fs_err::write(folder.path().join("other"), "x").unwrap();
        fs_err::write(folder.path().join("new"), "d").unwrap();
        fs_err::rename(folder.path().join("new"), &path).unwrap();
        assert!(rx.recv_timeout(patience).is_ok());
        drop(watch);
        assert!(rx.recv_timeout(patience).is_err());
    }
}
