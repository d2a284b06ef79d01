//! Letting git itself take the snapshot, through an index of our own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::deadline::Deadline;
use super::error::{Stop, WorktreeError};
use super::facts::Facts;
use super::folder::{Entry, Folder, Leaf, Trust};
use super::git::Call;
use super::head::RefFolders;
use super::kind::Mode;
use super::objects::Blobs;
use super::oid::Oid;
use super::repo::Repo;
use super::scan_root::ScanRoot;
use super::stamp::Stamp;
use super::text;

/// What git found.
pub(super) struct Seed {
    /// The tree it wrote.
    pub(super) tree: Oid,
    /// The files in it.
    pub(super) top: Folder,
    /// Whether large files are in it as their filters left them.
    pub(super) is_filtered: bool,
}

/// A copy of the user's index that can be changed freely. It brings along which files are tracked
/// though ignored, what was told to be skipped, and metadata that spares reading files again.
pub(super) struct PrivateIndex<'a> {
    pub(super) repo: &'a Repo,
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

    /// The same, through the filters that are configured.
    pub(super) fn filtered_call(&self) -> Call {
        self.repo.filtered_call().env("GIT_INDEX_FILE", self.path())
    }
}

/// What spares a file from being read again. An index can be written by anybody who works in the
/// repository: with flags and metadata by which git takes a changed file for the old one.
pub(super) enum Belief<'a> {
    /// The user's index: no agent has been here.
    UserIndex,
    /// What was seen before, while the metadata is the same. The change time among it cannot be set.
    Seen(&'a mut Folder),
    /// Nothing, as far as there is not too much to read; else the user's index.
    NothingIfSmall,
    /// Nothing.
    Nothing,
}

