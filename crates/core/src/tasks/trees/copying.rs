//! Copies of files between trees, which may be large: holes stay holes, a disk is not filled, and whoever wants
//! the end is heard between two blocks.

use std::fs::{File, FileTimes, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use descartes_kernel::tasks::has_room;
use descartes_text::units::show_size;
use nix::errno::Errno;
use nix::sys::statvfs::statvfs;
use nix::unistd::{Whence, lseek};

use super::files::remove_all;
use super::{Done, GitError, Trees};
use crate::worktree::WorktreeError;

/// So much is copied before somebody is listened to again.
const BLOCK: u64 = 16 * 1024 * 1024;
/// A copy that takes longer is said.
const SILENT: Duration = Duration::from_secs(1);

/// Why something was not copied.
#[derive(Debug)]
pub(super) enum NotCopied {
    /// Somebody wants the end.
    Stopped,
    /// The disk has no room for it; in words.
    NoRoom(String),
    Failed(std::io::Error),
}

impl From<std::io::Error> for NotCopied {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<NotCopied> for GitError {
    fn from(error: NotCopied) -> Self {
        match error {
            NotCopied::Stopped => Self::Call(WorktreeError::Stopped {
                verb: "copy".to_owned(),
            }),
            NotCopied::NoRoom(message) => Self::DiskFull(message),
            NotCopied::Failed(error) => Self::File(error),
        }
    }
}

/// What of a folder is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// What is not there, or is there in another state.
    Fresher,
}

/// Something to be copied.
struct Planned {
    from: PathBuf,
    to: PathBuf,
    meta: Metadata,
}

/// Copies files and folders as they are, with their times, links as links: build tools look at times.
pub(super) struct Copier<'c> {
    /// What it is about, for people.
    what: String,
    is_stopped: &'c dyn Fn() -> bool,
    tell: &'c dyn Fn(String),
    silent: Duration,
}

