//! Why something that a task loop does in git did not come off.

use std::io;

use descartes_kernel::tasks::is_disk_full;

use crate::host::open_files_hint;
use crate::worktree::WorktreeError;

/// What went wrong; its message are what people are shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// A call of git could not be made, did not end in time, or failed.
    #[error(transparent)]
    Call(#[from] WorktreeError),
    /// git said no, where that is an answer; its message.
    #[error("{message}")]
    SaidNo {
        /// The subcommand.
        command: String,
        /// What it said.
        message: String,
    },
    /// Somebody killed git.
    #[error("git was killed")]
    Killed {
        /// The subcommand.
        command: String,
    },
    /// A lock of git stays in the way; what a person can do.
    #[error("{0}")]
    Locked(String),
    /// A file of ours, or of git's that we write.
    #[error(transparent)]
    File(#[from] io::Error),
    /// A worktree holds files of an earlier task that cannot be removed.
    #[error("a worktree cannot be emptied: {0}")]
    NotEmptied(String),
    /// There is no room on a disk that git writes to; what became of it.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The repository is not as it has to be, or a worktree could not be set up; in message.
    #[error("{0}")]
    Refused(String),
}

/// The same in one word, for logs and for those who act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitErrorKind {
    /// git said no.
    Failed,
    /// It took too long and was ended.
    TimedOut,
    /// It was ended, since the loop was told to stop.
    Stopped,
    /// Somebody killed it.
    Killed,
    /// A lock stays in the way.
    Locked,
    /// There is no git, no repository or no folder.
    NotARepository,
    /// A file could not be read or written.
    File,
    /// There is no room.
    DiskFull,
    /// The repository or a worktree is not as it has to be.
    Refused,
}

impl GitError {
    pub(crate) fn kind(&self) -> GitErrorKind {
        match self {
            Self::Call(WorktreeError::Late { .. }) => GitErrorKind::TimedOut,
            Self::Call(WorktreeError::Stopped { .. }) => GitErrorKind::Stopped,
            Self::Killed { .. } => GitErrorKind::Killed,
            Self::Call(
                WorktreeError::NotGit { .. }
                | WorktreeError::GitMissing
                | WorktreeError::NoFolder(_),
            ) => GitErrorKind::NotARepository,
            Self::Call(WorktreeError::Io { .. }) | Self::File(_) => GitErrorKind::File,
            Self::Call(_) | Self::SaidNo { .. } => GitErrorKind::Failed,
            Self::Locked(_) => GitErrorKind::Locked,
            Self::NotEmptied(_) | Self::Refused(_) => GitErrorKind::Refused,
            Self::DiskFull(_) => GitErrorKind::DiskFull,
        }
    }

    /// Whether there was no room for what was to be written, with so many bytes left where git writes.
    pub(crate) fn is_disk_full(&self, free: Option<u64>) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let no_room =
            |error: &io::Error| matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
        match self {
            Self::DiskFull(_) => true,
            Self::File(error) | Self::Call(WorktreeError::Io { source: error, .. }) => {
                no_room(error)
            }
            Self::Call(WorktreeError::Git { message, .. }) | Self::SaidNo { message, .. } => {
                is_disk_full(message, free)
            }
            _ => false,
        }
    }

    /// The subcommand, where one is to blame.
    pub(crate) fn command(&self) -> Option<&str> {
        match self {
            Self::Call(
                WorktreeError::Git { verb, .. }
                | WorktreeError::Late { verb, .. }
                | WorktreeError::Stopped { verb },
            ) => Some(verb),
            Self::SaidNo { command, .. } | Self::Killed { command } => Some(command),
            _ => None,
        }
    }

    /// What to type or do next, where that is known.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Call(error) => error.hint(),
            _ => None,
        };
        hint.or_else(|| open_files_hint(&self.to_string()))
    }

    /// Says in the log what went wrong, without git's message: those may quote files.
    pub(crate) fn log(&self, doing: &'static str) {
        tracing::warn!(doing, kind = ?self.kind(), command = self.command(), "git error");
    }
}

impl From<&str> for GitError {
    fn from(message: &str) -> Self {
        Self::Refused(message.to_owned())
    }
}

impl From<String> for GitError {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::time::Duration;

    use super::*;

    #[test]
    fn errors_keep_their_words_and_know_kind_command_and_hint() {
        let verb = || "merge".to_owned();
        let git = WorktreeError::Git {
            verb: verb(),
            code: Some(128),
            message: "fatal: bad object 12".to_owned(),
        };
        let late = WorktreeError::Late {
            verb: verb(),
            limit: Duration::from_secs(300),
        };
        let said_no = GitError::SaidNo {
            command: verb(),
            message: "CONFLICT".to_owned(),
        };
        for (error, kind, command, message) in [
            (
                GitError::from(git),
                GitErrorKind::Failed,
                Some("merge"),
                "git merge failed: fatal: bad object 12",
            ),
            (
                late.into(),
                GitErrorKind::TimedOut,
                Some("merge"),
                "git merge took longer than 300s and was killed",
            ),
            (
                WorktreeError::Stopped { verb: verb() }.into(),
                GitErrorKind::Stopped,
                Some("merge"),
                "git merge was killed, because the loop was told to stop",
            ),
            (
                WorktreeError::GitMissing.into(),
                GitErrorKind::NotARepository,
                None,
                "git is not installed, or not on PATH",
            ),
            (said_no, GitErrorKind::Failed, Some("merge"), "CONFLICT"),
            (
                GitError::Killed { command: verb() },
                GitErrorKind::Killed,
                Some("merge"),
                "git was killed",
            ),
            (
                GitError::Locked("it is locked".to_owned()),
                GitErrorKind::Locked,
                None,
                "it is locked",
            ),
            (
                io::Error::other("no room").into(),
                GitErrorKind::File,
                None,
                "no room",
            ),
            (
                GitError::DiskFull("unable to write file x".to_owned()),
                GitErrorKind::DiskFull,
                None,
                "the disk is full: unable to write file x",
            ),
            (
                "there is no commit".into(),
                GitErrorKind::Refused,
                None,
                "there is no commit",
            ),
        ] {
            assert_eq!((error.kind(), error.command()), (kind, command), "{error}");
            assert_eq!(error.to_string(), message);
        }
        assert!(GitError::from(WorktreeError::GitMissing).hint().is_some());
        let path = "/x".into();
        let io = io::Error::other("why");
        let file = GitError::from(WorktreeError::Io { path, source: io });
        assert_eq!(file.source().unwrap().to_string(), "why");
    }
}
