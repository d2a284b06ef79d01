//! The few things this crate does to the disk, each through a fault point and each with
//! an error that names the path.

use crate::fault::{self, FaultVerdict};
use crate::safe_open::{self, Options, Refusal};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc::{EDQUOT, EFBIG, ENOSPC};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file operation that failed, with what was tried and where.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct IoError {
    /// What was tried, as a verb phrase: `write`, `make the folder`.
    pub action: &'static str,
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl IoError {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether there is no room: disk, quota or file size limit.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }

    /// Whether the file or folder is not there.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == ErrorKind::NotFound
    }

    /// Why it was refused by us, where it was: a link, a FIFO, another user's file.
    pub fn refusal(&self) -> Option<&Refusal> {
        Refusal::of(&self.source)
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(ENOSPC | EDQUOT | EFBIG))
}

pub(crate) fn at<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> IoError + 'a {
    move |source| IoError::new(action, path, source)
}

fn pass() -> io::Result<()> {
    match fault::hit() {
        FaultVerdict::Go => Ok(()),
        #[cfg(feature = "faults")]
        FaultVerdict::Fail(errno) | FaultVerdict::Tear(errno) => {
            Err(io::Error::from_raw_os_error(errno))
        }
        #[cfg(feature = "faults")]
        FaultVerdict::TearAndKill => {
            fault::kill_now();
            Ok(())
        }
    }
}

/// Runs `write` on `bytes`, or on the part of them that a fault lets through.
fn pass_bytes(bytes: &[u8], write: impl Fn(&[u8]) -> io::Result<()>) -> io::Result<()> {
    match fault::hit() {
        FaultVerdict::Go => write(bytes),
        #[cfg(feature = "faults")]
        FaultVerdict::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
        #[cfg(feature = "faults")]
        FaultVerdict::Tear(errno) => {
            write(&bytes[..bytes.len() / 2])?;
            Err(io::Error::from_raw_os_error(errno))
        }
        #[cfg(feature = "faults")]
        FaultVerdict::TearAndKill => {
            write(&bytes[..bytes.len() / 2])?;
            fault::kill_now();
            Ok(())
        }
    }
}

/// One `write(2)` where the kernel takes all of it, more where it does not.
pub(crate) fn write_all(file: &File, bytes: &[u8]) -> io::Result<()> {
    pass_bytes(bytes, |part| {
        let mut file = file;
        file.write_all(part)
    })
}

pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    pass_bytes(bytes, |part| file.write_all_at(part, offset))
}

pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    pass()?;
    fault::linger();
    file.sync_data()
}

pub(crate) fn set_len(file: &File, len: u64) -> io::Result<()> {
    pass()?;
    file.set_len(len)
}

/// Gives blocks of a file back to the disk; they read as zeros, and the file stays as long.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    pass()?;
    let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    Ok(fallocate(
        file,
        mode,
        offset.cast_signed(),
        len.cast_signed(),
    )?)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), IoError> {
    pass()
        .and_then(|()| safe_open::rename(from, to))
        .map_err(at("move into place", to))
}

