//! What a look at the work tree finds, and who judges and hashes it.

use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::error::Stop;
use super::kind::FileKind;
use super::oid::Oid;
use super::stamp::Stamp;

/// Something on disk that is not known yet.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// A file or link that must be hashed.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// Whether something counts as part of the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepVerdict {
    Counts,
    Ignored,
}

/// Knows the ignore rules.
pub(super) trait Judge {
    /// One verdict for each, in order.
    fn judge(&mut self, unknown: &[Unknown], deadline: Deadline)
    -> Result<Vec<SweepVerdict>, Stop>;

    /// What a `.git` in a folder below the root means.
    fn inner_git(&self) -> InnerGit;
}

/// What to do about a folder with a `.git` of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InnerGit {
    /// An ordinary folder; the `.git` does not count.
    Ordinary,
    /// Another repository, if git did not take it for a folder.
    Note,
    /// git must say what it is.
    AskGit,
}

/// How far a look goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Into every folder.
    Everything,
    /// Only into those that were named, and new ones.
    Named,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct SweepFindings {
    pub(super) stale: Vec<Stale>,
    pub(super) attributes: Attributes,
    pub(super) unknown: Vec<Unknown>,
    /// Folders yet to be looked into.
    pub(super) queue: Vec<PathBuf>,
}

/// Whether a file was met that says how git converts others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attributes {
    #[default]
    NotMet,
    Met,
}

/// What became of a file that was to be hashed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hashed {
    Content(Oid),
    Gone,
    Unreadable,
}

/// Makes hashes, and keeps the content where it can be kept.
pub(super) trait Store {
    /// Adds one answer for each, in order; where it breaks off, those it has so far.
    fn leaves(
        &mut self,
        root: &Path,
        stale: &[Stale],
        deadline: Deadline,
        done: &mut Vec<Hashed>,
    ) -> Result<(), Stop>;

    fn tree(&mut self, content: &[u8]) -> Result<Oid, Stop>;
}
