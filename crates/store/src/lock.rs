//! "Is it running?" is "is it locked?".
//!
//! A loop holds three locks (`flock`), taken in this order and given back together:
//!
//! 1. `<canonical state file>.lock`: everybody who uses the same state file meets here, even
//!    with another state root;
//! 2. `locks/<hash of that path>.lock` in the state root: agents delete what lies in their
//!    tree, and a lock whose file is gone would let a second loop in;
//! 3. `loops/<id>/lock`: the journal has one writer, also when its state file was copied.
//!
//! Nobody waits for a lock while holding another for longer than the short retry, and all take
//! them in the same order, so nobody waits for ever. A lock file is deleted only by who holds
//! it, and who takes one looks whether it is still the one of that name. The locks belong to the
//! open files: a guard that inherits them holds them when its host is gone.

use crate::host;
use crate::layout::{BadLoopId, LoopDir, StateRoot, ensure_folder_of, state_file_path};
use crate::ops::{self, IoError, Sync};
use crate::safe_open::{self, Options};
use descartes_kernel::event::HostFacts;
use descartes_text::path_text::{decode, encode};
use descartes_text::units::show_duration;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracing::debug;

/// Those who only look take a shared lock for an instant; that must not refuse a start.
const RETRY: Duration = Duration::from_millis(100);
/// One of those who look may lose the processor in that instant: it is waited for so much longer.
const LOOKER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);
/// Where the kernel tells so often of no lock on a file that is locked, it does not tell here.
const UNTOLD: u32 = 5;

/// Who holds a lock, as written in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub loop_id: String,
    pub since: Timestamp,
    #[serde(flatten)]
    pub host: HostFacts,
}

/// A lock that somebody else holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is held by {}", path.display(), describe(holder.as_ref()))]
pub struct Held {
    /// What is held: the state file, or the lock of a loop that was asked for by its id.
    pub path: PathBuf,
    /// Who holds it; unknown for an instant while it is being taken.
    pub holder: Option<Holder>,
}

fn describe(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder {
            loop_id,
            since,
            host,
        }) => {
            let age = Timestamp::now().duration_since(*since);
            // A clock that was set back makes nothing older than it is.
            let age = Duration::from_secs(age.as_secs().try_into().unwrap_or(0));
            let age = show_duration(age);
            format!("loop {loop_id} (pid {}, for {age})", host.pid)
        }
        None => "a loop that is just starting".to_owned(),
    }
}

/// Why a loop cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A live loop has it.
    #[error(transparent)]
    Held(Box<Held>),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The loop's id is not one.
    #[error(transparent)]
    BadId(#[from] BadLoopId),
}

/// A loop that is held by this process.
#[derive(Debug)]
pub struct StateLock {
    state_file: PathBuf,
    holder: Holder,
    /// Where the holder takes commands; stands on the second line of the lock beside the state file.
    socket: Option<PathBuf>,
    /// Where the other two lie.
    in_root: [PathBuf; 2],
    beside: File,
    by_path: File,
    by_loop: File,
}

impl StateLock {
    /// Takes a loop, or tells who has it.
    pub fn acquire(
        root: &StateRoot,
        state_file: &Path,
        holder: &Holder,
    ) -> Result<Self, LockError> {
        let state_file = state_file_path(state_file)?;
        let dir = root.loop_dir(&holder.loop_id)?;
        ensure_folder_of(&state_file)?;
        let named = |error| name_state_file(error, &state_file);
        let beside = take(&lock_beside(&state_file), holder).map_err(named)?;
        let in_root = [root.lock_for(&state_file), dir.lock()];
        let by_path = take_in_root(&in_root[0], holder).map_err(named)?;
        let by_loop = take_in_root(&in_root[1], holder).map_err(named)?;
        Ok(Self {
            state_file,
            holder: holder.clone(),
            socket: None,
            in_root,
            beside,
            by_path,
            by_loop,
        })
    }

    /// Where the state file lies.
    pub fn state_file(&self) -> &Path {
        &self.state_file
    }

