//! Where tasks come from and where their status is kept.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use descartes_kernel::tasks::TaskBrief;
use descartes_plans::graph::{Plan, TaskId, TaskStatus};
use descartes_plans::lists::KnownTask;
use descartes_plans::roadmap::NewTask;
use descartes_plans::spec::SpecFile;
use descartes_store::task_file::TaskFileError;
use descartes_text::finding::{Finding, Severity};
use thiserror::Error;

use super::lists::QuestionLine;

/// A task file as it was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The graph and its waves.
    pub plan: Plan,
    /// Every task in words.
    pub briefs: HashMap<TaskId, TaskBrief>,
    /// Texts that belong to every task.
    pub guidance: Vec<SpecFile>,
    /// What is odd, without being an error.
    pub findings: Vec<Finding>,
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The task is ours.
    Taken,
    /// It has another status; nothing was changed.
    Found(TaskStatus),
    /// It is not in the file: taken out, or somebody is in the middle of writing.
    Missing,
}

/// Whether a file holds every status, or no more than what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Every status: what differs from ours is somebody's wish.
    Every,
    /// Done or not: the rest is known to us alone.
    Done,
}

/// Why tasks cannot be read or written.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file.
    #[error(transparent)]
    File(#[from] TaskFileError),
    /// What stands in it.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The file is not there, or cannot be read.
    #[error("{}: {message}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A program that keeps the tasks.
    #[error("{message}")]
    Tracker {
        /// What went wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A task that is no longer in the file.
    #[error("{}: task {task} is no longer in it", path.display())]
    NoTask {
        /// The file.
        path: PathBuf,
        /// The task.
        task: TaskId,
    },
    /// Lines of it that are wrong.
    #[error("{lines}")]
    Lines {
        /// File, line, column and message of each.
        lines: String,
    },
}

impl SourceError {
    /// All errors of a file in one.
    pub(super) fn findings(path: &Path, findings: &[Finding]) -> Self {
        let errors = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        let line = |finding: &Finding| {
            let place = match finding.line {
                0 => String::new(),
                _ => format!(":{}", finding.place()),
            };
            let hint = finding.hint.as_ref();
            let hint = hint.map_or_else(String::new, |hint| format!(" (hint: {hint})"));
            format!("{}{place}: {}{hint}", path.display(), finding.message)
        };
        let lines: Vec<String> = errors.map(line).collect();
        Self::Lines {
            lines: lines.join("\n  "),
        }
    }
}

/// A file of tasks. Every change is durable when the call returns, and seen by the other tools
/// that read the file.
pub trait TaskSource: Send {
    /// Reads the tasks as they are now.
    fn load(&mut self) -> Result<Loaded, SourceError>;
    /// Tells which tasks an earlier host of the loop knew, and which of them it had begun, before the
    /// first load.
    fn recall(&mut self, known: Vec<KnownTask>, begun: BTreeSet<String>) {
        drop((known, begun));
    }
    /// Reads the tasks again; `None` where nothing stands there that was not read or written here.
    fn news(&mut self) -> Result<Option<Loaded>, SourceError> {
        self.load().map(Some)
    }
    /// Leaves a line about a task where the people who work with its file look for one.
    fn note(&mut self, task: &TaskId, text: &str) {
        let _ = (task, text);
    }
    /// Why nothing of it is to be begun yet.
    fn refuse_start(&self) -> Result<(), SourceError> {
        Ok(())
    }
    /// What a person should know of the surroundings before agents are started.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Sets a task to in-progress, if it is pending or in progress.
    fn claim(&mut self, task: &TaskId) -> Result<Claim, SourceError>;
    /// Sets a status whatever it was.
    fn set(&mut self, task: &TaskId, status: TaskStatus) -> Result<(), SourceError>;
    /// Sets a task that is marked done back to pending.
    fn reopen(&mut self, task: &TaskId) -> Result<(), SourceError>;
    /// Where it is asked by programs, which may hang: what ends them.
    fn line(&self) -> Option<Arc<QuestionLine>> {
        None
    }
    /// Forgets what was read: it is read again, also where it has not changed.
    fn forget(&mut self);
    /// Adds a task.
    fn add(&mut self, task: &NewTask) -> Result<(), SourceError> {
        Err(SourceError::Content {
            path: PathBuf::from("tasks"),
            message: format!("task {} cannot be added here", task.id),
            hint: "add it by hand".to_owned(),
        })
    }
    /// The lock by which other tools' runs keep away from the same tasks.
    fn run_lock(&self) -> Option<PathBuf> {
        None
    }
    /// What the file holds.
    fn keeps(&self) -> Keeps;
    /// Files whose copy in the user's checkout is the only truth: they are in no commit of ours.
    fn shielded(&self) -> Vec<PathBuf>;
}
