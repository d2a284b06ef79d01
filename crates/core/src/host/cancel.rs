//! The flag by which a library user cancels a loop. Setting an atomic wakes nobody, so somebody has
//! to look: a thread of its own, so that the driver sleeps through and a busy queue hides nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use descartes_kernel::event::StopBy;

use super::{HostError, Remote};

/// How often the flag is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks at a flag until it is dropped.
pub(super) struct CancelWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CancelWatch {
    pub(super) fn begin(flag: Arc<AtomicBool>, remote: Remote) -> Result<Self, HostError> {
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        let thread = thread::Builder::new().name("cancel".to_owned());
        let thread = thread.spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if flag.load(Ordering::Relaxed) {
                    return remote.stop(StopBy::Handle);
                }
                thread::park_timeout(LOOK_EVERY);
            }
        });
        let thread = thread
            .map_err(|error| HostError::Internal(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for CancelWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only looks; it has nothing to lose.
            drop(thread.join());
        }
    }
}
