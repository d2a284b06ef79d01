//! Roadmap tasks as loops of their own: the names that roadmap users write against, over
//! the same engine as everything else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_agents::promise::{ClaimKind, PromiseMatch, PromiseSpec, find_in_text};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_store::state_file::{self, StateFileError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::IterativeLoopConfig;
use crate::host::{HostError, HostSettings};
use crate::iterative::{IterativeLoop, on_a_thread};
use crate::state::IterativeLoopState;

/// How a roadmap task loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RalphConfig {
    /// Whether it loops at all; else it gets a single attempt.
    pub enabled: bool,
    /// Iteration limit.
    pub max_iterations: u32,
    /// What the agent prints when it is done.
    pub completion_promise: String,
    /// Whether only `<promise>TEXT</promise>` counts.
    pub require_xml_format: bool,
}

impl Default for RalphConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_iterations: 30,
            completion_promise: "COMPLETE".to_owned(),
            require_xml_format: true,
        }
    }
}

/// What a task's loop came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RalphResult {
    /// Whether it is done.
    pub success: bool,
    /// Iterations that are over.
    pub iterations: u32,
    /// How long it took.
    pub total_duration: Duration,
    /// The last iteration's output, at most its last 1 MiB.
    pub final_output: String,
    /// Why it ended.
    pub reason: IterativeExitReason,
    /// The promise as it stood.
    pub promise_text: Option<String>,
    /// What went wrong, if anything did.
    pub error: Option<String>,
}

/// Looks for a promise in a whole text.
///
/// ```
/// use descartes_core::PromiseDetector;
///
/// let strict = PromiseDetector::new("COMPLETE", true);
/// assert_eq!(strict.check("Done!\n<promise>COMPLETE</promise>\n"), Some("COMPLETE".into()));
/// assert_eq!(strict.check("COMPLETE"), None);
/// assert_eq!(PromiseDetector::new("COMPLETE", false).check("**Complete.**"), Some("Complete".into()));
/// ```
#[derive(Clone, Debug)]
pub struct PromiseDetector(PromiseSpec);

impl PromiseDetector {
    /// For this text; with `require_xml_format` only the tagged form counts.
    pub fn new(promise: impl Into<String>, require_xml_format: bool) -> Self {
        let mode = if require_xml_format {
            PromiseMatch::Tagged
        } else {
            PromiseMatch::LineAnyCase
        };
        Self(PromiseSpec {
            done: Some(promise.into()),
            abort: None,
            mode,
        })
    }

    /// The promise as it stands in the text.
    pub fn check(&self, output: &str) -> Option<String> {
        let claim = find_in_text(&self.0, output)?;
        (claim.kind == ClaimKind::Done).then_some(claim.text)
    }
}

/// Counts a task's iterations against its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTracker {
    done: u32,
    max: u32,
}

impl IterationTracker {
    /// Begins at none.
    pub fn new(max: u32) -> Self {
        Self { done: 0, max }
    }

    /// Where a state file says a loop is.
    pub fn of(state: &IterativeLoopState) -> Self {
        Self {
            done: state.iteration,
            max: state.config.max_iterations.unwrap_or(u32::MAX),
        }
    }

    /// Counts one more.
    pub fn record(&mut self) {
        self.done = self.done.saturating_add(1);
    }

    /// Iterations that are over.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Iterations that are left.
    pub fn left(&self) -> u32 {
        self.max.saturating_sub(self.done)
    }

    /// Whether the limit is reached.
    pub fn is_exhausted(&self) -> bool {
        self.left() == 0
    }
}

/// Where the state files of a roadmap's tasks lie.
#[derive(Clone, Debug)]
pub struct RalphPersistence {
    folder: PathBuf,
}