impl Belief<'_> {
    /// Whether the content of a file is what the index says.
    fn holds(&mut self, repo: &Repo, row: &IndexRow) -> bool {
        let known = match self {
            Belief::UserIndex => return true,
            Belief::Seen(top) => top.entry(&row.path),
            Belief::Nothing | Belief::NothingIfSmall => None,
        };
        let Some(Entry::Leaf(Leaf {
            trust: Trust::Stamp(stamp),
            oid,
            ..
        })) = known
        else {
            return false;
        };
        let meta = repo.root.join(&row.path).symlink_metadata();
        *oid == Some(row.oid) && meta.is_ok_and(|meta| Stamp::of(&meta) == *stamp)
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

/// Takes a snapshot of all that counts. No program is run for it: files that a filter would
/// change are taken as they are, and other repositories are not asked.
pub(super) fn seed(
    repo: &Repo,
    scan_root: &ScanRoot,
    facts: &Facts,
    mut belief: Belief<'_>,
    deadline: Deadline,
) -> Result<Seed, Stop> {
    let filters = &facts.filters;
    repo.turn_off(filters, facts.blobs == Blobs::Filtered);
    let index = PrivateIndex::of_user(repo)?;
    let known = doubt(&index, &mut belief, deadline.clone())?;
    let inner = take_inner(&index, &known, deadline.clone())?;
    let is_filtered =
        !filters.is_empty() && !forget_filtered(&index, &known, filters, deadline.clone())?;
    add_all(&index, scan_root, &inner, deadline.clone())?;
    let listed = index
        .call()
        .args(["ls-files", "-v", "-s", "-z"])
        .output(deadline.clone())?;
    let (top, ours) = parse(&listed, scan_root)?;
    if !ours.is_empty() {
        // Somebody tracks files of ours, such as the settings.
        let paths = text::zero_joined(ours.iter().map(PathBuf::as_path));
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        index
            .call()
            .args(remove)
            .stdin(paths)
            .output(deadline.clone())?;
    }
    let written = index
        .call()
        .args(["write-tree", "--missing-ok"])
        .output(deadline)?;
    let tree = Oid::from_hex(written.trim_ascii_end()).ok_or_else(|| odd("write-tree"))?;
    Ok(Seed {
        tree,
        top,
        is_filtered,
    })
}

/// A row of an index.
pub(super) struct IndexRow {
    mode: Mode,
    pub(super) oid: Oid,
    pub(super) path: PathBuf,
}

/// What an index holds, but for what was told to be skipped.
pub(super) fn tracked(
    index: &PrivateIndex<'_>,
    deadline: Deadline,
) -> Result<Vec<IndexRow>, WorktreeError> {
    let rows = listed(index, deadline)?.into_iter();
    let rows = rows.filter(|(tag, _)| *tag == b'H');
    Ok(rows.map(|(_, row)| row).collect())
}

/// What an index holds, each with the letter that git gives it.
fn listed(
    index: &PrivateIndex<'_>,
    deadline: Deadline,
) -> Result<Vec<(u8, IndexRow)>, WorktreeError> {
    let listed = index
        .call()
        .args(["ls-files", "-v", "-s", "-z"])
        .output(deadline)?;
    let rows = text::zero_ended(&listed).filter_map(parse_row);
    let row = |(tag, mode, oid, path)| (tag, IndexRow { mode, oid, path });
    Ok(rows.map(row).collect())
}

/// Has git read the files again of which the index is not to be believed; gives what it holds. A
/// file that git was told not to look at is looked at like any other, but for one that is not
/// there in a sparse checkout.
fn doubt(
    index: &PrivateIndex<'_>,
    belief: &mut Belief<'_>,
    deadline: Deadline,
) -> Result<Vec<IndexRow>, Stop> {
    let repo = index.repo;
    let is_there = |row: &IndexRow| repo.root.join(&row.path).symlink_metadata().is_ok();
    let (mut known, mut told, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for (tag, row) in listed(index, deadline.clone())? {
        match tag {
            b'H' if row.mode == Mode::Repo || belief.holds(repo, &row) => known.push(row),
            b'H' => seen.push(row),
            // Not looked at (`assume-unchanged`), or not checked out (`skip-worktree`).
            b'h' | b'S' | b's' if !repo.is_sparse() || is_there(&row) => told.push(row),
            _ => {}
        }
    }
    if matches!(belief, Belief::NothingIfSmall) && size_of(repo, seen.iter()) > FILTERED {
        known.append(&mut seen);
    }
    told.append(&mut seen);
    let again = told
        .iter()
        .map(|row| (row.mode, row.oid, row.path.as_path()));
    put(index, again.collect(), deadline)?;
    known.append(&mut told);
    Ok(known)
}

/// What reading these files comes to.
fn size_of<'r>(repo: &Repo, rows: impl Iterator<Item = &'r IndexRow>) -> u64 {
    let size = |row: &IndexRow| {
        let meta = repo.root.join(&row.path).symlink_metadata();
        meta.map_or(0, |meta| meta.len())
    };
    rows.map(size).sum()
}

/// Repositories inside this one are at the commit that their own files tell: to compare them, git
/// would start another one there, with settings that are not ours.
fn take_inner(
    index: &PrivateIndex<'_>,
    known: &[IndexRow],
    deadline: Deadline,
) -> Result<Vec<PathBuf>, Stop> {
    let mut moved = Vec::new();
    let mut inner = Vec::new();
    for row in known.iter().filter(|row| row.mode == Mode::Repo) {
        let at = index.repo.root.join(&row.path);
        if !at.join(".git").exists() {
            continue;
        }
        inner.push(row.path.clone());
        let head = RefFolders::of(&at).map(|refs| refs.head());
        let commit = head.and_then(|head| Oid::from_hex(head.commit()?.as_bytes()));
        if let Some(commit) = commit.filter(|commit| *commit != row.oid) {
            moved.push((row.mode, commit, row.path.as_path()));
        }
    }
    put(index, moved, deadline)?;
    Ok(inner)
}

/// More than this is not read again only to have it without its filter, or in doubt.
const FILTERED: u64 = 64 << 20;

/// Files that a filter would change are read again, without it. Where they are large, those that
/// did not change stay what the user's index says: they go through the filter when they are put
/// back, and this is false.
fn forget_filtered(
    index: &PrivateIndex<'_>,
    known: &[IndexRow],
    filters: &[String],
    deadline: Deadline,
) -> Result<bool, Stop> {
    let has_rules = |row: &IndexRow| {
        row.path
            .file_name()
            .is_some_and(|name| name == ".gitattributes")
    };
    if !known.iter().any(has_rules) && !index.repo.has_attributes() {
        return Ok(true);
    }
    let filtered = filtered(index, known, filters, Attributes::OfFiles, deadline.clone())?;
    if size_of(index.repo, filtered.iter().copied()) > FILTERED {
        return Ok(false);
    }
    let rows = filtered.into_iter();
    let rows = rows.map(|row| (row.mode, row.oid, row.path.as_path()));
    put(index, rows.collect(), deadline)?;
    Ok(true)
}

/// Where attributes are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attributes {
    /// The files in the work tree.
    OfFiles,
    /// The index.
    OfIndex,
}

