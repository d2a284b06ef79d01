//! What was asked for when a graph of tasks is to be run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file_wait::TaskKeeper;
use crate::sched::{Barrier, Grouping, SchedConfig};
use descartes_plans::graph::Proof;
use descartes_plans::lists::trackers::{TrackerCommands, list_name};
use descartes_plans::lists::{self, ListFormat, ListOptions};
use descartes_plans::spec::LoopSpecConfig;
use descartes_text::units::Secs;

/// Which file the tasks come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskFile {
    /// The tasks of a tag in a SCUD project.
    Scud {
        tag: String,
        /// The task file.
        #[serde(with = "descartes_text::path_text::one")]
        file: PathBuf,
    },
    /// A Markdown roadmap.
    Roadmap {
        #[serde(with = "descartes_text::path_text::one")]
        file: PathBuf,
        /// What holds where the roadmap does not say.
        #[serde(default)]
        defaults: RoadmapDefaults,
    },
    /// A task list of another tool, run in place.
    List {
        /// Its file, or the folder where each task has a file.
        #[serde(with = "descartes_text::path_text::one")]
        path: PathBuf,
        format: ListFormat,
        /// What is run of it.
        #[serde(default)]
        options: ListOptions,
        /// Which of the file's lists, where it holds several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// Tasks that a program keeps: an issue tracker.
    Tracker(TrackerTasks),
}

/// Tasks that a program keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackerTasks {
    /// A path in the folder where its commands are run, called after it.
    #[serde(with = "descartes_text::path_text::one")]
    pub path: PathBuf,
    /// The source as it is named on the command line.
    pub name: String,
    pub format: ListFormat,
    /// What is run of it.
    #[serde(default)]
    pub options: ListOptions,
    /// What its tasks have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub commands: TrackerCommands,
}

impl TrackerTasks {
    /// Where its commands are run.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

impl TaskFile {
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Scud { file, .. } | Self::Roadmap { file, .. } => file,
            Self::List { path, .. } | Self::Tracker(TrackerTasks { path, .. }) => path,
        }
    }

    pub fn keeper(&self) -> TaskKeeper {
        match self {
            Self::Scud { .. } | Self::Roadmap { .. } | Self::List { .. } => TaskKeeper::File,
            Self::Tracker(_) => TaskKeeper::Tracker,
        }
    }

    /// What is told of it: a path, or the name of a tracker.
    pub fn shown(&self) -> String {
        match self {
            Self::Tracker(tracker) => tracker.name.clone(),
            _ => self.path().display().to_string(),
        }
    }

    /// What others write when they change its tasks: a file, or a folder with files of tasks.
    pub fn watched(&self) -> &Path {
        match self {
            // Stories lie beside the file that lists them.
            Self::List {
                path,
                format: ListFormat::Bmad,
                ..
            } => path.parent().unwrap_or(path),
            _ => self.path(),
        }
    }

    /// The file itself, to be changed.
    pub fn path_mut(&mut self) -> &mut PathBuf {
        match self {
            Self::Scud { file, .. } | Self::Roadmap { file, .. } => file,
            Self::List { path, .. } | Self::Tracker(TrackerTasks { path, .. }) => path,
        }
    }

    /// The tag, or the list's name: what commits and branches are called after.
    pub fn tag(&self) -> String {
        match self {
            Self::Scud { tag, .. } => tag.clone(),
            Self::Roadmap { file, .. } => file
                .file_stem()
                .map_or_else(|| "roadmap".into(), |stem| stem.to_string_lossy())
                .to_lowercase(),
            Self::List { path, tag, .. } => match tag {
                Some(tag) if tag != "master" => tag.clone(),
                _ => lists::name_of(&path.to_string_lossy()),
            },
            Self::Tracker(tracker) => list_name(&tracker.name, tracker.label.as_deref()),
        }
    }
}

/// What holds for a roadmap's tasks where the file does not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoadmapDefaults {
    /// Attempts of a looping task.
    pub iterations: u32,
    /// The promise of a looping task.
    pub promise: String,
    /// Time for one attempt.
    pub timeout_secs: Secs,
    /// How often an agent is asked for one more task when all are done.
    #[serde(skip_serializing_if = "is_zero")]
    pub growth: u32,
    /// A file in which a task names its own agent is refused: whoever wrote it may not choose programs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_task_agents: bool,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Default for RoadmapDefaults {
    fn default() -> Self {
        Self {
            iterations: 30,
            promise: "COMPLETE".to_owned(),
            timeout_secs: Secs::new(30 * 60),
            growth: 0,
            no_task_agents: false,
        }
    }
}

