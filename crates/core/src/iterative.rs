//! The library's front door: one loop as a value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use descartes_kernel::config as typed;
use descartes_kernel::config::ConfigChange;
use descartes_kernel::event::{Record, StopBy};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_store::host::this_host;
use descartes_store::layout::{LoopDir, PROJECT_FOLDER, STATE_FILE};
use descartes_store::lock::{Held, holder_of};
use descartes_store::state_file;
use tokio::sync::{broadcast, oneshot};

use crate::backend::LoopBackend;
use crate::config::IterativeLoopConfig;
use crate::host::{
    Host, HostEnd, HostError, HostSettings, NewLoop, OnExistingState, Resume, Resumed,
};
use crate::loops;
use crate::state::IterativeLoopState;

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
    state_file: PathBuf,
    final_output: String,
    notices: Vec<String>,
    cancel: Arc<AtomicBool>,
    records: broadcast::Sender<Arc<Record>>,
}

/// What a loop's thread hands back.
struct Driven {
    end: HostEnd,
    state: IterativeLoopState,
    final_output: String,
}

impl IterativeLoop {
    /// Begins a loop. A state file whose loop has ended is set aside, dated; one whose loop
    /// was interrupted is an error: that is what [`resume`](Self::resume) is for. Where no state file
    /// is named and another loop of this process has the usual one, this one gets a file of its own
    /// beside it; [`notices`](Self::notices) say so.
    pub async fn new(config: IterativeLoopConfig) -> Result<Self, HostError> {
        Self::begin(HostSettings::from_process, || config.try_into()).await
    }

    /// Begins a loop with a backend of your own.
    pub async fn with_backend(
        mut config: IterativeLoopConfig,
        backend: Arc<dyn LoopBackend>,
    ) -> Result<Self, HostError> {
        if config.command.is_empty() {
            config.command = backend.command().to_owned();
        }
        let settings = || {
            Ok(HostSettings {
                backend: Some(backend),
                ..HostSettings::from_process()?
            })
        };
        Self::begin(settings, || config.try_into()).await
    }

    /// Begins a loop in surroundings of your own.
    pub async fn with_settings(
        config: IterativeLoopConfig,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        Self::begin(|| Ok(settings), || config.try_into()).await
    }

    /// Begins the loop of a config that may have to be looked for.
    pub(crate) async fn begin(
        settings: impl FnOnce() -> Result<HostSettings, HostError> + Send + 'static,
        config: impl FnOnce() -> Result<typed::IterativeLoopConfig, HostError> + Send + 'static,
    ) -> Result<Self, HostError> {
        let make = || create(cancellable(settings()?), config()?);
        let host = on_a_thread("descartes-new", make, |host: Host| {
            // Nobody waits for it any more: it is over before it began.
            host.remote().stop(StopBy::Handle);
            drop(host.run());
        });
        Ok(Self::around(host.await?))
    }

    /// Takes up a loop from its state file.
    pub async fn resume(state_file: impl AsRef<Path>) -> Result<Self, HostError> {
        let change = ConfigChange::default();
        Self::take_up(state_file.as_ref(), change, HostSettings::from_process).await
    }

    /// Takes up a loop from its state file, in surroundings of your own.
    pub async fn resume_with(
        state_file: impl AsRef<Path>,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        Self::resume_changed(state_file, ConfigChange::default(), settings).await
    }

    /// Takes up a loop from its state file, with other limits, gates, prompt or model.
    pub async fn resume_changed(
        state_file: impl AsRef<Path>,
        change: ConfigChange,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        Self::take_up(state_file.as_ref(), change, || Ok(settings)).await
    }

    async fn take_up(
        state_file: &Path,
        change: ConfigChange,
        settings: impl FnOnce() -> Result<HostSettings, HostError> + Send + 'static,
    ) -> Result<Self, HostError> {
        let path = state_file.to_owned();
        let resume = Resume {
            here: None,
            state_file: path.clone(),
            loop_id: None,
            change,
            environment: Default::default(),
            accept: descartes_kernel::edits::Accept::Harmless,
            retry: Default::default(),
            from: None,
        };
        let file = path.clone();
        let take_up = move || {
            let mut notices = Vec::new();
            match loops::resume(cancellable(settings()?), resume, &mut notices)? {
                Resumed::Go(host) => Ok(Ok(host)),
                Resumed::Done(reason) | Resumed::AtLimit { reason, .. } => {
                    Ok(Err((reason, state_file::load(&file)?.state, notices)))
                }
            }
        };
        // One that nobody waits for stays as it was: to be resumed.
        match on_a_thread("descartes-resume", take_up, drop).await? {
            Ok(host) => Ok(Self::around(*host)),
            Err((reason, state, notices)) => Ok(Self {
                host: None,
                finished: Some(reason),
                state: state.into(),
                state_file: path,
                final_output: String::new(),
                notices,
                cancel: Arc::default(),
                records: broadcast::channel(BACKLOG).0,
            }),
        }
    }