/// Removes a file; one that is not there is as good as removed.
pub(crate) fn remove_file(path: &Path) -> Result<(), IoError> {
    match pass().and_then(|()| safe_open::remove_file(path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(at("remove", path)),
    }
}

pub(crate) fn remove_tree(path: &Path) -> Result<(), IoError> {
    match pass().and_then(|()| safe_open::remove_tree(path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(at("remove", path)),
    }
}

/// Opens a file of ours: see [`safe_open`].
pub(crate) fn open(options: Options, path: &Path) -> io::Result<File> {
    pass()?;
    safe_open::open(options, path)
}

/// Opens a file of ours to read it.
pub(crate) fn open_read(path: &Path) -> Result<File, IoError> {
    safe_open::open_read(path).map_err(at("open", path))
}

/// Flushes a folder, so that the names in it outlive a power cut.
pub(crate) fn sync_dir(path: &Path) -> Result<(), IoError> {
    let sync = || {
        pass()?;
        fault::linger();
        safe_open::open_folder(path)?.sync_all()
    };
    sync().map_err(at("sync the folder", path))
}

/// Whether new names must outlive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The operating system writes them when it likes.
    Lazy,
    /// They are on the disk when the call returns.
    Durable,
}

/// Makes a folder of mode 0700 with its parents; what is there already is left as it is.
pub(crate) fn make_dir(path: &Path, sync: Sync) -> Result<(), IoError> {
    let build = || {
        pass()?;
        safe_open::make_folder(path)
    };
    let made = match build() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            make_dir(
                parent.ok_or_else(|| IoError::new("create the folder", path, error))?,
                sync,
            )?;
            build()
        }
        other => other,
    };
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return match safe_open::metadata(path) {
                Ok(meta) if meta.is_dir() => Ok(()),
                Ok(meta) if meta.is_symlink() => {
                    let refusal = Refusal::Link(path.to_owned());
                    Err(IoError::new("create the folder", path, refusal.into()))
                }
                _ => Err(IoError::new("create the folder", path, error)),
            };
        }
        other => other.map_err(at("create the folder", path))?,
    }
    match (sync, path.parent()) {
        (Sync::Durable, Some(parent)) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Writes a small file whole or not at all: a temporary file beside it, then a rename.
/// For files of one writer: what a killed one left behind is used again.
pub(crate) fn replace(path: &Path, bytes: &[u8], sync: Sync) -> Result<(), IoError> {
    replace_through(&beside(path, ".tmp"), path, bytes, sync)
}

/// As [`replace`], for files that several may write at once.
pub(crate) fn replace_shared(path: &Path, bytes: &[u8], sync: Sync) -> Result<(), IoError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".{}-{count}.tmp", std::process::id());
    replace_through(&beside(path, &name), path, bytes, sync)
}

fn replace_through(staged: &Path, path: &Path, bytes: &[u8], sync: Sync) -> Result<(), IoError> {
    let write = || {
        let file = make_new(staged)?;
        write_all(&file, bytes)?;
        match sync {
            Sync::Durable => sync_data(&file),
            Sync::Lazy => Ok(()),
        }
    };
    if let Err(error) = write() {
        // Best effort: the first error is the one that counts.
        let _ = safe_open::remove_file(staged);
        return Err(IoError::new("write", staged, error));
    }
    match sync {
        Sync::Durable => {
            rename(staged, path)?;
            path.parent().map_or(Ok(()), sync_dir)
        }
        Sync::Lazy => exchange(staged, path),
    }
}

/// A new file; what has its name, as a killed writer leaves one or somebody plants one, goes.
pub(crate) fn make_new(path: &Path) -> io::Result<File> {
    let make = || open(Options::new().write().create_new(), path);
    match make() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            safe_open::remove_file(path)?;
            make()
        }
        other => other,
    }
}

/// Puts a file in the place of another without waiting for the disk: where one is replaced by a
/// plain rename, ext4 writes the new one out first, which takes longer than all else in the gap
/// between two iterations.
fn exchange(staged: &Path, path: &Path) -> Result<(), IoError> {
    // A folder would be exchanged as gladly.
    if !safe_open::is_file(path) {
        return rename(staged, path);
    }
    match pass().and_then(|()| safe_open::exchange(staged, path)) {
        Ok(()) => {
            // The new one is in place, whatever becomes of the old: it is used again, or removed.
            let _ = remove_file(staged);
            Ok(())
        }
        // It is gone by now, or the file system cannot.
        Err(error) if refuses_exchange(&error) => rename(staged, path),
        Err(error) => Err(IoError::new("move into place", path, error)),
    }
}

fn refuses_exchange(error: &io::Error) -> bool {
    let known = [Errno::ENOENT, Errno::EINVAL, Errno::ENOSYS, Errno::EPERM];
    known
        .iter()
        .any(|errno| error.raw_os_error() == Some(*errno as i32))
}

/// The path with `suffix` added to its file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, IoError> {
    safe_open::read(path).map_err(at("read", path))
}
