//! The library's front door: one loop as a value.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::event::Record;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::IterativeLoopState;
use descartes_store::layout::LoopDir;
use descartes_store::state_file;
use tokio::sync::{broadcast, oneshot};

use crate::backend::LoopBackend;
use crate::host::{
    self, Existing, Host, HostEnd, HostError, HostSettings, NewLoop, Resume, Resumed,
};

/// Bytes of the last iteration's output that a result carries.
const FINAL_OUTPUT: usize = 1 << 20;

/// Records a slow subscriber may be behind before it loses the oldest.
const BACKLOG: usize = 1024;

/// What a loop came to.
#[derive(Clone, Debug)]
pub struct IterativeLoopResult {
    /// Iterations that are over.
    pub iterations_completed: u32,
    /// Whether the promise was found (and every gate was green).
    pub completion_promise_found: bool,
    /// The promise as it stood.
    pub completion_text: Option<String>,
    /// The last iteration's standard output, at most its last 1 MiB.
    pub final_output: String,
    /// Why the loop ended.
    pub exit_reason: IterativeExitReason,
    /// How long this call took.
    pub total_duration: Duration,
}

/// One prompt, run through an agent again and again until it is proven done.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use descartes_core::{IterativeLoop, IterativeLoopConfig};
///
/// # let folder = tempfile::tempdir()?;
/// let mut l = IterativeLoop::new(IterativeLoopConfig {
///     command: "echo".into(),
///     prompt: "<promise>COMPLETE</promise>".into(),
///     completion_promise: Some("COMPLETE".into()),
///     working_directory: Some(folder.path().into()),
///     ..Default::default()
/// })
/// .await?;
/// let result = l.execute().await?;
/// assert!(result.completion_promise_found);
/// assert_eq!(result.iterations_completed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct IterativeLoop {
    host: Option<Host>,
    finished: Option<IterativeExitReason>,
    state: IterativeLoopState,
    dir: Option<LoopDir>,
    cancel: Arc<AtomicBool>,
    records: broadcast::Sender<Arc<Record>>,
}

impl IterativeLoop {
    /// Begins a loop. A state file whose loop has ended is set aside, dated; one whose loop
    /// was interrupted is an error: that is what [`resume`](Self::resume) is for.
    pub async fn new(config: IterativeLoopConfig) -> Result<Self, HostError> {
        Self::with_settings(config, HostSettings::from_process()?).await
    }

    /// Begins a loop with a backend of your own.
    pub async fn with_backend(
        mut config: IterativeLoopConfig,
        backend: Arc<dyn LoopBackend>,
    ) -> Result<Self, HostError> {
        if config.command.is_empty() {
            config.command = backend.command().to_owned();
        }
        let settings = HostSettings {
            backend: Some(backend),
            ..HostSettings::from_process()?
        };
        Self::with_settings(config, settings).await
    }

    /// Begins a loop in surroundings of your own.
    pub async fn with_settings(
        config: IterativeLoopConfig,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        let cancel = settings.cancel.clone().unwrap_or_default();
        let settings = HostSettings {
            cancel: Some(cancel.clone()),
            ..settings
        };
        let new = NewLoop {
            config,
            name: None,
            existing: Existing::KeepEnded,
        };
        Ok(Self::around(host::create(settings, new)?, cancel))
    }

    /// Takes up a loop from its state file.
    pub async fn resume(state_file: impl AsRef<Path>) -> Result<Self, HostError> {
        Self::resume_with(state_file, HostSettings::from_process()?).await
    }

