//! The room that snapshots take. When it is used up the oldest go: what only they hold is removed.
//!
//! Counted and removed beside the driver, while an agent works. A snapshot must not rely on an
//! object that is about to go, so both hold [`Room`]'s lock.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::catalog::{self, Taken};
use super::deadline::Deadline;
use super::error::WorktreeError;
use super::repo::{GIT_TIMEOUT, Repo};
use super::safety;
use super::text;

/// What is shared by those who take snapshots and those who remove them.
#[derive(Debug, Default)]
pub(super) struct Room {
    lock: Mutex<()>,
    /// Snapshots that were begun.
    begun: AtomicU64,
    /// Bytes at most, going by the last count and by what was written since; 0: not counted yet.
    used: AtomicU64,
}

impl Room {
    /// Held while a snapshot is taken.
    pub(super) fn enter(&self) -> MutexGuard<'_, ()> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has to be counted, or there is too much.
    pub(super) fn is_due(&self, limit: u64) -> bool {
        let used = self.used.load(Ordering::SeqCst);
        used == 0 || used > limit
    }

    /// A snapshot may have written so much; `None`: nobody knows.
    pub(super) fn wrote(&self, bytes: Option<u64>) {
        match bytes {
            Some(bytes) if self.used.load(Ordering::SeqCst) > 0 => {
                self.used.fetch_add(bytes, Ordering::SeqCst);
            }
            Some(_) => {}
            None => self.used.store(0, Ordering::SeqCst),
        }
    }
}

/// Snapshots that had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) snapshots: usize,
    pub(crate) bytes: u64,
}

/// Makes room, in whichever thread.
pub(crate) struct Budget {
    pub(super) repo: Repo,
    pub(super) room: std::sync::Arc<Room>,
    pub(super) limit: u64,
}

impl Budget {
    /// Counts what is used, where it may be too much, and drops the oldest snapshots. What cannot
    /// be done now is tried again after the next iteration.
    pub(crate) fn keep(&self) -> Option<Dropped> {
        if !self.room.is_due(self.limit) {
            return None;
        }
        let begun = self.room.begun.load(Ordering::SeqCst);
        let stored = Stored::look(&self.repo.objects);
        self.room
            .used
            .store(stored.bytes().max(1), Ordering::SeqCst);
        if stored.bytes() <= self.limit {
            return None;
        }
        let trees = catalog::trees(&self.repo.objects);
        let (count, kept) = self.choose(&trees, &stored).ok()?;
        let _held = self
            .room
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.room.begun.load(Ordering::SeqCst) != begun {
            // One was taken meanwhile, of which we know nothing.
            self.room.used.store(0, Ordering::SeqCst);
            return None;
        }
        if count > 0 {
            catalog::drop_first(&self.repo.objects, &trees, count).ok()?;
        }
        let bytes = stored.remove_all_but(&kept);
        let left = stored.bytes().saturating_sub(bytes);
        self.room.used.store(left.max(1), Ordering::SeqCst);
        (bytes > 0 && count > 0).then_some(Dropped {
            snapshots: count,
            bytes,
        })
    }

    /// How many of the oldest go, and the objects that stay then. The newest always stays, and so
    /// do safety copies. A quarter is left free, so that this is not done for every snapshot.
    fn choose(
        &self,
        trees: &[Taken],
        stored: &Stored,
    ) -> Result<(usize, HashSet<String>), WorktreeError> {
        let goal = self.limit / 4 * 3;
        let (mut low, mut high) = (0, trees.len().saturating_sub(1));
        let mut best = (high, self.reachable(trees.get(high..).unwrap_or_default())?);
        while low < high {
            let middle = low + (high - low) / 2;
            let kept = self.reachable(trees.get(middle..).unwrap_or_default())?;
            if stored.bytes_of(&kept) <= goal {
                best = (middle, kept);
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(best)
    }

    /// Every object that these trees and the safety copies hold.
    fn reachable(&self, trees: &[Taken]) -> Result<HashSet<String>, WorktreeError> {
        let objects = &self.repo.objects;
        let copies = safety::names(objects).into_iter();
        let copies = copies.filter_map(|name| {
            let copy = safety::load(objects, &name).ok()?;
            Some(copy.tree.git_tree()?.to_owned())
        });
        let mut list = String::new();
        for tree in trees.iter().map(|(tree, _)| tree.clone()).chain(copies) {
            list.push_str(&tree);
            list.push('\n');
        }
        let asked = self
            .repo
            .snapshot_call()
            .args(["rev-list", "--objects", "--no-object-names"])
            .args(["--missing=allow-any", "--stdin"])
            .stdin(list.into_bytes())
            .output(Deadline::after(GIT_TIMEOUT))?;
        let names = text::lines(&asked).map(|line| String::from_utf8_lossy(line).into_owned());
        Ok(names.collect())
    }
}

/// Objects in the folder that are files of their own.
struct Stored {
    files: HashMap<String, (PathBuf, u64)>,
}

impl Stored {
    fn look(objects: &Path) -> Stored {
        let mut files = HashMap::new();
        for folder in entries(objects) {
            let name = name_of(&folder);
            if name.len() != 2 || !is_hex(&name) {
                continue;
            }
            for file in entries(&folder) {
                let rest = name_of(&file);
                if is_hex(&rest)
                    && let Ok(meta) = fs::symlink_metadata(&file)
                {
                    files.insert(format!("{name}{rest}"), (file, meta.blocks() * 512));
                }
            }
        }
        Stored { files }
    }

    fn bytes(&self) -> u64 {
        self.files.values().map(|(_, bytes)| bytes).sum()
    }

    fn bytes_of(&self, names: &HashSet<String>) -> u64 {
        let known = names.iter().filter_map(|name| self.files.get(name));
        known.map(|(_, bytes)| bytes).sum()
    }

    /// Gives how many bytes that freed.
    fn remove_all_but(&self, kept: &HashSet<String>) -> u64 {
        let gone = self.files.iter().filter(|(name, _)| !kept.contains(*name));
        let freed = gone.filter(|(_, (path, _))| fs::remove_file(path).is_ok());
        freed.map(|(_, (_, bytes))| bytes).sum()
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_hex(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
