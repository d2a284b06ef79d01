//! The fast-forward of the user's checkout, also where an earlier one was cut short.
//!
//! A git that is killed in the middle leaves files as the new commit has them, one of them half
//! written, and an index that does not know; so does one that fails and whose files could not be put
//! back. Nothing is changed in the user's tree but that: where every file in the way is such, the
//! index is told, and what is half written goes.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use descartes_kernel::tasks::{CommitEntry, HalfLandedFile, LeftFile, MendLanding};
use descartes_text::units::plural;

use super::checkout_files::{CheckoutFile, HalfLandedEntry};
use super::files::read_note;
use super::{Done, GitError, Trees};

/// A file that a fast-forward changes. Names are of any bytes, as git has them.
pub(super) struct Changed {
    pub(super) name: PathBuf,
    pub(super) old: HalfLandedEntry,
    pub(super) new: HalfLandedEntry,
}

/// Files that are to be dealt with before a fast-forward can be tried again.
#[derive(Default)]
struct Mended {
    /// Index entries that were set, with what they were before.
    restored: Vec<(PathBuf, HalfLandedEntry)>,
    /// Files that a git left half written, and that are gone.
    removed: Vec<(PathBuf, HalfLandedEntry)>,
}

impl Mended {
    fn is_nothing(&self) -> bool {
        self.restored.is_empty() && self.removed.is_empty()
    }
}

impl Trees {
    /// Says that a fast-forward is under way, from which commit to which.
    fn landing_mark(&self) -> PathBuf {
        self.folder.join("control").join("landing")
    }

    /// A host that died in the middle of a fast-forward took its git along, and nobody else removes the
    /// lock of that.
    pub(super) fn unlock_cut_short(&self) -> Done<()> {
        let since = match fs_err::metadata(self.landing_mark()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            mark => mark?.modified()?,
        };
        self.take_from_killed(&self.checkout_locks()?, since);
        Ok(())
    }

    /// What fast-forwards from here were about that were cut short.
    fn cut_short(&self, head: &str) -> Done<Vec<String>> {
        let note = read_note(&self.landing_mark())?.unwrap_or_default();
        let text = String::from_utf8_lossy(&note);
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let from_here = lines.filter(|(from, _)| *from == head);
        Ok(from_here.map(|(_, to)| to.trim().to_owned()).collect())
    }

    /// Says that a fast-forward is under way, before it is.
    fn mark_landing(&self, head: &str, cut_short: &[String], commit: &str) -> Done<()> {
        if cut_short.iter().any(|to| to == commit) {
            return Ok(());
        }
        let all = cut_short.iter().map(String::as_str).chain([commit]);
        let text: String = all.map(|to| format!("{head} {to}\n")).collect();
        // Beside it first: what an earlier one says must not get lost on a full disk.
        let mark = self.landing_mark();
        let new = mark.with_extension("new");
        fs_err::write(&new, text)?;
        fs_err::rename(new, mark).map_err(GitError::from)
    }

    /// Moves the user's checkout and branch onwards, or leaves both as they are: git's words.
    pub(super) fn fast_forward(&self, head: &str, commit: &str) -> Done<Result<(), GitError>> {
        let cut_short = self.cut_short(head)?;
        self.mark_landing(head, &cut_short, commit)?;
        let changed = self.changed_files(head, commit)?;
        let mut moved = self.try_forward(commit, &changed)?;
        if moved.is_refusal() {
            let mended = self.mend_checkout(&changed, &cut_short)?;
            if !mended.is_nothing() {
                moved = self.try_forward(commit, &changed)?;
            }
            if moved.answer.is_err() {
                self.set_entries(mended.restored.iter().map(|(name, old)| (&**name, old)))?;
                let removed = mended.removed.iter().filter(|(_, old)| old.is_some());
                self.write_again(removed.map(|(name, _)| &**name))?;
            }
        }
        // Where something of an earlier one is in the way, it is told from a person's files later.
        let is_over = moved.answer.is_ok() || (moved.is_as_before() && cut_short.is_empty());
        if is_over {
            drop(fs_err::remove_file(self.landing_mark()));
        }
        Ok(moved.answer)
    }

