//! What can keep a view from what it wants: what happened, what to type next, exit code.

use std::path::PathBuf;
use std::time::Duration;

use descartes_kernel::outcome::exit;
use descartes_kernel::transition::IllegalEvent;
use descartes_store::IoError;
use descartes_store::catalog::FindError;
use descartes_store::journal::JournalError;
use descartes_store::layout::BadLoopId;
use descartes_store::lock::LockError;
use descartes_store::safe_open::Refusal;
use descartes_store::state_file::StateFileError;
use descartes_text::units::show_duration;

/// Why something cannot be seen or done.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No loop fits, or several do.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The directory has no loop.
    #[error("there is no loop here: no {}", .0.display())]
    NoneHere(PathBuf),
    /// A state file that never ran here has no journal, and so no history.
    #[error("{} has not run on this machine: {what}", path.display())]
    NeverRan {
        /// The state file.
        path: PathBuf,
        /// What is missing for want of it.
        what: &'static str,
    },
    /// The state file.
    #[error(transparent)]
    StateFile(#[from] StateFileError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A journal without a first line.
    #[error("the journal {} is empty", .0.display())]
    Empty(PathBuf),
    /// The journal tells a story that cannot be.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// Somebody has the loop.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The loop will not do it.
    #[error("{message}")]
    Refused {
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// A process has the loop and does not answer.
    #[error(
        "the loop's process{} did not answer within {}",
        pid_words(*.pid), show_duration(*.waited)
    )]
    Silent {
        /// The process, where it is known.
        pid: Option<u32>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The loop's process is stopped.
    #[error("the loop's process (pid {0}) is stopped: it cannot answer")]
    Stopped(u32),
    /// What came back is no answer.
    #[error("the loop's socket gave an unexpected answer: {0}")]
    Garbled(String),
    /// There is no such iteration.
    #[error("{0}")]
    NoIteration(String),
    /// The output is not there any more.
    #[error("the output of iteration {iteration} is gone: no {}", path.display())]
    NoLog {
        iteration: u32,
        /// Where it would be.
        path: PathBuf,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The system refused, about a file of ours.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The loop's id is not one.
    #[error(transparent)]
    BadId(#[from] BadLoopId),
}

fn pid_words(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl ClientError {
    pub(crate) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// What stands in the place of a file of ours, where that is why.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Io(error)
            | Self::Find(FindError::Io(error))
            | Self::Lock(LockError::Io(error))
            | Self::StateFile(StateFileError::Io(error))
            | Self::Journal(JournalError::Io(error)) => error.refusal(),
            Self::File { source, .. } => Refusal::of(source),
            _ => None,
        }
    }

    /// The exit code of a command that ends so.
    pub fn exit_code(&self) -> i32 {
        match self {
            _ if self.refusal().is_some() => exit::REFUSED,
            Self::Silent { .. }
            | Self::Garbled(_)
            | Self::Io(_)
            | Self::File { .. }
            | Self::Find(FindError::Io(_))
            | Self::StateFile(StateFileError::Io(_))
            | Self::Journal(JournalError::Io(_) | JournalError::Full(_))
            | Self::Lock(LockError::Io(_)) => exit::ERROR,
            _ => exit::REFUSED,
        }
    }

    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        let text = |text: &str| Some(text.to_owned());
        if let Some(refusal) = self.refusal() {
            return Some(refusal.hint());
        }
        match self {
            Self::Find(FindError::None(_)) => text("all loops: descartes loop list --all"),
            Self::Find(FindError::Ambiguous { .. }) => text("name it by its id"),
            Self::NoneHere(_) => {
                text("name a loop, or give --state-file; all loops: descartes loop list --all")
            }
            Self::NeverRan { path, .. } => Some(format!(
                "run it first: descartes loop resume --state-file {}",
                descartes_text::shell::path(path)
            )),
            Self::StateFile(error) => error.hint().map(str::to_owned),
            Self::Journal(error) => error.hint().map(str::to_owned),
            Self::Illegal(_) => text(
                "start over, keeping the old file: `descartes loop start --force` and the task behind --prompt",
            ),
            Self::Empty(_) => text("how to continue it: descartes loop resume"),
            Self::Lock(LockError::Held(_)) => text("look at it with: descartes loop status"),
            Self::Refused { hint, .. } => Some(hint.clone()).filter(|hint| !hint.is_empty()),
            Self::Stopped(pid) => Some(format!(
                "type `fg` in its terminal, or `kill -CONT {pid}`, then try again; `descartes \
                 loop cancel` continues and ends it"
            )),
            Self::Silent { pid: Some(pid), .. } => Some(format!(
                "it may be stopped or busy; `kill -CONT {pid}` continues it, `kill -9 {pid}` \
                 ends it (and its agent), and `descartes loop resume` resumes the loop"
            )),
            Self::Garbled(_) => {
                text("use the same version of descartes for this command and the loop")
            }
            Self::NoIteration(_) => text("see: descartes loop history"),
            Self::NoLog { .. } => text(
                "old logs are removed to make room for new ones; what is known about it: \
                 descartes loop history",
            ),
            _ => None,
        }
    }
}

/// Names what was tried on which path when the system refuses.
pub(crate) fn at(
    what: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(std::io::Error) -> ClientError {
    let path = path.to_owned();
    move |source| ClientError::File { what, path, source }
}
