//! A fast-forward that failed after git began to write: the user's checkout is put back as it was.
//!
//! Git checks every file before it writes the first one, and does not undo what it wrote where a later
//! file or the branch fails: a full disk is enough. What is done with each file is decided by
//! [`LandingFile`]; here is looked before and after, and written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use descartes_kernel::tasks::{FileNow, LandingFile, UndoLanding, git_reason};
use descartes_text::units::plural;
use nix::sys::statvfs::statvfs;

use super::half_landed::Changed;
use super::{Done, GitError, Trees};
use crate::tasks::git::zero_ended;
use crate::tasks::git_error::GitErrorKind;
use crate::worktree::stamp::Stamp;

/// The times of files are those of the kernel's last tick.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// The files of a fast-forward before it.
struct FilesBefore {
    /// None where there was no file.
    stamps: Vec<Option<Stamp>>,
    /// Folders that were not there.
    no_folders: BTreeSet<PathBuf>,
}

/// What came of putting files back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PutBack {
    /// Git had written nothing.
    Nothing,
    /// Everything is as it was.
    Whole,
    /// So many files are as git left them.
    Left(usize),
}

/// What came of a fast-forward.
pub(super) struct Moved {
    pub(super) answer: Result<(), GitError>,
    back: PutBack,
}

impl Moved {
    /// Whether git said no and had written nothing.
    pub(super) fn is_refusal(&self) -> bool {
        self.is_as_before() && self.back == PutBack::Nothing
    }

    /// Whether it failed, and nothing of it is left in the checkout.
    pub(super) fn is_as_before(&self) -> bool {
        let failed = self.answer.as_ref().err();
        failed.is_some_and(|error| error.kind() != GitErrorKind::Killed)
            && !matches!(self.back, PutBack::Left(_))
    }
}