    /// Who holds it.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// All locks, to be handed to a guard. They are closed on exec unless handed on.
    pub fn fds(&self) -> [BorrowedFd<'_>; 3] {
        [
            self.beside.as_fd(),
            self.by_path.as_fd(),
            self.by_loop.as_fd(),
        ]
    }

    /// Makes the lock beside the state file anew where an agent deleted it.
    pub fn keep(&mut self) -> Result<(), LockError> {
        let path = lock_beside(&self.state_file);
        if !is_at(&self.beside, &path)? {
            ensure_folder_of(&path)?;
            self.beside = take(&path, &self.holder)?;
            self.tell_socket()?;
        }
        Ok(())
    }

    /// Makes the locks in the state root anew where somebody deleted it.
    pub fn keep_in_root(&mut self) -> Result<(), LockError> {
        let held = [&mut self.by_path, &mut self.by_loop];
        for (file, path) in held.into_iter().zip(&self.in_root) {
            if !is_at(file, path)? {
                *file = take_in_root(path, &self.holder)?;
            }
        }
        Ok(())
    }

    /// Writes down where the holder takes commands: should the state root be deleted, it is found by
    /// the state file alone ([`socket_of`]).
    pub fn set_socket(&mut self, socket: &Path) -> Result<(), IoError> {
        self.socket = Some(socket.to_owned());
        self.tell_socket()
    }

    fn tell_socket(&self) -> Result<(), IoError> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let path = lock_beside(&self.state_file);
        let write = || {
            let mut text = serde_json::to_vec(&self.holder)?;
            text.push(b'\n');
            text.extend(serde_json::to_vec(&encode(socket))?);
            text.push(b'\n');
            ops::write_all_at(&self.beside, &text, 0)?;
            ops::set_len(&self.beside, text.len() as u64)
        };
        write().map_err(ops::at("write", &path))
    }
}

impl AsFd for StateLock {
    /// The lock that no agent can delete: as long as a guard holds it, no other loop begins
    /// on the same state file.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.by_path.as_fd()
    }
}

/// The name of a loop that is about to begin, until it can be seen in the list of loops: two that
/// begin in the same instant do not both find it free.
#[derive(Debug)]
pub struct NameLock {
    path: PathBuf,
    _file: File,
}

impl NameLock {
    /// Takes a name, waiting for others that take it; `None` if one of them takes longer.
    pub fn acquire(
        root: &StateRoot,
        name: &str,
        patience: Duration,
    ) -> Result<Option<Self>, IoError> {
        let path = root.lock_for_name(name);
        ops::make_dir(&root.locks(), Sync::Durable)?;
        let file = lock_file(&path, patience)?;
        Ok(file.map(|_file| Self { path, _file }))
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // One that stays is taken again, or found by `clean`.
        drop(ops::remove_file(&self.path));
    }
}

/// Who holds a state file; `None` if nobody does. Takes nothing and makes nothing.
pub fn holder_of(root: &StateRoot, state_file: &Path) -> Result<Option<Held>, IoError> {
    let state_file = state_file_path(state_file)?;
    let held = match probe(&root.lock_for(&state_file))? {
        Some(held) => Some(held),
        None => probe(&lock_beside(&state_file))?,
    };
    let path = state_file;
    Ok(held.map(|held| Held { path, ..held }))
}

/// The lock of a state file that no agent can delete: a guard of its loop holds it open.
pub fn state_lock(root: &StateRoot, state_file: &Path) -> Result<PathBuf, IoError> {
    Ok(root.lock_for(&state_file_path(state_file)?))
}

