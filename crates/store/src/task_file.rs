//! Files that other tools and people write too: task files under the locking rules of SCUD, and
//! Markdown files that are a person's.
//!
//! A task file is locked itself (`flock`), read again inside the lock and written in place: a
//! rename would leave another writer with the old file in its hands. What is about to be written
//! is kept aside first, so that a host that dies in the middle leaves nothing half written.

use crate::ops::{self, IoError, Sync};
use crate::safe_open::{self, Options};
use std::fs::{File, TryLockError};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Others hold the lock for milliseconds. A loop that waits hears nobody meanwhile, and tries again later.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
/// SCUD itself empties the file before it takes the lock.
const EMPTY: Duration = Duration::from_secs(1);

/// Why a shared file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// Somebody holds the lock.
    #[error("{} has been locked by another program for {waited:?}", path.display())]
    Busy {
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It is no text.
    #[error("{} is not UTF-8", path.display())]
    NotText { path: PathBuf },
    /// It changes again and again while it is read.
    #[error("{} changes faster than it can be read", path.display())]
    Restless { path: PathBuf },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// A task file that is changed in place under its own lock.
#[derive(Clone, Debug)]
pub struct TaskFile {
    path: PathBuf,
    /// The file as it was before our last write.
    before: PathBuf,
    /// What a write under way is to make of it.
    next: PathBuf,
}

impl TaskFile {
    /// The file at `path`; `keep` is a folder of our own for the copies.
    pub fn new(path: &Path, keep: &Path) -> Self {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self {
            path: path.to_owned(),
            before: keep.join(format!("{name}.before")),
            next: keep.join(format!("{name}.next")),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> Result<String, TaskFileError> {
        let since = Instant::now();
        loop {
            let text = self.read_once()?;
            if !text.is_empty() || since.elapsed() > EMPTY {
                return Ok(text);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn read_once(&self) -> Result<String, TaskFileError> {
        if self.next.exists() {
            let file = self.lock()?;
            return self.mended(&file);
        }
        let file = safe_open::open_user_file(&self.path, Options::new().read())
            .map_err(ops::at("open", &self.path))?;
        self.wait(|| file.try_lock_shared())?;
        self.text_of(&file)
    }

    /// Changes the file: `change` is given its text as it is inside the lock, and answers with
    /// the new one, or with `None` to leave it.
    pub fn edit<T, E>(
        &self,
        change: impl FnOnce(&str) -> Result<(Option<String>, T), E>,
    ) -> Result<Result<T, E>, TaskFileError> {
        let (file, text) = self.lock_filled()?;
        let (new, answer) = match change(&text) {
            Ok(changed) => changed,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(new) = new.filter(|new| *new != text) {
            self.write(&file, &text, &new)?;
        }
        Ok(Ok(answer))
    }

    /// The locked file and its text; one that somebody has just emptied is waited for.
    fn lock_filled(&self) -> Result<(File, String), TaskFileError> {
        let since = Instant::now();
        loop {
            let file = self.lock()?;
            let text = self.mended(&file)?;
            if !text.is_empty() || since.elapsed() > EMPTY {
                return Ok((file, text));
            }
            // The one who emptied it needs the lock to write.
            drop(file);
            std::thread::sleep(PAUSE);
        }
    }

    fn lock(&self) -> Result<File, TaskFileError> {
        let file = safe_open::open_user_file(&self.path, Options::new().read().write())
            .map_err(ops::at("open", &self.path))?;
        self.wait(|| file.try_lock())?;
        Ok(file)
    }

    fn wait(&self, take: impl Fn() -> Result<(), TryLockError>) -> Result<(), TaskFileError> {
        let since = Instant::now();
        loop {
            match take() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if since.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(TaskFileError::Busy {
                        path: self.path.clone(),
                        waited: LOCK_TIMEOUT,
                    });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(IoError::new("lock", &self.path, error).into());
                }
            }
        }
    }

    fn text_of(&self, mut file: &File) -> Result<String, TaskFileError> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(ops::at("read", &self.path))?;
        String::from_utf8(bytes).map_err(|_| TaskFileError::NotText {
            path: self.path.clone(),
        })
    }

    fn write(&self, file: &File, old: &str, new: &str) -> Result<(), TaskFileError> {
        crate::layout::ensure_folder_of(&self.next)?;
        ops::replace(&self.before, old.as_bytes(), Sync::Lazy)?;
        ops::replace(&self.next, new.as_bytes(), Sync::Durable)?;
        self.put(file, old.as_bytes(), new)
    }

    /// Writes what differs from the `old` bytes.
    fn put(&self, file: &File, old: &[u8], new: &str) -> Result<(), TaskFileError> {
        let write = || {
            let part = differing(old, new.as_bytes());
            ops::write_all_at(file, &new.as_bytes()[part.clone()], part.start as u64)?;
            if old.len() != new.len() {
                ops::set_len(file, new.len() as u64)?;
            }
            ops::sync_data(file)
        };
        write().map_err(ops::at("write", &self.path))?;
        Ok(ops::remove_file(&self.next)?)
    }

    /// The text of the locked file, with a write of ours completed that was cut off.
    fn mended(&self, file: &File) -> Result<String, TaskFileError> {
        // As bytes: a write may have been cut off in the middle of a character.
        let mut bytes = Vec::new();
        let mut reader = file;
        reader
            .read_to_end(&mut bytes)
            .map_err(ops::at("read", &self.path))?;
        if self.next.exists() {
            let next = ops::read(&self.next)?;
            let before = ops::read(&self.before).unwrap_or_default();
            if is_torn(&bytes, &before, &next)
                && let Ok(next) = String::from_utf8(next)
            {
                self.put(file, &bytes, &next)?;
                return Ok(next);
            }
            ops::remove_file(&self.next)?;
        }
        String::from_utf8(bytes).map_err(|_| TaskFileError::NotText {
            path: self.path.clone(),
        })
    }
}

/// The part of `new` that is written over `old`: one cell where both are as long, else all that
/// moved.
fn differing(old: &[u8], new: &[u8]) -> Range<usize> {
    /// Whole blocks are compared at once.
    const BLOCK: usize = 4096;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK));
    let begin = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let bytes = old[begin..].iter().zip(&new[begin..]);
    let start = begin + bytes.take_while(|(a, b)| a == b).count();
    if old.len() != new.len() {
        return start..new.len();
    }
    let blocks = old[start..]
        .rchunks_exact(BLOCK)
        .zip(new[start..].rchunks_exact(BLOCK));
    let end = new.len() - BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let bytes = old[start..end]
        .iter()
        .rev()
        .zip(new[start..end].iter().rev());
    start..end - bytes.take_while(|(a, b)| a == b).count()
}

/// Whether bytes are what is left of writing `next` over `before`, and not a change of somebody
/// else's.
fn is_torn(bytes: &[u8], before: &[u8], next: &[u8]) -> bool {
    if bytes == before || bytes == next {
        return false;
    }
    let same = bytes.iter().zip(next).take_while(|(a, b)| a == b).count();
    let rest = before.get(same..).unwrap_or_default();
    bytes[same..] == *rest || next.starts_with(bytes)
}

/// Replaces a person's file as a whole, if it still is what was read; its permissions stay.
pub fn replace_if_unchanged(path: &Path, old: &str, new: &str) -> Result<bool, TaskFileError> {
    let read = |path: &Path| safe_open::read_user_file(path).map_err(ops::at("read", path));
    let now = read(path)?;
    if now != old.as_bytes() {
        return Ok(false);
    }
    // A link stays a link: what it points to is replaced.
    let path = &crate::layout::canonical(path)?;
    let mode = std::fs::metadata(path).map(|meta| meta.permissions());
    remove_copies_beside(path);
    let staged = ops::beside(path, &format!(".{}{COPY}", std::process::id()));
    // Its lock says that somebody is at it; who removes what is left may have been faster.
    let make = || -> std::io::Result<File> {
        loop {
            let file = ops::make_new(&staged)?;
            file.lock()?;
            if file.metadata()?.nlink() > 0 {
                return Ok(file);
            }
        }
    };
    let write = || -> std::io::Result<File> {
        let file = make()?;
        ops::write_all(&file, new.as_bytes())?;
        if let Ok(mode) = mode {
            file.set_permissions(mode)?;
        }
        ops::sync_data(&file)?;
        Ok(file)
    };
    let written = write().map_err(ops::at("write", &staged));
    let is_as_read = || Ok::<bool, TaskFileError>(read(path)? == old.as_bytes());
    match written
        .map_err(TaskFileError::from)
        .and_then(|file| Ok((file, is_as_read()?)))
    {
        Ok((_held, true)) => {
            ops::rename(&staged, path)?;
            Ok(true)
        }
        other => {
            // Best effort: the first error is the one that counts.
            let _ = ops::remove_file(&staged);
            other.map(|_| false)
        }
    }
}

/// How the name of a copy ends that is about to replace a person's file.
const COPY: &str = ".tmp";

/// Removes what hosts that were killed left beside a person's file.
pub fn remove_left_copies(path: &Path) {
    if let Ok(path) = crate::layout::canonical(path) {
        remove_copies_beside(&path);
    }
}

/// One that cannot be removed is in nobody's way.
fn remove_copies_beside(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let start = format!("{}.", name.to_string_lossy());
    let is_copy = |found: &str| {
        let number = found.strip_prefix(&start);
        let number = number.and_then(|rest| rest.strip_suffix(COPY));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_copy(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let left = ops::open(Options::new().read(), &entry.path());
        if left.is_ok_and(|left| left.try_lock().is_ok()) {
            let _ = ops::remove_file(&entry.path());
        }
    }
}

/// A lock file that tells others of a run, held for as long as this lives.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock, writing `text` into it; `None` where somebody else has it.
    pub fn acquire(path: &Path, text: &str) -> Result<Option<Self>, IoError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(ops::at("create the folder", folder))?;
        }
        let path = &safe_open::link_free(path).map_err(ops::at("resolve", path))?;
        let file = ops::open(Options::new().read().write().create(), path)
            .map_err(ops::at("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(IoError::new("lock", path, error)),
        }
        let write = || {
            ops::set_len(&file, 0)?;
            ops::write_all_at(&file, text.as_bytes(), 0)
        };
        write().map_err(ops::at("write", path))?;
        Ok(Some(Self { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, TaskFile) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tasks.scg"), "one two three").unwrap();
        let file = TaskFile::new(&folder.path().join("tasks.scg"), &folder.path().join("k"));
        (folder, file)
    }

    #[test]
    fn an_edit_sees_the_file_as_it_is_and_writes_it_in_place() {
        let (_folder, file) = file();
        let inode = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            std::fs::metadata(path).unwrap().ino()
        };
        let before = inode(file.path());
        let answer = file
            .edit(|text| Ok::<_, ()>((Some(text.replace("two", "2")), 7)))
            .unwrap();
        assert_eq!(answer, Ok(7));
        assert_eq!(file.read().unwrap(), "one 2 three");
        assert_eq!(inode(file.path()), before);
        assert_eq!(
            std::fs::read_to_string(&file.before).unwrap(),
            "one two three"
        );
        assert!(!file.next.exists());
        assert_eq!(file.edit(|_| Err::<(_, ()), _>("no")).unwrap(), Err("no"));
    }

    #[test]
    fn a_write_that_was_cut_off_is_completed_and_a_change_of_others_is_kept() {
        let (_folder, file) = file();
        std::fs::create_dir_all(file.next.parent().unwrap()).unwrap();
        let next = "one TWO three four";
        for torn in ["", "one TWO t", "one TWo three", "one TWO three"] {
            std::fs::write(&file.before, "one two three").unwrap();
            std::fs::write(&file.next, next).unwrap();
            std::fs::write(file.path(), torn).unwrap();
            assert_eq!(file.read().unwrap(), next, "{torn:?}");
            assert!(!file.next.exists());
        }
        for theirs in ["one two three", "one 2 three", "one TWO three 4"] {
            std::fs::write(&file.next, next).unwrap();
            std::fs::write(file.path(), theirs).unwrap();
            assert_eq!(file.read().unwrap(), theirs);
            assert!(!file.next.exists());
        }
    }

    #[test]
    fn only_what_differs_is_written() {
        let old: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        for at in [0, 1, 4095, 4096, 9000, 19_999] {
            let mut new = old.clone();
            new[at] ^= 1;
            assert_eq!(differing(&old, &new), at..at + 1);
            new.push(7);
            assert_eq!(differing(&old, &new), at..20_001);
            assert_eq!(differing(&new, &old).start, at);
        }
        assert!(differing(&old, &old).is_empty());
    }

    #[test]
    fn a_lock_of_another_program_is_waited_for() {
        let (_folder, file) = file();
        let held = File::open(file.path()).unwrap();
        held.lock().unwrap();
        let free = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        let changed = file.edit(|_| Ok::<_, ()>((Some("new".to_owned()), ())));
        assert_eq!(changed.unwrap(), Ok(()));
        free.join().unwrap();
        assert_eq!(file.read().unwrap(), "new");
    }

    #[test]
    fn a_file_that_another_program_empties_before_it_writes_is_waited_for() {
        let (_folder, file) = file();
        std::fs::write(file.path(), "").unwrap();
        let path = file.path().to_owned();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            let held = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            held.lock().unwrap();
            ops::write_all(&held, b"one two three").unwrap();
        });
        let changed = file.edit(|text| Ok::<_, ()>((Some(text.replace("two", "2")), ())));
        assert_eq!(changed.unwrap(), Ok(()));
        other.join().unwrap();
        assert_eq!(file.read().unwrap(), "one 2 three");
    }

    #[test]
    fn a_persons_file_is_replaced_only_if_nobody_touched_it() {
        let (_folder, file) = file();
        assert!(replace_if_unchanged(file.path(), "one two three", "new").unwrap());
        assert!(!replace_if_unchanged(file.path(), "one two three", "newer").unwrap());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "new");
    }

    #[test]
    fn what_a_killed_host_left_beside_a_persons_file_goes_and_nothing_else() {
        let (folder, file) = file();
        let beside = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "half").unwrap();
            path
        };
        let left = beside("tasks.scg.4711.tmp");
        let living = beside("tasks.scg.4712.tmp");
        let held = File::open(&living).unwrap();
        held.lock().unwrap();
        let others = ["tasks.scg.tmp", "tasks.scg.a1.tmp", "other.4711.tmp"].map(beside);
        remove_left_copies(file.path());
        assert!(!left.exists() && living.exists());
        assert!(others.iter().all(|path| path.exists()));
        // The next write takes the other one away, and leaves none of its own.
        drop(held);
        assert!(replace_if_unchanged(file.path(), "one two three", "new").unwrap());
        assert!(!replace_if_unchanged(file.path(), "one two three", "newer").unwrap());
        let names = std::fs::read_dir(folder.path()).unwrap().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| name.ends_with(".tmp")).count(), 3);
        assert!(!living.exists());
    }

    #[test]
    fn a_run_lock_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm/auth.lock");
        let held = RunLock::acquire(&path, "pid=1\n").unwrap();
        assert!(held.is_some());
        assert!(RunLock::acquire(&path, "pid=2\n").unwrap().is_none());
        drop(held);
        assert!(RunLock::acquire(&path, "pid=2\n").unwrap().is_some());
    }
}