impl Trees {
    /// Bytes that are left where the user's checkout and its git folder are.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        let git = self.common_dir().ok();
        let places = [Some(self.user.dir.clone()), git];
        places.iter().flatten().filter_map(|at| free_at(at)).min()
    }

    /// One try of a fast-forward. What git wrote before it failed is put back; a git that was killed
    /// may still have filters at work, and what it left is dealt with by the next try.
    pub(super) fn try_forward(&self, commit: &str, changed: &[Changed]) -> Done<Moved> {
        let (before, since) = (self.look_before(changed), SystemTime::now() - CLOCK_TICK);
        // Once the loop is told to stop, no git can be asked any more.
        let locks = self.checkout_locks()?;
        let (answer, is_answer) =
            match self
                .user
                .attempt(&["merge", "--ff-only", "--quiet", commit])
            {
                Ok(answer) => (answer, true),
                Err(error) => (Err(error), false),
            };
        let error = match answer {
            Ok(()) => {
                let (answer, back) = (Ok(()), PutBack::Nothing);
                return Ok(Moved { answer, back });
            }
            Err(error) => error,
        };
        // Measured before room is made.
        let is_full = error.is_disk_full(self.free_bytes());
        if matches!(
            error.kind(),
            GitErrorKind::Killed | GitErrorKind::Stopped | GitErrorKind::TimedOut
        ) {
            self.take_from_killed(&locks, since);
        }
        let back = match error.kind() {
            GitErrorKind::Killed => PutBack::Nothing,
            _ => self.put_back(&before, commit, changed),
        };
        let error = match is_full {
            true => GitError::DiskFull(full_words(&error, back)),
            false => error,
        };
        match is_answer {
            true => Ok(Moved {
                answer: Err(error),
                back,
            }),
            false => Err(error),
        }
    }

    fn look_before(&self, changed: &[Changed]) -> FilesBefore {
        let mut no_folders = BTreeSet::new();
        let mut stamps = Vec::new();
        for file in changed {
            stamps.push(self.stamp(file));
            let folders = file.name.ancestors().skip(1);
            let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
            let missing = folders.take_while(|folder| !self.is_folder(folder));
            no_folders.extend(missing.map(Path::to_owned));
        }
        FilesBefore { stamps, no_folders }
    }

    fn stamp(&self, file: &Changed) -> Option<Stamp> {
        let meta = self.look_at(&file.name)?;
        (!meta.is_dir()).then(|| Stamp::of(&meta))
    }

    fn put_back(&self, before: &FilesBefore, commit: &str, changed: &[Changed]) -> PutBack {
        let stamps = before.stamps.iter();
        let touched = changed
            .iter()
            .zip(stamps)
            .map(|(file, was)| (file, was.is_some(), *was != self.stamp(file)));
        let touched: Vec<(&Changed, bool)> = touched
            .filter_map(|(file, was_there, is_touched)| is_touched.then_some((file, was_there)))
            .collect();
        if touched.is_empty() {
            return PutBack::Nothing;
        }
        match self.undo(&touched, before, commit) {
            Ok(0) => PutBack::Whole,
            Ok(left) => PutBack::Left(left),
            Err(error) => {
                error.log("undoing a fast-forward");
                PutBack::Left(touched.len())
            }
        }
    }

    /// Tells how many files cannot be written again, since somebody put something else there.
    fn undo(
        &self,
        touched: &[(&Changed, bool)],
        before: &FilesBefore,
        commit: &str,
    ) -> Done<usize> {
        // An index that was written is of the new commit: before its files go, it must be the old.
        let staged = self.staged_files()?;
        let moved = touched.iter().map(|(file, _)| *file);
        let moved = moved
            .filter(|file| file.old != file.new && staged.get(&file.name) == file.new.as_ref());
        self.set_entries(moved.map(|file| (&*file.name, &file.old)))?;
        let mut restored = Vec::new();
        for (file, was_there) in touched {
            let now = match self.look_at(&file.name) {
                Some(meta) if meta.is_dir() => FileNow::Nothing,
                None => FileNow::Nothing,
                Some(_) if self.is_part_of(commit, &file.name)? => FileNow::Work,
                Some(_) => FileNow::Other,
            };
            let decided = LandingFile {
                is_tracked: file.old.is_some(),
                was_there: *was_there,
                is_touched: true,
                now,
            };
            match decided.undo() {
                UndoLanding::Keep | UndoLanding::NotOurs => {}
                UndoLanding::Restore => restored.push(&*file.name),
                UndoLanding::Remove => self.remove_at(&file.name)?,
            }
        }
        // Those within first. One that somebody put a file into stays.
        for folder in before.no_folders.iter().rev() {
            self.remove_empty(folder);
        }
        let touched = restored.len();
        restored.retain(|name| self.is_free(name));
        let left = touched - restored.len();
        self.write_again(restored.into_iter())?;
        Ok(left)
    }

    /// Writes files of the user's checkout as the index has them.
    pub(super) fn write_again<'n>(&self, names: impl Iterator<Item = &'n Path>) -> Done<()> {
        let names = zero_ended("", names);
        if names.is_empty() {
            return Ok(());
        }
        let args = ["checkout-index", "--force", "-z", "--stdin"];
        self.user.quiet_with(&args, &names)?;
        self.user.tidy(&["update-index", "-q", "--refresh"]);
        Ok(())
    }
}

fn free_at(path: &Path) -> Option<u64> {
    let stat = statvfs(path).ok()?;
    // Some file systems have no number of files.
    if stat.files() > 0 && stat.files_available() == 0 {
        return Some(0);
    }
    Some(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

fn full_words(error: &GitError, back: PutBack) -> String {
    let reason = git_reason(&error.to_string());
    match back {
        PutBack::Nothing => format!("{reason}; your checkout was not changed"),
        PutBack::Whole => format!("{reason}; your checkout was put back as it was"),
        PutBack::Left(files) => format!(
            "{reason}; {} in your checkout could not be put back, and are replaced when the work \
             lands",
            plural(files as u64, "file")
        ),
    }
}
