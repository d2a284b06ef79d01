//! What can go wrong with a work tree, in words for people.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An operation on the work tree that could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// It needs git, and this folder is measured without.
    #[error("{what} needs git: {why}")]
    NotGit {
        /// What was asked for.
        what: &'static str,
        /// Why git is not used.
        why: String,
    },
    /// A snapshot that holds no tree.
    #[error("the work tree was not recorded there: {reason}")]
    NoTree {
        /// Why.
        reason: String,
    },
    /// There is no such program.
    #[error("git is not installed, or not on PATH")]
    GitMissing,
    /// git said no.
    #[error("git {verb} failed: {words}")]
    Git {
        /// The subcommand.
        verb: String,
        /// Its exit code; `None` when it was killed by a signal.
        code: Option<i32>,
        /// What it said.
        words: String,
    },
    /// git did not end in time and was killed.
    #[error("git {verb} took over {limit:?} and was ended")]
    Late {
        /// The subcommand.
        verb: String,
        /// How long it was given.
        limit: Duration,
    },
    /// A name that git takes for no branch or tag.
    #[error("{name:?} cannot be the name of a {what}")]
    BadName {
        /// Branch or tag.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A branch or tag of that name is there already.
    #[error("a {what} named {name:?} exists already")]
    Exists {
        /// Branch or tag.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A file or folder could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl WorktreeError {
    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            WorktreeError::NotGit { .. } => {
                Some("git init && git add -A && git commit -m start".to_owned())
            }
            WorktreeError::GitMissing => Some("install git, or put it on PATH".to_owned()),
            WorktreeError::Exists {
                what: "branch",
                name,
            } => Some(format!("git switch {name}")),
            WorktreeError::Exists { name, .. } => Some(format!("git show {name}")),
            WorktreeError::BadName { .. } => Some("see: git help check-ref-format".to_owned()),
            WorktreeError::Git { words, .. } if words.contains("bad object") => {
                Some("objects of that time are gone, as after git gc --prune=now".to_owned())
            }
            _ => None,
        }
    }

    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> WorktreeError {
        let path = path.into();
        move |source| WorktreeError::Io { path, source }
    }
}

/// Why a measurement was broken off.
#[derive(Debug)]
pub(super) enum Stop {
    /// The budget is used up.
    Late,
    /// What is known no longer holds: ignore rules changed, a repository appeared.
    Anew,
    /// Something else, in words.
    Failed(String),
}

impl From<WorktreeError> for Stop {
    fn from(error: WorktreeError) -> Stop {
        match error {
            WorktreeError::Late { .. } => Stop::Late,
            other => Stop::Failed(other.to_string()),
        }
    }
}
