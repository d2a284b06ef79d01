//! The library's front door to task loops.

use std::path::PathBuf;

use descartes_kernel::config as typed;
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};
use descartes_plans::spec::LoopSpecConfig;
use descartes_text::path_text;
use serde::{Deserialize, Serialize};

use super::scud::find_task_file;
use crate::config::IterativeLoopConfig;
use crate::host::{HostError, HostSettings};
use crate::iterative::{IterativeLoop, IterativeLoopResult};
use crate::state::IterativeLoopState;

/// Runs tasks where no other agent is named.
const DEFAULT_AGENT: &str = "claude";

/// A tag of a SCUD project, run task by task.
///
/// ```
/// use std::path::PathBuf;
/// use descartes_core::{LoopSpecConfig, ScudLoopConfig};
///
/// let config = ScudLoopConfig {
///     tag: "feature-x".to_string(),
///     plan_path: Some(PathBuf::from("plan.md")),
///     max_iterations_per_task: 3,
///     max_total_iterations: 100,
///     use_sub_agents: true,
///     verification_command: Some("cargo check && cargo test".to_string()),
///     auto_commit_waves: true,
///     spec: LoopSpecConfig {
///         include_task: true,
///         include_plan_section: true,
///         additional_specs: vec![PathBuf::from("./ARCHITECTURE.md")],
///         max_spec_tokens: Some(5000),
///         spec_template: None,
///     },
///     ..Default::default()
/// };
/// let text = serde_json::to_string(&config)?;
/// assert_eq!(serde_json::from_str::<ScudLoopConfig>(&text)?, config);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScudLoopConfig {
    /// The tag whose tasks are run.
    pub tag: String,
    /// The implementation plan.
    #[serde(with = "path_text::maybe")]
    pub plan_path: Option<PathBuf>,
    /// Notes from an earlier run.
    #[serde(with = "path_text::maybe")]
    pub handoff_path: Option<PathBuf>,
    /// Attempts at a task.
    pub max_iterations_per_task: u32,
    /// Attempts over all tasks.
    pub max_total_iterations: u32,
    /// One fresh agent for each attempt; else one agent is given a whole wave.
    pub use_sub_agents: bool,
    /// The gate; `None`: what the project brings along.
    pub verification_command: Option<String>,
    /// One commit for each wave.
    pub auto_commit_waves: bool,
    /// Whether a wave ends before the next begins.
    pub wave_barrier: bool,
    /// Tasks at the same time.
    pub parallel: u32,
    /// Whether to work in the user's own tree.
    pub in_place: bool,
    /// The address of the engine by which workers on other machines make the attempts.
    pub workers: Option<String>,
    /// The address of a repository by which their work travels; none: through the engine.
    pub git_remote: Option<String>,
    /// What the agents are told.
    pub spec: LoopSpecConfig,
    /// The agent (`claude` where none is named) and everything else that a loop has; its prompt is
    /// not used.
    pub base: IterativeLoopConfig,
}

impl Default for ScudLoopConfig {
    fn default() -> Self {
        Self {
            tag: String::new(),
            plan_path: None,
            handoff_path: None,
            max_iterations_per_task: 3,
            max_total_iterations: 100,
            use_sub_agents: true,
            verification_command: None,
            auto_commit_waves: true,
            wave_barrier: true,
            parallel: 1,
            in_place: false,
            workers: None,
            git_remote: None,
            spec: LoopSpecConfig::default(),
            base: IterativeLoopConfig {
                completion_promise: Some("COMPLETE".to_owned()),
                ..IterativeLoopConfig::default()
            },
        }
    }
}

impl ScudLoopConfig {
    /// The same as the config of a loop.
    pub fn into_loop(self) -> Result<IterativeLoopConfig, HostError> {
        self.into_typed().map(IterativeLoopConfig::from)
    }

    fn into_typed(self) -> Result<typed::IterativeLoopConfig, HostError> {
        let dir = self
            .base
            .working_directory
            .clone()
            .unwrap_or_else(|| ".".into());
        let dir = fs_err::canonicalize(&dir)
            .map_err(|error| HostError::usage(error.to_string(), "choose an existing directory"))?;
        let Some(file) = find_task_file(&dir, &self.tag) else {
            return Err(HostError::refused(
                format!("there are no SCUD tasks in {} or above it", dir.display()),
                format!(
                    "a file with a first task: {}",
                    descartes_plans::scud::first_task_command(
                        std::path::Path::new(".scud/tasks/tasks.scg"),
                        &self.tag
                    )
                ),
            ));
        };
        let mut config = typed::IterativeLoopConfig::try_from(self.base)?;
        if config.command.is_empty() {
            DEFAULT_AGENT.clone_into(&mut config.command);
            if config.backend.backend_type == typed::LoopBackendConfig::default().backend_type {
                DEFAULT_AGENT.clone_into(&mut config.backend.backend_type);
                config.backend.prompt_mode = None;
            }
        }
        if let Some(gate) = self.verification_command {
            config.verify = vec![gate];
        } else if config.verify.is_empty()
            && let Some(found) = super::found_gates(&dir)?
        {
            config.verify = found.commands;
        }
        config.max_iterations = Some(self.max_total_iterations);
        let source = TaskFile::Scud {
            tag: self.tag,
            file,
        };
        config.tasks = Some(Box::new(TasksConfig {
            plan_path: self.plan_path,
            handoff_path: self.handoff_path,
            max_iterations_per_task: self.max_iterations_per_task.max(1),
            use_sub_agents: self.use_sub_agents,
            auto_commit_waves: self.auto_commit_waves,
            wave_barrier: self.wave_barrier,
            parallel: self.parallel.max(1),
            place: match self.in_place {
                true => WorkPlace::InPlace,
                false => WorkPlace::Worktrees,
            },
            spec: self.spec,
            workers: self.workers,
            git_remote: self.git_remote,
            ..TasksConfig::new(source)
        }));
        Ok(config)
    }
}

/// A task loop over a SCUD tag.
#[derive(Debug)]
pub struct ScudIterativeLoop {
    inner: IterativeLoop,
}

impl ScudIterativeLoop {
    /// Begins a task loop; every check is made before the first agent is started.
    pub async fn new(config: ScudLoopConfig) -> Result<Self, HostError> {
        let inner = IterativeLoop::begin(HostSettings::from_process, || config.into_typed());
        Ok(Self {
            inner: inner.await?,
        })
    }

    /// Begins a task loop in surroundings of your own.
    pub async fn with_settings(
        config: ScudLoopConfig,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        let inner = IterativeLoop::begin(|| Ok(settings), || config.into_typed()).await?;
        Ok(Self { inner })
    }

    /// Runs the tasks until nothing more can be done.
    pub async fn execute(&mut self) -> Result<IterativeLoopResult, HostError> {
        self.inner.execute().await
    }

    /// The state as of the last call that changed it.
    pub fn state(&self) -> &IterativeLoopState {
        self.inner.state()
    }

    /// The loop behind it: cancellation, events.
    pub fn as_loop(&self) -> &IterativeLoop {
        &self.inner
    }
}
