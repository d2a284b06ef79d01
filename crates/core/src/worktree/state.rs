//! What a repository is in the middle of, for those who are about to commit.

use super::deadline::Deadline;
use super::error::WorktreeError;
use super::head::HeadRef;
use super::repo::{GIT_TIMEOUT, Repo};

/// Facts about a repository that decide whether a commit, branch or tag can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoState {
    /// Where HEAD is.
    pub head: Head,
    /// What was begun and not finished.
    pub under_way: Option<UnderWay>,
    /// Who commits.
    pub identity: Identity,
}

/// Where HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// On a branch that has commits.
    Branch {
        /// Its name, without `refs/heads/`.
        name: String,
        /// Its last commit.
        commit: String,
    },
    /// On a branch before its first commit.
    Unborn {
        /// Its name.
        name: String,
    },
    /// On no branch.
    Detached {
        /// The commit.
        commit: String,
    },
    /// It cannot be read.
    Unreadable,
}

/// Who git would put down as committer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Name and address.
    Known(String),
    /// Nobody: commits would fail.
    Missing {
        /// git's message.
        message: String,
    },
}

/// An operation that was begun and not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderWay {
    /// `git merge`
    Merge,
    /// `git rebase`
    Rebase,
    /// `git am`
    Am,
    /// `git cherry-pick`
    CherryPick,
    /// `git revert`
    Revert,
    /// `git bisect`
    Bisect,
}

impl UnderWay {
    /// Its subcommand.
    pub fn verb(self) -> &'static str {
        match self {
            UnderWay::Merge => "merge",
            UnderWay::Rebase => "rebase",
            UnderWay::Am => "am",
            UnderWay::CherryPick => "cherry-pick",
            UnderWay::Revert => "revert",
            UnderWay::Bisect => "bisect",
        }
    }

    /// Whether a commit now would become part of it.
    pub fn blocks_commit(self) -> bool {
        self != UnderWay::Bisect
    }
}

impl Repo {
    pub(super) fn state(&self) -> Result<RepoState, WorktreeError> {
        Ok(RepoState {
            head: match self.head() {
                HeadRef::Branch {
                    name,
                    commit: Some(commit),
                } => Head::Branch { name, commit },
                HeadRef::Branch { name, commit: None } => Head::Unborn { name },
                HeadRef::Detached { commit } => Head::Detached { commit },
                HeadRef::Opaque => Head::Unreadable,
            },
            under_way: self.under_way(),
            identity: self.identity()?,
        })
    }

    /// Told by the files that git leaves in its folder, as `git status` does.
    pub(super) fn under_way(&self) -> Option<UnderWay> {
        let signs = [
            ("rebase-apply/applying", UnderWay::Am),
            ("rebase-apply", UnderWay::Rebase),
            ("rebase-merge", UnderWay::Rebase),
            ("MERGE_HEAD", UnderWay::Merge),
            ("CHERRY_PICK_HEAD", UnderWay::CherryPick),
            ("REVERT_HEAD", UnderWay::Revert),
            ("BISECT_LOG", UnderWay::Bisect),
        ];
        let found = signs
            .iter()
            .find(|(file, _)| self.refs.own.join(file).exists());
        found.map(|(_, under_way)| *under_way)
    }

    fn identity(&self) -> Result<Identity, WorktreeError> {
        let ask = |var| {
            self.read()
                .args(["var", var])
                .run(Deadline::after(GIT_TIMEOUT))
        };
        let author = ask("GIT_AUTHOR_IDENT")?;
        if author.code != Some(0) {
            return Ok(Identity::Missing {
                message: author.describe(),
            });
        }
        let committer = ask("GIT_COMMITTER_IDENT")?;
        let message = committer.describe();
        Ok(match committer.code {
            Some(0) => Identity::Known(without_time(&message)),
            _ => Identity::Missing { message },
        })
    }
}

/// `Name <address>`, of `Name <address> 1700000000 +0100`.
fn without_time(ident: &str) -> String {
    ident
        .split_inclusive('>')
        .next()
        .unwrap_or(ident)
        .to_owned()
}