    /// Takes up a loop from its state file, in surroundings of your own.
    pub async fn resume_with(
        state_file: impl AsRef<Path>,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        let cancel = settings.cancel.clone().unwrap_or_default();
        let settings = HostSettings {
            cancel: Some(cancel.clone()),
            ..settings
        };
        let resume = Resume {
            here: None,
            state_file: state_file.as_ref().to_owned(),
            loop_id: None,
            change: ConfigChange::default(),
            environment: Default::default(),
            accept: descartes_kernel::edits::Accept::Harmless,
            retry: Default::default(),
        };
        match host::resume(settings, resume)? {
            Resumed::Go(host) => Ok(Self::around(*host, cancel)),
            Resumed::Done(reason) | Resumed::AtLimit(reason) => {
                let state = state_file::load(state_file.as_ref())?.state;
                let records = broadcast::channel(BACKLOG).0;
                let finished = Some(reason);
                Ok(Self {
                    host: None,
                    finished,
                    state,
                    dir: None,
                    cancel,
                    records,
                })
            }
        }
    }

    fn around(mut host: Host, cancel: Arc<AtomicBool>) -> Self {
        let records = broadcast::channel(BACKLOG).0;
        let sender = records.clone();
        host.listen(Box::new(move |record| {
            // Nobody listening is no reason to stop telling.
            drop(sender.send(Arc::new(record.clone())));
            true
        }));
        let state = host.state().project(&Default::default());
        let dir = Some(host.dir().clone());
        Self {
            host: Some(host),
            finished: None,
            state,
            dir,
            cancel,
            records,
        }
    }

    /// Runs the loop to its end. Dropping the future cancels the loop and ends its agent.
    pub async fn execute(&mut self) -> Result<IterativeLoopResult, HostError> {
        let began = Instant::now();
        if let Some(host) = self.host.take() {
            let state_file = host.state_file().to_owned();
            let end = self.drive(host).await?;
            self.finished = Some(end.reason);
            self.state = state_file::load(&state_file)?.state;
        }
        let exit_reason = self.finished.clone().unwrap_or_default();
        Ok(IterativeLoopResult {
            iterations_completed: self.state.iteration,
            completion_promise_found: exit_reason == IterativeExitReason::CompletionPromiseDetected,
            completion_text: self
                .state
                .completion_text
                .clone()
                .filter(|text| !text.is_empty()),
            final_output: self.final_output(),
            exit_reason,
            total_duration: began.elapsed(),
        })
    }

    async fn drive(&self, host: Host) -> Result<HostEnd, HostError> {
        let (tx, rx) = oneshot::channel();
        let thread = std::thread::Builder::new().name("descartes-loop".to_owned());
        let spawned = thread.spawn(move || {
            // A receiver that is gone has cancelled the loop already.
            drop(tx.send(host.run()));
        });
        spawned.map_err(|error| HostError::Internal(format!("cannot start a thread: {error}")))?;
        let mut guard = CancelOnDrop(Some(self.cancel.clone()));
        let end = rx.await;
        guard.0 = None;
        end.unwrap_or_else(|_| Err(HostError::Internal("the loop's thread died".to_owned())))
    }

    fn final_output(&self) -> String {
        let Some(dir) = &self.dir else {
            return String::new();
        };
        let runs = fs_err::read_dir(dir.runs()).into_iter().flatten().flatten();
        let newest = runs
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok())
            .max();
        let Some(run) = newest else {
            return String::new();
        };
        let tail = descartes_store::logs::tail(&dir.run(run).stdout(), usize::MAX, FINAL_OUTPUT);
        String::from_utf8_lossy(&tail.unwrap_or_default()).into_owned()
    }

    /// The state as of the last call that changed it.
    pub fn state(&self) -> &IterativeLoopState {
        &self.state
    }

    /// Count of finished iterations.
    pub fn current_iteration(&self) -> u32 {
        self.state.iteration
    }

    /// Whether the loop has ended.
    pub fn is_completed(&self) -> bool {
        self.state.completed
    }

    /// Set it to cancel the loop from anywhere.
    pub fn cancellation_handle(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// The same events the views get.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Record>> {
        self.records.subscribe()
    }
}

struct CancelOnDrop(Option<Arc<AtomicBool>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}
