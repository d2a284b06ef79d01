//! Letting git itself take the snapshot, through an index of our own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::deadline::Deadline;
use super::error::{Stop, WorktreeError};
use super::folder::{Entry, Folder, Leaf, Trust};
use super::git::Call;
use super::ground::Ground;
use super::kind::Mode;
use super::oid::Oid;
use super::repo::Repo;
use super::text;

/// What git found.
pub(super) struct Seed {
    /// The tree it wrote.
    pub(super) tree: Oid,
    /// The files in it.
    pub(super) top: Folder,
}

/// A copy of the user's index that can be changed freely. It brings along which files are tracked
/// though ignored, what was told to be skipped, and metadata that spares reading files again.
pub(super) struct PrivateIndex<'a> {
    repo: &'a Repo,
    folder: TempDir,
}

impl<'a> PrivateIndex<'a> {
    pub(super) fn empty(repo: &'a Repo) -> Result<PrivateIndex<'a>, WorktreeError> {
        let fail = |error| WorktreeError::io(&repo.objects)(error);
        fs::create_dir_all(&repo.objects).map_err(fail)?;
        let folder = tempfile::Builder::new()
            .prefix("index-")
            .tempdir_in(&repo.objects)
            .map_err(fail)?;
        Ok(PrivateIndex { repo, folder })
    }

    fn of_user(repo: &'a Repo) -> Result<PrivateIndex<'a>, WorktreeError> {
        let index = PrivateIndex::empty(repo)?;
        match copy_with_time(&repo.index, &index.path()) {
            Ok(()) => Ok(index),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(index),
            Err(error) => Err(WorktreeError::io(&repo.index)(error)),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    pub(super) fn call(&self) -> Call {
        self.repo.snapshot_call().env("GIT_INDEX_FILE", self.path())
    }
}

/// The time of the index tells git which files may have changed in the instant after it was
/// written; a copy that looked younger would hide such edits.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let time = from.metadata()?.modified()?;
    let mut to = File::create(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(time)
}

/// Takes a snapshot of all that counts.
pub(super) fn seed(repo: &Repo, ground: &Ground, deadline: Deadline) -> Result<Seed, Stop> {
    let index = PrivateIndex::of_user(repo)?;
    add_all(&index, ground, deadline)?;
    let listed = index
        .call()
        .args(["ls-files", "-v", "-s", "-z"])
        .output(deadline)?;
    let (top, ours) = parse(&listed, ground)?;
    if !ours.is_empty() {
        // Somebody tracks files of ours, such as the settings.
        let paths = text::zero_joined(ours.iter().map(PathBuf::as_path));
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        index.call().args(remove).stdin(paths).output(deadline)?;
    }
    let written = index
        .call()
        .args(["write-tree", "--missing-ok"])
        .output(deadline)?;
    let tree = Oid::from_hex(written.trim_ascii_end()).ok_or_else(|| odd("write-tree"))?;
    Ok(Seed { tree, top })
}

fn add_all(index: &PrivateIndex<'_>, ground: &Ground, deadline: Deadline) -> Result<(), Stop> {
    let add = index
        .call()
        .args(["add", "-A", "--ignore-errors", "--"])
        .args(ground.pathspecs());
    let added = add.run(deadline)?;
    match added.code {
        // 1: some files could not be read, or some repository has no commit yet.
        Some(0 | 1) => Ok(()),
        _ => Err(added.error().into()),
    }
}

/// Rows of `H 100644 0123… 0<TAB>path`. Gives the files, and those among them that do not count.
fn parse(listed: &[u8], ground: &Ground) -> Result<(Folder, Vec<PathBuf>), Stop> {
    let mut top = Folder::default();
    let mut ours = Vec::new();
    for row in text::zero_ended(listed) {
        let (tag, mode, oid, path) = parse_row(row).ok_or_else(|| odd("ls-files"))?;
        if ground.is_apart(&path) {
            ours.push(path);
            continue;
        }
        let entry = match (tag, mode) {
            (b'H', Mode::Repo) => Entry::Repo(Some(oid)),
            (b'H', mode) => Entry::Leaf(Leaf {
                trust: Trust::Adopted,
                mode,
                oid: Some(oid),
            }),
            _ => Entry::Pinned(mode, oid),
        };
        top.put(&path, entry, 0);
    }
    Ok((top, ours))
}

fn parse_row(row: &[u8]) -> Option<(u8, Mode, Oid, PathBuf)> {
    let tab = row.iter().position(|b| *b == b'\t')?;
    let (facts, path) = (row.get(..tab)?, row.get(tab + 1..)?);
    let mut words = facts.split(|b| *b == b' ');
    let tag = *words.next()?.first()?;
    let mode = Mode::parse(words.next()?)?;
    let oid = Oid::from_hex(words.next()?)?;
    Some((tag, mode, oid, text::path(path)))
}

fn odd(verb: &str) -> Stop {
    Stop::Failed(format!("git {verb} gave an answer of another form"))
}
