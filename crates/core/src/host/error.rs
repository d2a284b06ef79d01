//! What can keep a host from its work, with the hint and the exit code of each.

use descartes_agents::agent::Denied;
use descartes_kernel::config::ConfigError;
use descartes_kernel::outcome::exit;
use descartes_kernel::transition::IllegalEvent;
use descartes_proc::StartError;
use descartes_store::IoError;
use descartes_store::catalog::RegisterError;
use descartes_store::journal::JournalError;
use descartes_store::layout::BadLoopId;
use descartes_store::lock::{Held, LockError};
use descartes_store::safe_open::Refusal;
use descartes_store::state_file::StateFileError;
use nix::sys::resource::{Resource, getrlimit};
use thiserror::Error;

/// Why a loop cannot begin or go on.
#[derive(Debug, Error)]
pub enum HostError {
    /// What was asked for makes no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type next.
        hint: String,
    },
    /// It makes sense, but not here and now.
    #[error("{message}")]
    Refused {
        /// Why.
        message: String,
        /// What to type next.
        hint: String,
    },
    /// What the loop stands on was taken away.
    #[error("{message}")]
    Lost {
        /// What.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The agent cannot ask, and would be denied its tools.
    #[error("{message}")]
    Denied {
        /// Why.
        message: String,
        /// What to type next.
        hint: String,
        /// What would let it work.
        denied: Denied,
    },
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] StartError),
    /// There is no such program, but an agent with nearly this name.
    #[error("{error}")]
    UnknownAgent {
        /// That it is not there.
        error: StartError,
        /// The agent.
        meant: String,
    },
    /// The agent that a task asks for.
    #[error("task {task}: {error}")]
    OfTask {
        /// Which.
        task: String,
        /// What is wrong with it, as of any loop's.
        error: Box<HostError>,
    },
    /// A prompt or spec file cannot be read.
    #[error("{0}")]
    Prompt(String),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The state file.
    #[error(transparent)]
    StateFile(#[from] StateFileError),
    /// Another host.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal tells a story that cannot be.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The loop's id is not one.
    #[error(transparent)]
    BadId(#[from] BadLoopId),
    /// The catalog.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The guard could not be started, or the like.
    #[error("{0}")]
    Internal(String),
}

impl HostError {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The same where a loop is taken up, whose command stays as it is.
    pub(crate) fn of_resume(self) -> Self {
        match self {
            Self::Denied {
                message, denied, ..
            } => Self::Denied {
                message,
                hint: denied.hint_for_resume(),
                denied,
            },
            other => other,
        }
    }

    /// What stands in the place of a file of ours, where that is why.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Io(error)
            | Self::Lock(LockError::Io(error))
            | Self::StateFile(StateFileError::Io(error))
            | Self::Journal(JournalError::Io(error))
            | Self::Register(RegisterError::Io(error)) => error.refusal(),
            _ => None,
        }
    }

    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        if let Some(refusal) = self.refusal() {
            return Some(refusal.hint());
        }
        match self {
            Self::Usage { hint, .. }
            | Self::Refused { hint, .. }
            | Self::Lost { hint, .. }
            | Self::Denied { hint, .. } => Some(hint.clone()),
            Self::Agent(error) => error.hint().map(str::to_owned),
            Self::UnknownAgent { meant, .. } => Some(format!(
                "did you mean `{meant}`? To see what is installed: descartes agents"
            )),
            Self::OfTask { error, .. } => error.hint(),
            Self::Journal(error) => error.hint().map(str::to_owned),
            Self::StateFile(error) => error.hint().map(str::to_owned),
            Self::Lock(LockError::Held(held)) => Some(ways_with(held)),
            Self::Illegal(_) => {
                Some("the loop's journal is damaged; start over with --force".to_owned())
            }
            other => open_files_hint(&other.to_string()),
        }
    }

    /// A start on a state file that another loop has.
    pub(crate) fn taken(held: &Held) -> Self {
        let ways = ways_with(held);
        Self::refused(
            held.to_string(),
            format!("{ways}, or give the new loop another --state-file"),
        )
    }

    /// The process exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            _ if self.refusal().is_some() => exit::REFUSED,
            Self::Usage { .. } => exit::USAGE,
            Self::OfTask { error, .. } => error.exit_code(),
            Self::Refused { .. }
            | Self::Denied { .. }
            | Self::StateFile(_)
            | Self::Lock(LockError::Held(_))
            | Self::Illegal(_)
            | Self::BadId(_) => exit::REFUSED,
            Self::Journal(JournalError::Damaged { .. } | JournalError::Newer { .. }) => {
                exit::REFUSED
            }
            _ => exit::ERROR,
        }
    }
}

/// What to type where an error says that too many files are open.
pub(crate) fn open_files_hint(message: &str) -> Option<String> {
    let is_it = message.contains("(os error 24)") || message.contains("Too many open files");
    if !is_it {
        return None;
    }
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    Some(match hard >= ENOUGH_FILES {
        true => format!(
            "only {soft} open files are allowed here: type `ulimit -n {ENOUGH_FILES}`, then try again"
        ),
        false => format!(
            "only {hard} open files are allowed here, and only root may change that: start from a shell whose \
             `ulimit -Hn` is {ENOUGH_FILES} or more"
        ),
    })
}

/// Open files that are enough for task loops of any size.
const ENOUGH_FILES: u64 = 1024;

/// What can be done with a loop that runs.
fn ways_with(held: &Held) -> String {
    let id = held.holder.as_ref().map(|holder| &holder.loop_id);
    let id = id.map_or_else(String::new, |id| format!(" {id}"));
    format!("look at it with `descartes loop status{id}`, end it with `descartes loop cancel{id}`")
}

impl From<ConfigError> for HostError {
    fn from(error: ConfigError) -> Self {
        Self::Usage {
            message: error.message,
            hint: error.hint,
        }
    }
}