    /// Where every file in the way is one that a cut short fast-forward left, or is by chance as
    /// the new commit has it, makes room.
    fn mend_checkout(&self, changed: &[Changed], cut_short: &[String]) -> Done<Mended> {
        let staged = self.staged_files()?;
        let behind = |file: &&Changed| staged.get(&file.name) != file.new.as_ref();
        let behind: Vec<&Changed> = changed.iter().filter(behind).collect();
        let there = self.files_as_git(behind.iter().map(|file| &*file.name))?;
        let old = changed.iter().filter(|file| file.old.is_some());
        let folders: HashSet<&Path> = old.flat_map(|file| file.name.ancestors().skip(1)).collect();
        let (mut restored, mut left) = (Vec::new(), Vec::new());
        for file in behind {
            let now = match there.get(&file.name) {
                None => LeftFile::Nothing,
                Some(CheckoutFile::Folder) => LeftFile::Folder,
                Some(found) if file.new.as_ref().is_some_and(|new| found.is(new)) => LeftFile::New,
                Some(found) if file.old.as_ref().is_some_and(|old| found.is(old)) => LeftFile::Old,
                Some(_) if self.is_part_of_any(cut_short, &file.name)? => LeftFile::Part,
                Some(_) => LeftFile::Other,
            };
            let half = HalfLandedFile {
                is_staged_old: staged.get(&file.name) == file.old.as_ref(),
                old: kind_of(&file.old),
                new: kind_of(&file.new),
                was_folder: folders.contains(&*file.name),
                is_after_cut: !cut_short.is_empty(),
                now,
            };
            match half.mend() {
                MendLanding::Keep => {}
                MendLanding::Stage => restored.push(file),
                MendLanding::Rewrite => left.push(file),
                MendLanding::Refuse => return Ok(Mended::default()),
            }
        }
        self.set_entries(restored.iter().map(|file| (&*file.name, &file.new)))?;
        for file in &left {
            self.remove_at(&file.name)?;
        }
        if !restored.is_empty() {
            self.user.locks.tell(format!(
                "{} in your checkout already matched the work to be landed: git's index was \
                 updated",
                plural(restored.len() as u64, "file")
            ));
        }
        if !left.is_empty() {
            self.user.locks.tell(format!(
                "{} in your checkout were partly written by a git process that was killed or failed: \
                 writing them again",
                plural(left.len() as u64, "file")
            ));
        }
        let old = |file: &&Changed| (file.name.clone(), file.old.clone());
        Ok(Mended {
            restored: restored.iter().map(old).collect(),
            removed: left.iter().map(old).collect(),
        })
    }

    /// What differs between two commits.
    fn changed_files(&self, head: &str, commit: &str) -> Done<Vec<Changed>> {
        let raw = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            head,
            commit,
        ];
        let mut parts = self.user.paths(&raw)?.into_iter();
        let mut changed = Vec::new();
        while let (Some(facts), Some(name)) = (parts.next(), parts.next()) {
            let facts = facts.to_string_lossy();
            let facts: Vec<&str> = facts.trim_start_matches(':').split(' ').collect();
            let entry = |mode: usize, blob: usize| -> HalfLandedEntry {
                let mode = facts.get(mode).filter(|mode| **mode != "000000")?;
                Some(((*mode).to_owned(), (*facts.get(blob)?).to_owned()))
            };
            changed.push(Changed {
                name,
                old: entry(0, 2),
                new: entry(1, 3),
            });
        }
        Ok(changed)
    }

    /// The user's index.
    pub(super) fn staged_files(&self) -> Done<HashMap<PathBuf, (String, String)>> {
        let rows = self.user.paths(&["ls-files", "--stage", "-z"])?;
        let entry = |row: PathBuf| {
            let row = row.as_os_str().as_bytes();
            let tab = row.iter().position(|byte| *byte == b'\t')?;
            let facts = std::str::from_utf8(row.get(..tab)?).ok()?;
            let mut facts = facts.split(' ');
            let entry = (facts.next()?.to_owned(), facts.next()?.to_owned());
            let name = OsStr::from_bytes(row.get(tab + 1..)?);
            Some((PathBuf::from(name), entry))
        };
        Ok(rows.into_iter().filter_map(entry).collect())
    }

    fn is_part_of_any(&self, commits: &[String], name: &Path) -> Done<bool> {
        for commit in commits {
            if self.is_part_of(commit, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets entries of the user's index; the files stay as they are.
    pub(super) fn set_entries<'e>(
        &self,
        entries: impl Iterator<Item = (&'e Path, &'e HalfLandedEntry)>,
    ) -> Done<()> {
        let head = self.user.commit_of("HEAD")?;
        let zero = "0".repeat(head.map_or(40, |head| head.len()));
        let mut input = Vec::new();
        for (name, entry) in entries {
            let (mode, blob) = match entry {
                Some((mode, blob)) => (&**mode, &**blob),
                None => ("0", &*zero),
            };
            input.extend_from_slice(format!("{mode} {blob}\t").as_bytes());
            input.extend_from_slice(name.as_os_str().as_bytes());
            input.push(0);
        }
        if input.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "-z", "--index-info"];
        self.user.fed(&args, &input).map(drop)
    }
}

fn kind_of(entry: &HalfLandedEntry) -> CommitEntry {
    match entry {
        None => CommitEntry::Nothing,
        Some((mode, _)) if mode == "160000" => CommitEntry::Submodule,
        Some(_) => CommitEntry::File,
    }
}