/// Whether a loop of this root is, or may be, held by a process of another pid namespace. Which processes
/// are below it cannot be told from here. Locks that cannot be read may be such: whoever asks has a
/// reason to hide them.
pub fn is_held_from_elsewhere(root: &StateRoot) -> bool {
    let names = match safe_open::names_in(&root.locks()) {
        Ok(names) => names,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    names
        .iter()
        .any(|name| match probe(&root.locks().join(name)) {
            Ok(None) => false,
            Ok(Some(held)) => held
                .holder
                .is_none_or(|holder| host::life_of(&holder.host) == host::Life::Elsewhere),
            Err(_) => true,
        })
}

/// Where the loop that has a state file takes commands, as far as its lock tells.
pub fn socket_of(state_file: &Path) -> Option<PathBuf> {
    let lock = lock_beside(&state_file_path(state_file).ok()?);
    probe(&lock).ok()??;
    let text = safe_open::read(&lock).ok()?;
    let second = text.split(|byte| *byte == b'\n').nth(1)?;
    let socket: String = serde_json::from_slice(second).ok()?;
    Some(decode(&socket))
}

/// People know the state file, not the files that we lock for it.
fn name_state_file(error: LockError, state_file: &Path) -> LockError {
    match error {
        LockError::Held(held) => LockError::Held(Box::new(Held {
            path: state_file.to_owned(),
            ..*held
        })),
        other => other,
    }
}

/// Removes a lock file that nobody holds, while holding it: whoever opened it just before finds
/// out, and makes it anew.
pub(crate) fn remove_unheld(path: &Path) -> Result<(), IoError> {
    let file = match safe_open::open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(IoError::new("open", path, error)),
    };
    match file.try_lock() {
        Ok(()) if is_at(&file, path)? => ops::remove_file(path),
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(IoError::new("lock", path, error)),
    }
}

/// Whether anybody holds a lock file.
pub(crate) fn is_held(path: &Path) -> Result<bool, IoError> {
    Ok(probe(path)?.is_some())
}

/// Who holds a loop; `None` if nobody does.
pub fn holder_of_loop(dir: &LoopDir) -> Result<Option<Held>, IoError> {
    probe(&dir.lock())
}

/// Whether a file is a lock of ours: it tells who took it.
pub(crate) fn is_ours(path: &Path) -> bool {
    read_holder(path).is_some()
}

pub(crate) fn lock_beside(canonical_state_file: &Path) -> PathBuf {
    ops::beside(canonical_state_file, ".lock")
}

fn take_in_root(path: &Path, holder: &Holder) -> Result<File, LockError> {
    if let Some(folder) = path.parent() {
        ops::make_dir(folder, Sync::Durable)?;
    }
    take(path, holder)
}

fn take(path: &Path, holder: &Holder) -> Result<File, LockError> {
    match lock_file(path, RETRY)? {
        Some(file) => {
            introduce(&file, holder).map_err(ops::at("write", path))?;
            debug!(path = %path.display(), "lock taken");
            Ok(file)
        }
        None => {
            let held = held(path);
            let by = held.holder.as_ref().map(|holder| holder.host.pid);
            debug!(path = %path.display(), by, "lock is held");
            Err(LockError::Held(Box::new(held)))
        }
    }
}

/// The file of this name, locked; `None` if somebody holds it for all of this time.
fn lock_file(path: &Path, patience: Duration) -> Result<Option<File>, IoError> {
    let deadline = Instant::now() + patience;
    let mut untold = 0;
    loop {
        let file = ops::open(Options::new().read().write().create(), path)
            .map_err(ops::at("open", path))?;
        match file.try_lock() {
            // The name may have come to mean another file since it was opened.
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let now = Instant::now();
                if now >= deadline {
                    let kind = kind_of_lock(path);
                    untold += u32::from(kind.is_none());
                    let over = now >= deadline + LOOKER || untold >= UNTOLD;
                    if over || kind == Some(LockKind::Held) {
                        return Ok(None);
                    }
                }
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::Error(error)) => return Err(IoError::new("lock", path, error)),
        }
    }
}

/// Writes the holder over what is there, so that a reader never finds the file empty.
fn introduce(file: &File, holder: &Holder) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(holder)?;
    text.push(b'\n');
    ops::write_all_at(file, &text, 0)?;
    ops::set_len(file, text.len() as u64)
}