impl RalphPersistence {
    /// In this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The state file of a task. An id that is no plain file name is made one, with a hash of the id
    /// behind it: no two tasks share a file.
    ///
    /// ```
    /// let tasks = descartes_core::RalphPersistence::new("tasks");
    /// assert_eq!(tasks.state_file("print_1"), std::path::Path::new("tasks/print_1.json"));
    /// assert_ne!(tasks.state_file("print/1"), tasks.state_file("print 1"));
    /// ```
    pub fn state_file(&self, task: &str) -> PathBuf {
        let name = plain_name(task);
        if name == task && task.len() <= LONGEST_PLAIN && !task.starts_with('.') {
            return self.folder.join(format!("{name}.json"));
        }
        let hash = Sha256::digest(task);
        let hash: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("{name:.60}-{hash}.json"))
    }

    /// What is known of a task; `None` if it was never begun.
    pub fn load(&self, task: &str) -> Result<Option<IterativeLoopState>, StateFileError> {
        Ok(self.find(task)?.map(|(_, state)| state))
    }

    /// The state of a task, and where it lies: version 0.1.0 had no hashes in names and no task's id
    /// in files.
    fn find(&self, task: &str) -> Result<Option<(PathBuf, IterativeLoopState)>, StateFileError> {
        let path = self.state_file(task);
        if let Some(state) = load(&path)? {
            return Ok(Some((path, state)));
        }
        let old = self.folder.join(format!("{}.json", plain_name(task)));
        if old == path {
            return Ok(None);
        }
        let state = load(&old)?.filter(|state| !state.config.extra.contains_key(TASK));
        Ok(state.map(|state| (old, state)))
    }
}

/// The field of a config that tells whose it is.
const TASK: &str = "task";

/// A longer id gets a short name and a hash.
const LONGEST_PLAIN: usize = 100;

fn plain_name(task: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    task.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

fn load(path: &Path) -> Result<Option<IterativeLoopState>, StateFileError> {
    match state_file::load(path) {
        Ok(loaded) => Ok(Some(loaded.state.into())),
        Err(StateFileError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Runs tasks as loops.
#[derive(Clone, Debug)]
pub struct RalphExecutor {
    config: RalphConfig,
    base: IterativeLoopConfig,
    persistence: RalphPersistence,
    settings: HostSettings,
}

impl RalphExecutor {
    /// `base` says which agent is run, where, with which gates.
    pub fn new(
        config: RalphConfig,
        base: IterativeLoopConfig,
        folder: &Path,
    ) -> Result<Self, HostError> {
        let settings = HostSettings::from_process()?;
        Ok(Self {
            config,
            base,
            persistence: RalphPersistence::new(folder),
            settings,
        })
    }

    /// In surroundings of your own.
    pub fn with_settings(self, settings: HostSettings) -> Self {
        Self { settings, ..self }
    }

    /// Where the state files lie.
    pub fn persistence(&self) -> &RalphPersistence {
        &self.persistence
    }

    /// Runs a task to its end, taking it up where an earlier run was interrupted.
    pub async fn execute(&self, task: &str, prompt: &str) -> Result<RalphResult, HostError> {
        let (persistence, id) = (self.persistence.clone(), task.to_owned());
        let find = move || Ok(persistence.find(&id)?);
        let own = self.persistence.state_file(task);
        let found = on_a_thread("descartes-task", find, drop).await?;
        let interrupted = found.filter(|(path, state)| {
            // An old file may be that of another task with the same name.
            !state.completed && (*path == own || state.config.prompt == prompt)
        });
        let settings = self.settings.clone();
        let mut this = match interrupted {
            Some((file, _)) => IterativeLoop::resume_with(&file, settings).await?,
            None => {
                let mut config = self.task_config(own, prompt);
                config.extra.insert(TASK.to_owned(), task.into());
                IterativeLoop::with_settings(config, settings).await?
            }
        };
        let result = this.execute().await?;
        let error = this.state().error.clone();
        Ok(RalphResult {
            success: result.exit_reason.is_success(),
            iterations: result.iterations_completed,
            total_duration: result.total_duration,
            final_output: result.final_output,
            reason: result.exit_reason,
            promise_text: result.completion_text,
            error,
        })
    }

    fn task_config(&self, state_file: PathBuf, prompt: &str) -> IterativeLoopConfig {
        let config = &self.config;
        let mut task = self.base.clone();
        prompt.clone_into(&mut task.prompt);
        task.state_file = Some(state_file);
        if !config.enabled {
            task.max_iterations = Some(1);
            task.completion_promise = None;
            return task;
        }
        task.max_iterations = Some(config.max_iterations);
        task.completion_promise = Some(config.completion_promise.clone());
        task.promise_hint = Some(true);
        let how = match config.require_xml_format {
            true => PromiseMatch::Tagged,
            false => PromiseMatch::LineAnyCase,
        };
        task.promise_match = Some(how.to_string());
        task
    }
}
