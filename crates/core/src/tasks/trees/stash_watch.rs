//! Watches git's list of stashes while several agents share it.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use descartes_store::watching::{AddWatchFlags, BLIND, Watching, timeout};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::stash_list::StashList;

/// The list is looked at so often besides: its folder may not be there when the watch begins.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Reads the list whenever it changes, for as long as it lives. A second thread finds out who took
/// what, for it asks git: the list may change again in the time that takes.
pub(super) struct StashWatch {
    stop: Arc<EventFd>,
    threads: Vec<JoinHandle<()>>,
}

impl StashWatch {
    /// Nothing where the system has no thread left: then the list is looked at between attempts.
    pub(super) fn begin(list: &Arc<StashList>, folder: &Path) -> Option<Self> {
        let mut watching = Watching::new();
        let flags = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_ONLYDIR;
        if watching.add(folder, flags).is_none() {
            watching.close();
        }
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok()?;
        let stop = Arc::new(stop);
        let (changed, changes) = sync_channel(1);
        let (reader, asker) = (Arc::clone(list), Arc::clone(list));
        let stopped = Arc::clone(&stop);
        let read = move || read(&reader, &watching, &changed, &stopped);
        let ask = move || changes.iter().for_each(|()| asker.find_takers());
        let named = |name: &str| Builder::new().name(name.to_owned());
        let reader = named("stashes").spawn(read).ok()?;
        // Without the second one takers are found between attempts.
        let asker = named("stash takers").spawn(ask).ok();
        let threads = [reader].into_iter().chain(asker).collect();
        Some(Self { stop, threads })
    }
}

fn read(list: &StashList, watching: &Watching, changed: &SyncSender<()>, stop: &EventFd) {
    loop {
        // A list that cannot be read now is read again: what lies there from the beginning is
        // known too, so that its end is noticed.
        let noted = list.take_note();
        let limit = match noted.is_err() || watching.is_blind() {
            true => BLIND,
            false => LOOK_AGAIN,
        };
        if list.is_something_gone() {
            // One that waits is enough: all that is gone is asked for at once.
            let _ = changed.try_send(());
        }
        let mut fds = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        fds.extend(watching.fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, timeout(Some(limit)));
        if stop.read().is_ok() {
            return;
        }
        // Whatever was told, the list itself says what is new.
        drop(watching.events());
    }
}

impl Drop for StashWatch {
    fn drop(&mut self) {
        // A counter that is full wakes as well.
        let _ = self.stop.write(1);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
