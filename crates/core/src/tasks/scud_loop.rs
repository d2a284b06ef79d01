//! The library's front door to task loops.

use std::path::PathBuf;

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::spec::LoopSpecConfig;
use descartes_kernel::state::IterativeLoopState;
use descartes_kernel::tasks::{TaskFile, TasksConfig, WorkPlace};

use super::scud::find_task_file;
use crate::host::{HostError, HostSettings};
use crate::iterative::{IterativeLoop, IterativeLoopResult};

/// A tag of a SCUD project, run task by task.
#[derive(Clone, Debug)]
pub struct ScudLoopConfig {
    /// The tag whose tasks are run.
    pub tag: String,
    /// The implementation plan.
    pub plan_path: Option<PathBuf>,
    /// Notes of an earlier run.
    pub handoff_path: Option<PathBuf>,
    /// Attempts at a task.
    pub max_iterations_per_task: u32,
    /// Attempts over all tasks; `None` is no limit.
    pub max_total_iterations: Option<u32>,
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
    /// What the agents are told.
    pub spec: LoopSpecConfig,
    /// The agent and everything else that a loop has; its prompt is not used.
    pub base: IterativeLoopConfig,
}

impl Default for ScudLoopConfig {
    fn default() -> Self {
        Self {
            tag: String::new(),
            plan_path: None,
            handoff_path: None,
            max_iterations_per_task: 3,
            max_total_iterations: Some(100),
            use_sub_agents: true,
            verification_command: None,
            auto_commit_waves: true,
            wave_barrier: true,
            parallel: 1,
            in_place: false,
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
        let dir = self
            .base
            .working_directory
            .clone()
            .unwrap_or_else(|| ".".into());
        let dir = fs_err::canonicalize(&dir)
            .map_err(|error| HostError::usage(error.to_string(), "give a directory that exists"))?;
        let Some(file) = find_task_file(&dir, &self.tag) else {
            return Err(HostError::refused(
                format!("there are no SCUD tasks in {} or above it", dir.display()),
                "make them with `scud init`, or give the project with --working-dir",
            ));
        };
        let mut config = self.base;
        if let Some(gate) = self.verification_command {
            config.verify = vec![gate];
        } else if config.verify.is_empty()
            && let Some(found) = super::found_gates(&dir)
        {
            config.verify = found.commands;
        }
        config.max_iterations = self.max_total_iterations;
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
        let inner = IterativeLoop::new(config.into_loop()?).await?;
        Ok(Self { inner })
    }

    /// Begins a task loop in surroundings of your own.
    pub async fn with_settings(
        config: ScudLoopConfig,
        settings: HostSettings,
    ) -> Result<Self, HostError> {
        let inner = IterativeLoop::with_settings(config.into_loop()?, settings).await?;
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
