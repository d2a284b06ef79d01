//! Measuring a folder without git: hashes of names and content, the content itself is not kept.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::cache;
use super::deadline::Deadline;
use super::error::Stop;
use super::file::{failed, open};
use super::findings::Stale;
use super::findings::{Hashed, Store};
use super::folder::{Entry, Folder, Trust};
use super::kind::Mode;
use super::oid::{HashFormat, Hasher, Oid, object_id};
use super::rules::IgnoreRules;
use super::scan_root::ScanRoot;
use super::stamp::{Now, Stamp};
use super::tree_index::TreeIndex;

/// Files over this are told apart by their metadata.
const BIG: u64 = 64 << 20;
/// After so much reading it is worth it to write down what was found.
const WORTH_KEEPING: u64 = 8 << 20;

/// A folder measured by content.
#[derive(Debug)]
pub(super) struct PlainTree {
    pub(super) index: TreeIndex,
    rules: IgnoreRules,
    /// What was known before the rules changed or the program ended, to save reading it again.
    memory: Memory,
    /// Where that is kept on disk.
    cache: Option<PathBuf>,
    /// Bytes hashed since it was last written there.
    read: u64,
}

/// Hashes from before, believed while the metadata is the same.
#[derive(Debug)]
enum Memory {
    /// Still on disk, if anywhere.
    Unread,
    Of(Folder),
    Used,
}

impl PlainTree {
    pub(super) fn new(scan_root: ScanRoot, cache: Option<PathBuf>) -> PlainTree {
        let rules = IgnoreRules::new(scan_root.root.clone());
        PlainTree {
            index: TreeIndex::new(scan_root),
            rules,
            memory: Memory::Unread,
            cache,
            read: 0,
        }
    }

    pub(super) fn measure(&mut self, deadline: Deadline) -> Result<Oid, Stop> {
        if let Memory::Unread = self.memory {
            let root = &self.index.scan_root.root;
            let found = self
                .cache
                .as_deref()
                .and_then(|path| cache::load(path, root));
            self.memory = found.map_or(Memory::Used, Memory::Of);
        }
        let begun = self.index.is_begun();
        let mut hash = self.pass(deadline.clone());
        if let Err(Stop::Rescan) = hash {
            self.rules.clear();
            self.memory = Memory::Of(self.index.replace(Folder::default()));
            hash = self.pass(deadline);
        }
        let hash = hash?;
        if let Memory::Of(old) = std::mem::replace(&mut self.memory, Memory::Used)
            && begun
        {
            self.index.note_replaced(&old);
        }
        if self.read > WORTH_KEEPING {
            self.keep();
        }
        Ok(hash)
    }

    fn pass(&mut self, deadline: Deadline) -> Result<Oid, Stop> {
        let now = Now::read();
        let found = self.index.look(&mut self.rules, now, deadline.clone())?;
        let memory = match &mut self.memory {
            Memory::Of(folder) => Some(folder),
            Memory::Unread | Memory::Used => None,
        };
        let mut store = ContentHasher {
            memory,
            read: &mut self.read,
        };
        self.index.settle(&found.stale, &mut store, now, deadline)
    }

    /// Writes down what is known. It only saves time: a failure is no matter.
    fn keep(&mut self) {
        if let Some(path) = &self.cache {
            let _ = cache::save(path, &self.index.scan_root.root, &self.index.top);
        }
        self.read = 0;
    }
}

impl Drop for PlainTree {
    fn drop(&mut self) {
        if self.read > 0 {
            self.keep();
        }
    }
}

/// Hashes content and keeps none of it.
struct ContentHasher<'a> {
    memory: Option<&'a mut Folder>,
    read: &'a mut u64,
}

impl Store for ContentHasher<'_> {
    fn leaves(
        &mut self,
        root: &Path,
        stale: &[Stale],
        deadline: Deadline,
        done: &mut Vec<Hashed>,
    ) -> Result<(), Stop> {
        for stale in stale {
            deadline.check()?;
            done.push(match self.remembered(stale) {
                Some(oid) => Hashed::Content(oid),
                None => self.hash(&root.join(&stale.path), &stale.stamp, deadline.clone())?,
            });
        }
        Ok(())
    }

    fn tree(&mut self, content: &[u8]) -> Result<Oid, Stop> {
        Ok(object_id(HashFormat::Sha256, "tree", content))
    }
}

impl ContentHasher<'_> {
    fn remembered(&mut self, stale: &Stale) -> Option<Oid> {
        match self.memory.as_mut()?.entry(&stale.path)? {
            Entry::Leaf(leaf) => match leaf.trust {
                Trust::Stamp(stamp) if stamp == stale.stamp => leaf.oid,
                _ => None,
            },
            _ => None,
        }
    }

    fn hash(&mut self, path: &Path, stamp: &Stamp, deadline: Deadline) -> Result<Hashed, Stop> {
        if Mode::of(stamp) == Mode::Link {
            return Ok(match fs::read_link(path) {
                Ok(to) => Hashed::Content(object_id(
                    HashFormat::Sha256,
                    "link",
                    to.as_os_str().as_bytes(),
                )),
                Err(error) => failed(&error),
            });
        }
        if stamp.size > BIG {
            // The modification time can be set back (`touch -r`), the change time cannot.
            let identity = format!("{} {} {}", stamp.ctime, stamp.ino, stamp.size);
            return Ok(Hashed::Content(object_id(
                HashFormat::Sha256,
                "big",
                identity.as_bytes(),
            )));
        }
        match open(path) {
            Ok(file) => self.hash_file(file, deadline),
            Err(error) => Ok(failed(&error)),
        }
    }

    fn hash_file(&mut self, mut file: File, deadline: Deadline) -> Result<Hashed, Stop> {
        let mut hasher = Hasher::new(HashFormat::Sha256);
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(Hashed::Content(hasher.finish())),
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    *self.read += n as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Ok(failed(&error)),
            }
            // A file may grow while it is read.
            deadline.check()?;
        }
    }
}