fn probe(path: &Path) -> Result<Option<Held>, IoError> {
    let file = match safe_open::open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(IoError::new("open", path, error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None), // given back as the file is closed
        Err(TryLockError::WouldBlock) => Ok(Some(held(path))),
        Err(TryLockError::Error(error)) => Err(IoError::new("query the lock of", path, error)),
    }
}

fn held(path: &Path) -> Held {
    let mut holder = read_holder(path);
    if let Some(holder) = &mut holder
        && host::life_of(&holder.host) != host::Life::Elsewhere
        && let Some(pid) = locked_by(path)
        && pid != holder.host.pid
    {
        // The file lies in the reach of agents; what the kernel says of its lock does not.
        holder.host.pid = pid;
        holder.host.start_time = host::start_time(pid).unwrap_or(0);
    }
    Held {
        path: path.to_owned(),
        holder,
    }
}

/// The process that took a lock, as the kernel tells it; `None` where it does not, or where it is gone.
fn locked_by(path: &Path) -> Option<u32> {
    let inode = safe_open::metadata(path).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locker_in(&locks, inode)
}

/// Whose a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockKind {
    Held,
    /// By those alone who only look.
    LookedAt,
}

/// `None` where the kernel tells of no lock: it does not tell here, or the lock was just given back.
fn kind_of_lock(path: &Path) -> Option<LockKind> {
    let inode = safe_open::metadata(path).ok()?.ino();
    kind_in(&std::fs::read_to_string("/proc/locks").ok()?, inode)
}

fn kind_in(locks: &str, inode: u64) -> Option<LockKind> {
    let mut found = locks_of(locks, inode).peekable();
    found.peek()?;
    Some(match found.all(|(kind, _)| kind == "READ") {
        true => LockKind::LookedAt,
        false => LockKind::Held,
    })
}

fn locker_in(locks: &str, inode: u64) -> Option<u32> {
    let mut found = locks_of(locks, inode).filter(|(kind, _)| *kind == "WRITE");
    match (found.next(), found.next()) {
        (Some((_, pid)), None) if pid > 0 => Some(pid),
        _ => None,
    }
}

/// The kind and the process of each lock of a file. Lines are like
/// `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF`. Devices are left out: some file systems tell others
/// to those who ask for a file. A number that fits two files tells nothing.
fn locks_of(locks: &str, inode: u64) -> impl Iterator<Item = (&str, u32)> {
    locks.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, kind, pid, place, ..] = words.as_slice() else {
            return None;
        };
        let of = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (of == inode).then(|| Some((*kind, pid.parse().ok()?)))?
    })
}

fn read_holder(path: &Path) -> Option<Holder> {
    let text = safe_open::read(path).ok()?;
    // A longer text may stand behind ours for an instant.
    let first = text.split(|byte| *byte == b'\n').next()?;
    serde_json::from_slice(first).ok()
}

fn is_at(file: &File, path: &Path) -> Result<bool, IoError> {
    let ours = file.metadata().map_err(ops::at("inspect", path))?;
    match safe_open::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(IoError::new("inspect", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{LockKind, kind_in, locker_in};

    #[test]
    fn the_kernel_tells_who_took_a_lock() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:131 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF\n\
            2: -> FLOCK  ADVISORY  READ 9 08:01:131 0 EOF\n\
            3: FLOCK  ADVISORY  READ 12 08:01:140 0 EOF\n\
            4: FLOCK  ADVISORY  WRITE 13 08:01:150 0 EOF\n\
            5: FLOCK  ADVISORY  WRITE 14 00:2a:150 0 EOF\n\
            6: FLOCK  ADVISORY  WRITE 0 08:01:160 0 EOF\n";
        assert_eq!(locker_in(locks, 131), Some(4711));
        for unknown in [140, 150, 160, 170] {
            assert_eq!(locker_in(locks, unknown), None, "{unknown}");
        }
        let kinds = [131, 140, 150, 170].map(|inode| kind_in(locks, inode));
        let (held, looked_at) = (Some(LockKind::Held), Some(LockKind::LookedAt));
        assert_eq!(kinds, [held, looked_at, held, None]);
    }
}