/// Where tasks are worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkPlace {
    /// In worktrees outside the repository.
    #[default]
    Worktrees,
    /// In the user's own tree, one at a time.
    InPlace,
}

/// Everything that makes a loop a task loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TasksConfig {
    /// Where the tasks come from.
    pub source: TaskFile,
    /// The implementation plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub plan_path: Option<PathBuf>,
    /// Notes from an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub handoff_path: Option<PathBuf>,
    /// Attempts at a task that does not say otherwise.
    #[serde(default = "three")]
    pub max_iterations_per_task: u32,
    /// One fresh agent for each attempt; else one agent is given a whole wave.
    #[serde(default = "yes")]
    pub use_sub_agents: bool,
    /// One commit for each wave.
    #[serde(default = "yes")]
    pub auto_commit_waves: bool,
    /// Whether a wave ends before the next begins.
    #[serde(default = "yes")]
    pub wave_barrier: bool,
    /// Tasks at the same time.
    #[serde(default = "one")]
    pub parallel: u32,
    /// Finished tasks that are merged and gated together, at the most; 1 is each alone.
    #[serde(default = "merge_batch")]
    pub merge_batch: u32,
    /// Where they are worked on.
    #[serde(default)]
    pub place: WorkPlace,
    /// What the agents are told.
    #[serde(default)]
    pub spec: LoopSpecConfig,
    /// Files that git does not bring into a worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktree_copy: Vec<String>,
    /// A command that makes a new worktree ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_setup: Option<String>,
    /// Whether a task that somebody else marks while the loop runs counts as the mark says.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trust_marks: bool,
    /// Folders of dependencies and build results that may be taken from a task's own worktree
    /// where the gates are red without them: ignored by git, without tracked files.
    #[serde(default = "gate_caches")]
    pub gate_caches: Vec<String>,
    /// The engine by which workers on other machines make the attempts, without its key; none: this host
    /// makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<String>,
    /// The agents that the tasks asked for when the loop began, where none of them is its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The repository by which their work travels; none: through the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_remote: Option<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The folders that widely used tools make.
pub fn gate_caches() -> Vec<String> {
    ["node_modules", ".venv", "venv", "target", "vendor"]
        .map(str::to_owned)
        .to_vec()
}

fn three() -> u32 {
    3
}

/// Long enough that gates of minutes keep up with many agents, short enough that a failure is found in
/// a few runs.
pub fn merge_batch() -> u32 {
    16
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl TasksConfig {
    /// The engine at which workers on other machines are met, without their pool.
    pub fn engine(&self) -> Option<&str> {
        let address = self.workers.as_deref()?;
        Some(
            address
                .split_once('#')
                .map_or(address, |(engine, _)| engine),
        )
    }

    /// The defaults for a source.
    pub fn new(source: TaskFile) -> Self {
        Self {
            source,
            plan_path: None,
            handoff_path: None,
            max_iterations_per_task: three(),
            use_sub_agents: true,
            auto_commit_waves: true,
            wave_barrier: true,
            parallel: one(),
            merge_batch: merge_batch(),
            place: WorkPlace::Worktrees,
            spec: LoopSpecConfig::default(),
            worktree_copy: Vec::new(),
            worktree_setup: None,
            trust_marks: false,
            gate_caches: gate_caches(),
            agents: Vec::new(),
            workers: None,
            git_remote: None,
        }
    }

    /// The scheduler's part of it.
    pub fn sched(&self, max_iterations: Option<u32>) -> SchedConfig {
        let slots = match self.place {
            WorkPlace::InPlace => 1,
            WorkPlace::Worktrees => self.parallel.max(1),
        };
        SchedConfig {
            slots,
            barrier: if self.wave_barrier {
                Barrier::On
            } else {
                Barrier::Off
            },
            merge_batch: self.merge_batch.max(1),
            max_attempts: self.max_iterations_per_task,
            max_iterations,
            grouping: if self.use_sub_agents {
                Grouping::Task
            } else {
                Grouping::Wave
            },
            trust_marks: self.trust_marks,
            shared_tree: self.place == WorkPlace::InPlace,
            outlive_host: self.workers.is_some(),
        }
    }

    /// What proves a task done that does not say otherwise.
    pub fn proof(&self) -> Proof {
        match self.source {
            TaskFile::Scud { .. } | TaskFile::List { .. } | TaskFile::Tracker(_) => Proof::Work,
            TaskFile::Roadmap { .. } => Proof::Exit,
        }
    }
}