    fn around(mut host: Host) -> Self {
        let records = broadcast::channel(BACKLOG).0;
        let sender = records.clone();
        host.listen(Box::new(move |record| {
            // Nobody listening is no reason to stop telling.
            drop(sender.send(Arc::new(record.clone())));
            true
        }));
        Self {
            state: host.state_so_far().into(),
            state_file: host.state_file().to_owned(),
            notices: host.notices().to_owned(),
            cancel: host.cancel_flag(),
            host: Some(host),
            finished: None,
            final_output: String::new(),
            records,
        }
    }

    /// Runs the loop to its end. Dropping the future cancels the loop and ends its agent.
    pub async fn execute(&mut self) -> Result<IterativeLoopResult, HostError> {
        let began = Instant::now();
        if let Some(host) = self.host.take() {
            let mut guard = CancelOnDrop(Some(self.cancel.clone()));
            let driven = on_a_thread("descartes-loop", || drive(host), drop).await;
            guard.0 = None;
            let driven = driven?;
            self.finished = Some(driven.end.reason);
            self.state = driven.state;
            self.final_output = driven.final_output;
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
            final_output: self.final_output.clone(),
            exit_reason,
            total_duration: began.elapsed(),
        })
    }

    /// Where its state file lies.
    pub fn state_file(&self) -> &Path {
        &self.state_file
    }

    /// What was found and mended on the way, and what a person should know before it runs.
    pub fn notices(&self) -> &[String] {
        &self.notices
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

/// With a flag that cancels: the one that was given, or one of its own.
fn cancellable(settings: HostSettings) -> HostSettings {
    HostSettings {
        cancel: Some(settings.cancel.unwrap_or_default()),
        ..settings
    }
}

/// Work that waits for disks and processes: an async function must not do it itself. What comes of it
/// when nobody waits any more goes to `orphan`.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    orphan: impl FnOnce(T) + Send + 'static,
) -> Result<T, HostError> {
    let (tx, rx) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let spawned = thread.spawn(move || {
        if let Err(Ok(left)) = tx.send(work()) {
            orphan(left);
        }
    });
    spawned.map_err(|error| HostError::Internal(format!("cannot start a thread: {error}")))?;
    let died = || Err(HostError::Internal("the loop's thread died".to_owned()));
    rx.await.unwrap_or_else(|_| died())
}

/// Loops of this process begin one after the other, so that each sees the files of those before it.
static BEGINNING: Mutex<()> = Mutex::new(());

/// Begins a loop, beside those of this process where it names no state file.
fn create(
    settings: HostSettings,
    mut config: typed::IterativeLoopConfig,
) -> Result<Host, HostError> {
    let begin = |config| {
        let new = NewLoop {
            config,
            name: None,
            existing: OnExistingState::ArchiveIfFinished,
        };
        loops::create(settings.clone(), new)
    };
    if config.state_file.is_some() {
        return begin(config);
    }
    let _alone = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = config.working_directory.clone().unwrap_or_default();
    let folder = dir.join(PROJECT_FOLDER);
    let usual = folder.join(STATE_FILE);
    // A directory that cannot be looked into is refused when the loop begins.
    let holder = |path: &Path| holder_of(&settings.root, path).ok().flatten();
    let Some(other) = holder(&usual).and_then(|held| of_this_process(held, &settings)) else {
        return begin(config);
    };
    let mut names = (2u32..).map(|n| folder.join(format!("loop-state-{n}.json")));
    let own = names.find(|path| holder(path).is_none());
    config.state_file = own;
    let mut host = begin(config)?;
    let notice = format!(
        "loop {other} of this process already uses {}: this loop's state file is {}",
        usual.display(),
        host.state_file().display()
    );
    host.say(notice)?;
    Ok(host)
}

/// The loop that holds a state file, where this process runs it.
fn of_this_process(held: Held, settings: &HostSettings) -> Option<String> {
    let holder = held.holder?;
    let us = this_host(&settings.version);
    let them = &holder.host;
    let same = (them.pid, them.start_time) == (us.pid, us.start_time)
        && (&them.boot_id, &them.pid_ns) == (&us.boot_id, &us.pid_ns);
    same.then_some(holder.loop_id)
}

fn drive(host: Host) -> Result<Driven, HostError> {
    let (state_file, dir) = (host.state_file().to_owned(), host.dir().clone());
    let end = host.run()?;
    Ok(Driven {
        end,
        state: state_file::load(&state_file)?.state.into(),
        final_output: final_output(&dir),
    })
}

fn final_output(dir: &LoopDir) -> String {
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

struct CancelOnDrop(Option<Arc<AtomicBool>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}
