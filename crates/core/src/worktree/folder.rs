//! What is known of the files of a work tree: folders, and in each the names and their content.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::error::Stop;
use super::kind::{FileKind, Mode};
use super::oid::Oid;
use super::stamp::Stamp;

/// One folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    pub(super) entries: BTreeMap<OsString, Slot>,
    pub(super) seal: CachedHash,
    pub(super) visit: Visit,
}

/// Whether the folder on disk was looked at, and what it was then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Visit {
    #[default]
    Never,
    Ordinary,
    /// It holds a `.git` of its own.
    WithGit,
}

/// The hash of a folder, as far as it is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum CachedHash {
    #[default]
    Open,
    /// Nothing in it counts.
    Empty,
    Tree(Oid),
}

/// An entry, and the round in which it was last seen on disk.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) round: u32,
    pub(super) entry: Entry,
}

/// What stands under a name.
#[derive(Debug)]
pub(super) enum Entry {
    /// A file or symbolic link.
    Leaf(Leaf),
    Folder(Folder),
    /// The top of another repository, with the commit that it is at.
    Repo(Option<Oid>),
    /// Ignored: not looked at again while it stays what it is.
    Ignored(FileKind),
    /// Looked at, but its content does not count: sockets, unreadable files, ignored rule files.
    Silent(Stamp),
    /// Not checked out: outside of the part of a sparse checkout.
    Pinned(Mode, Oid),
}

/// A file or link whose content counts.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) trust: Trust,
    pub(super) mode: Mode,
    /// `None` until it was hashed for the first time.
    pub(super) oid: Option<Oid>,
}

/// How it is known that the hash still stands for the content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trust {
    /// It is not: look again.
    Not,
    /// While the metadata stays the same.
    Stamp(Stamp),
    /// git hashed it a moment ago: if it was at rest then.
    Adopted,
}

impl Entry {
    /// What it contributes to the tree, folders aside.
    pub(super) fn content(&self) -> Option<(Mode, Oid)> {
        match self {
            Entry::Leaf(leaf) => leaf.oid.map(|oid| (leaf.mode, oid)),
            Entry::Repo(commit) => commit.map(|oid| (Mode::Repo, oid)),
            Entry::Pinned(mode, oid) => Some((*mode, *oid)),
            Entry::Folder(_) | Entry::Ignored(_) | Entry::Silent(_) => None,
        }
    }
}

impl Folder {
    /// The folder at `path`, from this one.
    pub(super) fn find(&mut self, path: &Path) -> Option<&mut Folder> {
        names(path).try_fold(self, |folder, name| {
            match &mut folder.entries.get_mut(name)?.entry {
                Entry::Folder(next) => Some(next),
                _ => None,
            }
        })
    }

    /// The entry at `path`; `None` also where something other than a folder is on the way.
    pub(super) fn entry(&mut self, path: &Path) -> Option<&mut Entry> {
        let folder = self.find(path.parent()?)?;
        folder
            .entries
            .get_mut(path.file_name()?)
            .map(|slot| &mut slot.entry)
    }

    /// Whether `path` is ignored, by itself or with a folder that it lies in.
    pub(super) fn is_ignored(&mut self, path: &Path) -> bool {
        path.ancestors()
            .any(|path| matches!(self.entry(path), Some(Entry::Ignored(_))))
    }

    /// Puts an entry there, making the folders on the way.
    pub(super) fn put(&mut self, path: &Path, entry: Entry, round: u32) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return;
        };
        let mut folder = self;
        for name in names(parent) {
            let slot = folder
                .entries
                .entry(name.to_owned())
                .or_insert_with(|| Slot {
                    round,
                    entry: Entry::Folder(Folder::default()),
                });
            match &mut slot.entry {
                Entry::Folder(next) => folder = next,
                _ => return,
            }
        }
        folder
            .entries
            .insert(name.to_owned(), Slot { round, entry });
    }

    /// Says that the content of the folder at `path` changed: all above it change with it.
    pub(super) fn unseal(&mut self, path: &Path) {
        self.seal = CachedHash::Open;
        let mut folder = self;
        for name in names(path) {
            let Some(Slot {
                entry: Entry::Folder(next),
                ..
            }) = folder.entries.get_mut(name)
            else {
                return;
            };
            next.seal = CachedHash::Open;
            folder = next;
        }
    }

    /// Makes the tree objects of all folders that changed; the hash of this one, if it holds
    /// anything.
    pub(super) fn seal(
        &mut self,
        make: &mut dyn FnMut(&[u8]) -> Result<Oid, Stop>,
    ) -> Result<Option<Oid>, Stop> {
        match self.seal {
            CachedHash::Empty => return Ok(None),
            CachedHash::Tree(oid) => return Ok(Some(oid)),
            CachedHash::Open => {}
        }
        let mut rows = Vec::with_capacity(self.entries.len());
        for (name, slot) in &mut self.entries {
            let content = match &mut slot.entry {
                Entry::Folder(folder) => folder.seal(make)?.map(|oid| (Mode::Tree, oid)),
                other => other.content(),
            };
            if let Some((mode, oid)) = content {
                rows.push((name.as_bytes(), mode, oid));
            }
        }
        if rows.is_empty() {
            self.seal = CachedHash::Empty;
            return Ok(None);
        }
        let oid = make(&tree_content(rows))?;
        self.seal = CachedHash::Tree(oid);
        Ok(Some(oid))
    }

    /// Calls `see` for every entry that counts.
    pub(super) fn each(&self, below: &Path, see: &mut dyn FnMut(PathBuf, &Entry)) {
        for (name, slot) in &self.entries {
            let path = below.join(name);
            match &slot.entry {
                Entry::Folder(folder) => folder.each(&path, see),
                other => see(path, other),
            }
        }
    }
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

/// The bytes of a tree object. git sorts a folder as if its name ended with a slash.
fn tree_content(mut rows: Vec<(&[u8], Mode, Oid)>) -> Vec<u8> {
    let key = |name: &[u8], mode: Mode| {
        let end = if mode == Mode::Tree { &b"/"[..] } else { b"" };
        [name, end].concat()
    };
    rows.sort_by_cached_key(|(name, mode, _)| key(name, *mode));
    let mut bytes = Vec::new();
    for (name, mode, oid) in rows {
        bytes.extend_from_slice(mode.octal().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(oid.as_bytes());
    }
    bytes
}
