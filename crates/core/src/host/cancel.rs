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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use descartes_kernel::config::{IterativeLoopConfig, LoopBackendConfig, PromptMode};
    use descartes_kernel::event::Event;
    use descartes_kernel::outcome::IterativeExitReason;
    use descartes_store::layout::StateRoot;
    use descartes_text::units::Secs;

    use super::*;
    use crate::host::message::HostMessage;
    use crate::host::{HostSettings, NewLoop, OnExistingState};
    use crate::loops::create;

    #[test]
    fn a_flag_is_heard_in_a_crowd_of_messages() {
        let folder = tempfile::tempdir().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let settings = HostSettings {
            root: StateRoot::at(folder.path().join("state")),
            cancel: Some(flag.clone()),
            ..HostSettings::from_process().unwrap()
        };
        let config = IterativeLoopConfig {
            command: "sleep".into(),
            args: vec!["90".into()],
            working_directory: Some(folder.path().to_owned()),
            kill_grace_secs: Some(Secs::new(0)),
            backend: LoopBackendConfig {
                prompt_mode: Some(PromptMode::None),
                ..LoopBackendConfig::default()
            },
            ..IterativeLoopConfig::default()
        };
        let new = NewLoop {
            config,
            name: None,
            existing: OnExistingState::Error,
        };
        let mut host = create(settings, new).unwrap();
        let (started, starts) = channel();
        host.listen(Box::new(move |record| {
            if matches!(record.event, Event::RunStarted { .. }) {
                return started.send(()).is_ok();
            }
            true
        }));
        let crowd = host.driver().tx.clone();
        let (ended, end) = channel();
        thread::spawn(move || ended.send(host.run()).is_ok());
        thread::spawn(move || {
            // Until the loop is over.
            while crowd.send(HostMessage::FilesGone).is_ok() {
                thread::sleep(Duration::from_millis(2));
            }
        });
        starts.recv_timeout(Duration::from_secs(60)).unwrap();
        flag.store(true, Ordering::Relaxed);
        let end = end.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(end.reason, IterativeExitReason::UserCancelled);
    }
}
