//! Repositories inside the work tree: submodules, and clones that just lie there.
//!
//! git keeps the commit that they are at, not their files. Work done in one must still count as
//! progress, so their content is measured as that of a plain folder.

use std::path::{Path, PathBuf};

use super::deadline::Deadline;
use super::error::Stop;
use super::folder::{Entry, Folder};
use super::head::RefFolders;
use super::oid::{HashFormat, Hasher, Oid};
use super::plain::PlainTree;
use super::scan_root::ScanRoot;

/// After so many failures to measure one in time, it is left alone.
const TRIES: u32 = 2;

/// One of them.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) path: PathBuf,
    at: PathBuf,
    content: PlainTree,
    failures: u32,
    /// Whether it is really there; a submodule that was not fetched is not.
    present: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    There,
    Missing,
}

impl Inner {
    /// All that the index knows of, keeping what was measured of those that were known before.
    pub(super) fn all(top: &Folder, scan_root: &ScanRoot, mut known: Vec<Inner>) -> Vec<Inner> {
        let mut all = Vec::new();
        top.each(Path::new(""), &mut |path, entry| {
            if let Entry::Repo(_) = entry {
                let old = known.iter().position(|inner| inner.path == path);
                let mut inner = match old {
                    Some(i) => known.swap_remove(i),
                    None => Inner::new(path, scan_root),
                };
                inner.present = inner.presence();
                all.push(inner);
            }
        });
        all
    }

    fn new(path: PathBuf, scan_root: &ScanRoot) -> Inner {
        let at = scan_root.root.join(&path);
        let scan_root = ScanRoot::new(at.clone(), &[], scan_root.watching);
        let content = PlainTree::new(scan_root, None);
        Inner {
            path,
            at,
            content,
            failures: 0,
            present: Presence::Missing,
        }
    }

    fn presence(&self) -> Presence {
        match self.at.join(".git").exists() {
            true => Presence::There,
            false => Presence::Missing,
        }
    }

    /// Whether it is no longer what it was: fetched, or turned into an ordinary folder.
    pub(super) fn is_other(&self) -> bool {
        self.presence() != self.present
    }

    /// The commit that it is at, where that can be read.
    pub(super) fn commit(&self) -> Option<Oid> {
        let head = RefFolders::of(&self.at)?.head();
        Oid::from_hex(head.commit()?.as_bytes())
    }

    fn measure(&mut self, deadline: Deadline) -> Option<Oid> {
        if self.failures >= TRIES || self.present == Presence::Missing {
            return None;
        }
        match self.content.measure(deadline) {
            Ok(oid) => {
                self.failures = 0;
                Some(oid)
            }
            Err(Stop::Late) => {
                self.failures += 1;
                None
            }
            Err(_) => None,
        }
    }
}

/// One hash for the content of all of them; `None` where there are none, or one of them could not
/// be measured.
pub(super) fn measure(all: &mut [Inner], deadline: Deadline) -> Option<String> {
    let mut hasher = Hasher::new(HashFormat::Sha256);
    let mut any = false;
    for inner in all {
        if let Some(oid) = inner.measure(deadline.clone()) {
            hasher.update(inner.path.as_os_str().as_encoded_bytes());
            hasher.update(&[0]);
            hasher.update(oid.as_bytes());
            any = true;
        }
    }
    any.then(|| hasher.finish().to_string())
}
