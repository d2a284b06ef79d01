//! Being told by the kernel which folders changed, so that the others need no look.
//!
//! Used where it can be relied on: a local file system, not too many folders. It does not tell of
//! writes through a memory mapping; but the file is opened for that and closed again, which it
//! does tell, and every process of an agent is gone before its work is measured. For what others
//! do in that way, a full walk is made every few seconds all the same.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use descartes_store::watching::{AddWatchFlags, InotifyEvent, WatchDescriptor, Watching};
use nix::errno::Errno;
use nix::sys::statfs::{self, FsType};

/// The limit of a user is 8,192 on small machines, and ours are not the only watches.
const MAX_FOLDERS: usize = 4_096;

/// File systems that nobody but this kernel can change.
const LOCAL: [FsType; 6] = [
    statfs::EXT4_SUPER_MAGIC,
    statfs::XFS_SUPER_MAGIC,
    statfs::BTRFS_SUPER_MAGIC,
    statfs::F2FS_SUPER_MAGIC,
    statfs::TMPFS_MAGIC,
    statfs::OVERLAYFS_SUPER_MAGIC,
];

/// Events after which anything may have happened. A folder that moved takes its watches along,
/// with paths that are no longer true.
const LOST: AddWatchFlags = AddWatchFlags::IN_Q_OVERFLOW
    .union(AddWatchFlags::IN_UNMOUNT)
    .union(AddWatchFlags::IN_MOVE_SELF);

/// Watches on the folders of a work tree.
#[derive(Debug)]
pub(super) struct FolderWatch {
    watching: Watching,
    device: u64,
    folders: HashMap<WatchDescriptor, PathBuf>,
}

/// What was heard since the last time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Something happened in these folders, and nowhere else.
    Folders(BTreeSet<PathBuf>),
    /// Anything may have happened.
    Lost,
}

impl FolderWatch {
    /// Begins to listen, where that can be relied on.
    pub(super) fn new(root: &Path) -> Option<FolderWatch> {
        let kind = statfs::statfs(root).ok()?.filesystem_type();
        if !LOCAL.contains(&kind) {
            return None;
        }
        let device = fs::symlink_metadata(root).ok()?.dev();
        Some(FolderWatch {
            watching: Watching::try_new().ok()?,
            device,
            folders: HashMap::new(),
        })
    }

    /// Listens to a folder. Must come before it is read, so that nothing falls in between.
    pub(super) fn arm(&mut self, root: &Path, folder: &Path) -> Result<(), Errno> {
        let flags = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR
            | AddWatchFlags::IN_DONT_FOLLOW;
        let path = root.join(folder);
        // Where it is gone again, or a link by now, its parent has an event about that.
        let Some(watch) = self.watching.try_add(&path, flags)? else {
            return Ok(());
        };
        self.folders.insert(watch, folder.to_path_buf());
        if self.folders.len() > MAX_FOLDERS {
            return Err(Errno::ENOSPC);
        }
        // Something else may be mounted there, that others can change.
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.dev() != self.device => Err(Errno::EXDEV),
            _ => Ok(()),
        }
    }

    /// Forgets which folders it listens to: all of them are about to be armed again.
    pub(super) fn forget(&mut self) {
        self.folders.clear();
    }

    /// Takes what has happened so far.
    pub(super) fn hear(&mut self) -> Heard {
        let Self {
            watching, folders, ..
        } = self;
        let (mut heard, mut lost) = (BTreeSet::new(), false);
        let read = watching.read(|event| {
            lost |= event.mask.intersects(LOST);
            heard.extend(folder_of(&event, folders, watching));
        });
        match lost || read.is_err() {
            true => Heard::Lost,
            false => Heard::Folders(heard),
        }
    }
}

fn folder_of(
    event: &InotifyEvent,
    folders: &mut HashMap<WatchDescriptor, PathBuf>,
    watching: &Watching,
) -> Option<PathBuf> {
    if event.mask.contains(AddWatchFlags::IN_IGNORED) {
        return folders.remove(&event.wd);
    }
    let folder = folders.get(&event.wd).cloned();
    if folder.is_none() {
        // A folder that was moved out of the work tree.
        watching.remove(event.wd);
    }
    folder
}
