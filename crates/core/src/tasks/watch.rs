//! Tells when the task file is written, by whomever.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use super::News;
use crate::host::message::Message;

/// Tools write a file in several steps.
const SETTLE: Duration = Duration::from_millis(20);

/// Watches a file for as long as it lives. Where the system cannot tell, the file is read when
/// an attempt ends, and no sooner.
pub(super) struct FileWatch {
    stop: Arc<EventFd>,
    /// It was told, and not heard yet.
    told: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileWatch {
    /// Tells `tx` of every change from now on.
    pub(super) fn begin(path: &Path, tx: Sender<Message>) -> Option<Self> {
        let name = path.file_name()?.to_owned();
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
        // The folder: a file that is replaced as a whole is another file.
        let flags = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO;
        inotify.add_watch(path.parent()?, flags).ok()?;
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
        let stop = Arc::new(stop);
        let told = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            inotify,
            name,
            stop: Arc::clone(&stop),
            told: Arc::clone(&told),
            tx,
        };
        let thread = Builder::new().name("task file".to_owned());
        let thread = thread.spawn(move || watch.run()).ok()?;
        Some(Self {
            stop,
            told,
            thread: Some(thread),
        })
    }

    /// The file is about to be read: what is written from here on is told again.
    pub(super) fn heard(&self) {
        self.told.store(false, Ordering::Release);
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

struct Watch {
    inotify: Inotify,
    name: OsString,
    stop: Arc<EventFd>,
    told: Arc<AtomicBool>,
    tx: Sender<Message>,
}

impl Watch {
    fn run(&self) {
        loop {
            let mut fds = [
                PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN),
            ];
            // An interrupted sleep is a short one.
            let _ = poll(&mut fds, PollTimeout::NONE);
            if self.stop.read().is_ok() {
                return;
            }
            if !self.is_written() {
                continue;
            }
            std::thread::sleep(SETTLE);
            self.is_written();
            let news = Message::Task(Box::new(News::FileWritten));
            if !self.told.swap(true, Ordering::AcqRel) && self.tx.send(news).is_err() {
                return;
            }
        }
    }

    fn is_written(&self) -> bool {
        let events = self.inotify.read_events().unwrap_or_default();
        events
            .iter()
            .any(|event| event.name.as_deref() == Some(self.name.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

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