/// Which of these go through one of these filters.
pub(super) fn filtered<'r>(
    index: &PrivateIndex<'_>,
    rows: &'r [IndexRow],
    filters: &[String],
    attributes: Attributes,
    deadline: Deadline,
) -> Result<Vec<&'r IndexRow>, WorktreeError> {
    let files: Vec<&IndexRow> = rows.iter().filter(|row| row.mode != Mode::Repo).collect();
    let paths = text::zero_joined(files.iter().map(|row| row.path.as_path()));
    let mut call = index.call().args(["check-attr", "-z", "--stdin"]);
    if attributes == Attributes::OfIndex {
        call = call.arg("--cached");
    }
    let answer = call.arg("filter").stdin(paths).output(deadline)?;
    // Path, attribute, value: one after the other, in the order of the question.
    let values = text::zero_ended(&answer).skip(2).step_by(3);
    let is_filter = |value: &[u8]| filters.iter().any(|name| name.as_bytes() == value);
    let rows = files.into_iter().zip(values);
    let rows = rows.filter(|(_, value)| is_filter(value));
    Ok(rows.map(|(row, _)| row).collect())
}

/// Puts rows into the index, without the metadata that would spare a look at the file.
fn put(
    index: &PrivateIndex<'_>,
    rows: Vec<(Mode, Oid, &Path)>,
    deadline: Deadline,
) -> Result<(), Stop> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for (mode, oid, path) in rows {
        bytes.extend_from_slice(format!("{} {oid}\t", mode.octal()).as_bytes());
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    let update = ["update-index", "-z", "--index-info"];
    index
        .call()
        .args(update)
        .stdin(bytes)
        .output(deadline)
        .map(drop)
        .map_err(Stop::from)
}

fn add_all(
    index: &PrivateIndex<'_>,
    scan_root: &ScanRoot,
    inner: &[PathBuf],
    deadline: Deadline,
) -> Result<(), Stop> {
    let exclude = |path: &PathBuf| {
        let mut spec = OsString::from(":(exclude,literal)");
        spec.push(path);
        spec
    };
    let add = index
        .call()
        .args(index.repo.add_all())
        .args(["--ignore-errors", "--"])
        .args(scan_root.pathspecs())
        .args(inner.iter().map(exclude));
    let added = add.run(deadline)?;
    match added.code {
        // 1: some files could not be read, or some repository has no commit yet.
        Some(0 | 1) => Ok(()),
        _ => Err(added.error().into()),
    }
}

/// Rows of `H 100644 0123… 0<TAB>path`. Gives the files, and those among them that do not count.
fn parse(listed: &[u8], scan_root: &ScanRoot) -> Result<(Folder, Vec<PathBuf>), Stop> {
    let mut top = Folder::default();
    let mut ours = Vec::new();
    for row in text::zero_ended(listed) {
        let (tag, mode, oid, path) = parse_row(row).ok_or_else(|| odd("ls-files"))?;
        if scan_root.is_apart(&path) {
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
    Stop::Failed(format!("git {verb} gave an unexpected answer"))
}