impl Trees {
    /// Whether something was copied; that a disk had no room for it is said, and no error.
    pub(super) fn copied_where_there_is_room(&self, done: Result<(), NotCopied>) -> Done<bool> {
        match done {
            Ok(()) => Ok(true),
            Err(NotCopied::NoRoom(message)) => {
                let message = format!("{message}: it is not copied");
                self.user.locks.tell(message);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Copies something, unless there is no room for it.
    pub(super) fn copy_all(&self, what: &str, from: &Path, to: &Path) -> Result<(), NotCopied> {
        self.copier(what, |copier| copier.all(from, to))
    }

    /// The same for what is not there, or is there in another state.
    pub(super) fn copy_fresher(&self, what: &str, from: &Path, to: &Path) -> Result<(), NotCopied> {
        self.copier(what, |copier| copier.fresher(from, to))
    }

    fn copier<T>(&self, what: &str, copy: impl FnOnce(Copier<'_>) -> T) -> T {
        copy(Copier {
            what: what.to_owned(),
            is_stopped: &|| self.stopped.load(Ordering::SeqCst),
            tell: &|message| self.user.locks.tell(message),
            silent: SILENT,
        })
    }
}

impl Copier<'_> {
    fn all(&self, from: &Path, to: &Path) -> Result<(), NotCopied> {
        self.copy(from, to, Which::All)
    }

    fn fresher(&self, from: &Path, to: &Path) -> Result<(), NotCopied> {
        // A link that a person named stands for what it points to.
        self.copy(&fs_err::canonicalize(from)?, to, Which::Fresher)
    }

    fn copy(&self, from: &Path, to: &Path, which: Which) -> Result<(), NotCopied> {
        let mut plan = Vec::new();
        self.plan(from, to, which, &mut plan)?;
        let bytes = plan.iter().map(|one| one.meta.blocks().saturating_mul(512));
        let bytes: u64 = bytes.sum();
        self.look_for_room(bytes, to)?;
        let (began, mut is_said) = (Instant::now(), false);
        for one in &plan {
            self.copy_one(one, &mut || {
                if !is_said && began.elapsed() >= self.silent {
                    is_said = true;
                    (self.tell)(format!("copying {} ({})", self.what, show_size(bytes)));
                }
            })?;
        }
        Ok(())
    }

    fn listen(&self) -> Result<(), NotCopied> {
        match (self.is_stopped)() {
            true => Err(NotCopied::Stopped),
            false => Ok(()),
        }
    }

    /// Folders before what is in them.
    fn plan(
        &self,
        from: &Path,
        to: &Path,
        which: Which,
        plan: &mut Vec<Planned>,
    ) -> Result<(), NotCopied> {
        self.listen()?;
        let meta = fs_err::symlink_metadata(from)?;
        if which == Which::Fresher && is_as(&meta, to) {
            return Ok(());
        }
        let is_folder = meta.is_dir();
        plan.push(Planned {
            from: from.to_owned(),
            to: to.to_owned(),
            meta,
        });
        if is_folder {
            for entry in fs_err::read_dir(from)? {
                let entry = entry?;
                let to = to.join(entry.file_name());
                self.plan(&entry.path(), &to, which, plan)?;
            }
        }
        Ok(())
    }

    fn look_for_room(&self, bytes: u64, to: &Path) -> Result<(), NotCopied> {
        let there = to.ancestors().find(|folder| folder.is_dir());
        let disk = there.and_then(|folder| statvfs(folder).ok());
        let Some(disk) = disk else {
            return Ok(());
        };
        let size = disk.fragment_size();
        let (free, whole) = (disk.blocks_available() * size, disk.blocks() * size);
        match has_room(bytes, free, whole) {
            true => Ok(()),
            false => Err(NotCopied::NoRoom(format!(
                "{} would need {}, and only {} are free there",
                self.what,
                show_size(bytes),
                show_size(free)
            ))),
        }
    }

    fn copy_one(&self, one: &Planned, between: &mut dyn FnMut()) -> Result<(), NotCopied> {
        self.listen()?;
        between();
        let Planned { from, to, meta } = one;
        let there = to.symlink_metadata().ok();
        if meta.is_dir() {
            if there.is_some_and(|there| !there.is_dir()) {
                // Never through a link.
                remove_all(to)?;
            }
            return Ok(fs_err::create_dir_all(to)?);
        }
        if meta.is_symlink() {
            let target = fs_err::read_link(from)?;
            remove_all(to)?;
            return Ok(fs_err::os::unix::fs::symlink(target, to)?);
        }
        if !meta.is_file() {
            // Sockets and the like are of no use elsewhere.
            return Ok(());
        }
        let is_in_the_way = |there: Metadata| !there.is_file() || there.permissions().readonly();
        if there.is_some_and(is_in_the_way) {
            remove_all(to)?;
        }
        let source = fs_err::File::open(from)?.into_file();
        let copy = fs_err::File::create(to)?.into_file();
        let copied = self.copy_content(&source, &copy, meta.len(), between);
        copied.map_err(|error| match error {
            NotCopied::Failed(error) => {
                let message = format!("{}: {error}", to.display());
                NotCopied::Failed(std::io::Error::new(error.kind(), message))
            }
            other => other,
        })?;
        copy.set_times(FileTimes::new().set_modified(meta.modified()?))?;
        let mode = meta.permissions().mode() & 0o7777;
        copy.set_permissions(PermissionsExt::from_mode(mode))?;
        Ok(())
    }

    /// Only what is data is written.
    fn copy_content(
        &self,
        mut from: &File,
        mut to: &File,
        size: u64,
        between: &mut dyn FnMut(),
    ) -> Result<(), NotCopied> {
        to.set_len(size)?;
        let mut at = 0;
        while let Some((begin, end)) = data_after(from, at, size)? {
            from.seek(SeekFrom::Start(begin))?;
            to.seek(SeekFrom::Start(begin))?;
            at = begin;
            while at < end {
                self.listen()?;
                between();
                let block = (end - at).min(BLOCK);
                // Inside of the file system, where that knows how.
                match std::io::copy(&mut from.take(block), &mut to)? {
                    // It was made shorter meanwhile.
                    0 => return Ok(to.set_len(at)?),
                    copied => at += copied,
                }
            }
        }
        Ok(())
    }
}

/// Whether the same is there, by size and time.
fn is_as(meta: &Metadata, to: &Path) -> bool {
    let there = to.symlink_metadata();
    meta.is_file()
        && there.is_ok_and(|there| {
            there.is_file()
                && there.len() == meta.len()
                && there.modified().ok() == meta.modified().ok()
        })
}

/// Where the next data of a file begins and ends.
fn data_after(file: &File, at: u64, size: u64) -> std::io::Result<Option<(u64, u64)>> {
    if at >= size {
        return Ok(None);
    }
    let seek = |from: u64, whence| lseek(file, i64::try_from(from).unwrap_or(i64::MAX), whence);
    let begin = match seek(at, Whence::SeekData) {
        Ok(begin) => begin.unsigned_abs(),
        Err(Errno::ENXIO) => return Ok(None),
        // Not every file system knows where its holes are.
        Err(Errno::EINVAL | Errno::EOPNOTSUPP) => return Ok(Some((at, size))),
        Err(error) => return Err(error.into()),
    };
    let end = seek(begin, Whence::SeekHole).map_or(size, i64::unsigned_abs);
    Ok(Some((begin, end.min(size).max(begin))))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Runs a copy that is stopped once it has listened so often; what it said.
    fn copies(
        silent: Duration,
        listens: u32,
        copy: impl Fn(&Copier<'_>) -> Result<(), NotCopied>,
    ) -> (Result<(), NotCopied>, Vec<String>) {
        let (left, said) = (Cell::new(listens), RefCell::new(Vec::new()));
        let copier = Copier {
            what: "node_modules".to_owned(),
            is_stopped: &|| {
                left.set(left.get().saturating_sub(1));
                left.get() == 0
            },
            tell: &|message| said.borrow_mut().push(message),
            silent,
        };
        let done = copy(&copier);
        drop(copier);
        (done, said.into_inner())
    }

    fn write(path: &Path, content: impl AsRef<[u8]>) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    #[test]
    fn a_copy_is_as_what_was_copied_and_its_holes_stay_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        write(&from.join("a/program"), "#!/bin/sh\n");
        let mode = PermissionsExt::from_mode(0o555);
        fs_err::set_permissions(from.join("a/program"), mode).unwrap();
        fs_err::os::unix::fs::symlink("nowhere", from.join("link")).unwrap();
        // 300 GiB, with something at the beginning, in the middle and at the end.
        let large = fs_err::File::create(from.join("large"))
            .unwrap()
            .into_file();
        large.set_len(300 << 30).unwrap();
        let marks: [(u64, &[u8]); 3] = [
            (0, b"one"),
            (150 << 30, b"two"),
            ((300 << 30) - 5, b"three"),
        ];
        for (at, text) in marks {
            std::os::unix::fs::FileExt::write_all_at(&large, text, at).unwrap();
        }
        let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        large.set_modified(old).unwrap();
        // What is in the way goes; nothing is written through a link.
        let outside = dir.path().join("outside");
        write(&outside, "theirs");
        fs_err::create_dir_all(&to).unwrap();
        fs_err::os::unix::fs::symlink(&outside, to.join("large")).unwrap();
        let (done, said) = copies(SILENT, u32::MAX, |copier| copier.all(&from, &to));
        done.unwrap();
        assert_eq!(said, [""; 0]);
        let copy = fs_err::File::open(to.join("large")).unwrap().into_file();
        let meta = copy.metadata().unwrap();
        assert_eq!((meta.len(), meta.modified().unwrap()), (300 << 30, old));
        assert!(meta.blocks() * 512 < 10 << 20, "{}", meta.blocks());
        for (at, text) in marks {
            let mut there = vec![0; text.len()];
            std::os::unix::fs::FileExt::read_exact_at(&copy, &mut there, at).unwrap();
            assert_eq!(there, text);
        }
        let program = fs_err::metadata(to.join("a/program")).unwrap();
        assert_eq!(program.permissions().mode() & 0o777, 0o555);
        assert_eq!(
            fs_err::read_link(to.join("link")).unwrap(),
            Path::new("nowhere")
        );
        assert_eq!(fs_err::read_to_string(&outside).unwrap(), "theirs");
    }

    #[test]
    fn whoever_wants_the_end_is_heard_before_the_next_block() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        write(&from.join("large"), vec![1; 3 * BLOCK as usize]);
        // Twice while it plans, and twice before the first block.
        let (done, _) = copies(SILENT, 6, |copier| copier.all(&from, &to));
        assert!(matches!(done, Err(NotCopied::Stopped)), "{done:?}");
        let copied = fs_err::metadata(to.join("large")).unwrap().blocks() * 512;
        assert!(copied > 0 && copied < 2 * BLOCK, "{copied}");
    }

    #[test]
    fn a_copy_that_takes_long_is_said_once_with_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        write(&from.join("a"), vec![1; 2 << 20]);
        write(&from.join("b"), vec![1; 2 << 20]);
        let at_once = Duration::ZERO;
        let (done, said) = copies(at_once, u32::MAX, |copier| copier.all(&from, &to));
        done.unwrap();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("copying node_modules (4"), "{said:?}");
    }

    #[test]
    fn only_what_is_in_another_state_is_copied_again() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for name in ["same", "other", "gone"] {
            write(&from.join(name), name);
        }
        let fresher = |copier: &Copier<'_>| copier.fresher(&from, &to);
        copies(SILENT, u32::MAX, fresher).0.unwrap();
        let before = fs_err::metadata(to.join("same")).unwrap().ctime_nsec();
        write(&to.join("other"), "changed");
        fs_err::remove_file(to.join("gone")).unwrap();
        write(&to.join("own"), "own");
        copies(SILENT, u32::MAX, fresher).0.unwrap();
        assert_eq!(
            fs_err::metadata(to.join("same")).unwrap().ctime_nsec(),
            before
        );
        for name in ["same", "other", "gone", "own"] {
            assert_eq!(fs_err::read_to_string(to.join(name)).unwrap(), name);
        }
    }
}
