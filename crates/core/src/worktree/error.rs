//! What can go wrong with a work tree, in message for people.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use descartes_text::shell;

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
    /// A snapshot that had to make room for later ones.
    #[error("the snapshot of that time was dropped to stay within --max-snapshots")]
    Dropped,
    /// There is no such program.
    #[error("git is not installed, or not on PATH")]
    GitMissing,
    /// The folder that git was to be run in is gone.
    #[error("the folder {} does not exist", .0.display())]
    NoFolder(PathBuf),
    /// git said no.
    #[error("git {verb} failed: {message}")]
    Git {
        /// The subcommand.
        verb: String,
        /// Its exit code; `None` when it was killed by a signal.
        code: Option<i32>,
        /// What it said.
        message: String,
    },
    /// git did not end in time and was killed.
    #[error("git {verb} took longer than {limit:?} and was killed")]
    Late {
        /// The subcommand.
        verb: String,
        /// How long it was given.
        limit: Duration,
    },
    /// git told of no progress for so long and was killed.
    #[error("git {verb} has hung for {limit:?} and was killed")]
    Silent {
        /// The subcommand.
        verb: String,
        /// How long it may say nothing.
        limit: Duration,
    },
    /// Somebody wanted the end before git was through.
    #[error("git {verb} was killed, because the loop was told to stop")]
    Stopped {
        /// The subcommand.
        verb: String,
    },
    /// A name that git takes for no branch or tag.
    #[error("{name:?} is not a valid name for a {what}")]
    BadName {
        /// Branch or tag.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A branch or tag of that name is there already.
    #[error("a {what} named {name:?} already exists")]
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
            WorktreeError::NotGit { why, .. } => Some(hint_for(why)),
            WorktreeError::Dropped => {
                Some("later iterations are there: descartes loop history".to_owned())
            }
            WorktreeError::GitMissing => Some(INSTALL.to_owned()),
            WorktreeError::Exists {
                what: "branch",
                name,
            } => Some(format!("git switch {}", shell::word(name))),
            WorktreeError::Exists { name, .. } => Some(format!("git show {}", shell::word(name))),
            WorktreeError::BadName { .. } => Some("see: git help check-ref-format".to_owned()),
            WorktreeError::Git { message, .. } if message.contains("bad object") => Some(
                "objects of that time are gone, for example after git gc --prune=now".to_owned(),
            ),
            _ => None,
        }
    }

    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> WorktreeError {
        let path = path.into();
        move |source| WorktreeError::Io { path, source }
    }
}

const INSTALL: &str = "install git, or put it on PATH";

/// What to do where git is not used, going by why.
fn hint_for(why: &str) -> String {
    if why == NO_REPOSITORY {
        return "git init && git add -A && git commit -m start".to_owned();
    }
    if why == NO_WORK_TREE {
        return "run it in a checkout: git worktree add ../checkout".to_owned();
    }
    if let Some((_, rest)) = why.split_once("dubious ownership in repository at '")
        && let Some((path, _)) = rest.split_once('\'')
    {
        let path = shell_words::quote(path);
        return format!("if you trust it: git config --global --add safe.directory {path}");
    }
    if why.starts_with("git is not installed") {
        return INSTALL.to_owned();
    }
    if why.ends_with("ignores it") {
        return "git init here, or remove it from the ignore rules".to_owned();
    }
    if why.ends_with("contains a newline") {
        return "move the project to a folder without a newline in its path".to_owned();
    }
    "see what git says: git status".to_owned()
}

/// There is no repository at all.
pub(super) const NO_REPOSITORY: &str = "this folder is not in a git repository";
/// There is one without files.
pub(super) const NO_WORK_TREE: &str = "this folder is in a git repository without a work tree";

/// Why a measurement was broken off.
#[derive(Debug)]
pub(super) enum Stop {
    /// The budget is used up.
    Late,
    /// Somebody wanted the end of it.
    Asked,
    /// What is known no longer holds: ignore rules changed, a repository appeared.
    Rescan,
    /// Something else, in message.
    Failed(String),
}

impl From<WorktreeError> for Stop {
    fn from(error: WorktreeError) -> Stop {
        match error {
            WorktreeError::Late { .. } => Stop::Late,
            WorktreeError::Stopped { .. } => Stop::Asked,
            other => Stop::Failed(other.to_string()),
        }
    }
}
