//! Lines to standard error, from a thread of its own: a reader that is slow, stopped or gone keeps
//! nobody waiting. Lines that it does not take are counted.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::SigSet;

/// Lines that wait for a slow reader.
const QUEUED_LINES: usize = 4096;

enum LogMessage {
    Line(Vec<u8>),
    /// To be answered once everything before it is written.
    Flush(SyncSender<()>),
}

/// The queue of the thread, for [`flush`].
static QUEUE: OnceLock<SyncSender<LogMessage>> = OnceLock::new();

pub(super) struct StderrWriter {
    queue: SyncSender<LogMessage>,
    dropped: AtomicU64,
}

impl StderrWriter {
    /// `None` where no thread can be had.
    pub(super) fn start() -> Option<Self> {
        let (queue, lines) = sync_channel(QUEUED_LINES);
        let thread = thread::Builder::new().name("debug-log".to_owned());
        thread.spawn(move || write_lines(&lines)).ok()?;
        let queue = QUEUE.get_or_init(|| queue).clone();
        let dropped = AtomicU64::new(0);
        Some(Self { queue, dropped })
    }

    pub(super) fn write(&self, mut line: Vec<u8>) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let note = format!("({dropped} lines were dropped here)\n");
            line.splice(0..0, note.into_bytes());
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(LogMessage::Line(line)) {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

fn write_lines(lines: &Receiver<LogMessage>) {
    // Signals are for the thread that waits for them, which may begin later than this one.
    let _ = SigSet::all().thread_block();
    for message in lines {
        match message {
            // Nobody may read it any more: that is no reason to stop.
            LogMessage::Line(line) => drop(io::stderr().write_all(&line)),
            LogMessage::Flush(done) => drop(done.try_send(())),
        }
    }
}

/// Waits until everything logged so far is written, at most `limit`.
pub(super) fn flush(limit: Duration) {
    let Some(queue) = QUEUE.get() else { return };
    let (done, written) = sync_channel(1);
    if queue.try_send(LogMessage::Flush(done)).is_ok() {
        let _ = written.recv_timeout(limit);
    }
}
