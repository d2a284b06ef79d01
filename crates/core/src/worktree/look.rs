//! Looking into one folder.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::Stop;
use super::findings::{Attributes, Reach, Stale, SweepFindings, Unknown};
use super::folder::{Entry, Folder, Leaf, Trust, Visit};
use super::kind::{FileKind, Mode};
use super::scan_root::{OWN_FOLDER, ScanRoot};
use super::stamp::{Now, Stamp};

/// Whether a file says what counts, or how git converts others.
pub(super) fn is_rule_file(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| name == ".gitignore" || name == ".gitattributes")
}

/// A look into one folder.
pub(super) struct Look<'a> {
    pub(super) below: &'a Path,
    pub(super) folder: &'a mut Folder,
    pub(super) scan_root: &'a ScanRoot,
    pub(super) now: Now,
    pub(super) round: u32,
    pub(super) reach: Reach,
    pub(super) found: &'a mut SweepFindings,
    pub(super) visit: Visit,
    pub(super) links: Links,
}

/// Whether a folder holds files that have other names elsewhere: what is written there is not
/// told of here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    None,
    Some,
}

/// What is to be done about an entry that was known.
enum EntryAction {
    Keep,
    Hash(Stamp),
    Enter,
    Forget,
}

impl Look<'_> {
    pub(super) fn see(&mut self, on_disk: &DirEntry) -> Result<(), Stop> {
        let name = on_disk.file_name();
        if name == ".git" {
            self.visit = Visit::WithGit;
            return Ok(());
        }
        let apart = &self.scan_root.apart;
        if name == OWN_FOLDER || (!apart.is_empty() && apart.contains(&self.below.join(&name))) {
            return Ok(());
        }
        if name == ".gitattributes" {
            self.found.attributes = Attributes::Met;
        }
        let Ok(kind) = on_disk.file_type().map(FileKind::from) else {
            return Ok(());
        };
        let next = match self.folder.entries.get_mut(&name) {
            Some(slot) => {
                slot.round = self.round;
                let (entry, links) = (&mut slot.entry, &mut self.links);
                compare(entry, kind, on_disk, (self.reach, self.now), links)
            }
            None => EntryAction::Forget,
        };
        // New rules for a folder that is known already change what counts in it.
        let ruled = self.folder.visit != Visit::Never && is_rule_file(Some(&name));
        if ruled && !matches!(next, EntryAction::Keep) {
            return Err(Stop::Rescan);
        }
        match next {
            EntryAction::Keep => {}
            EntryAction::Hash(stamp) => {
                self.found.stale.push(Stale {
                    path: self.below.join(&name),
                    stamp,
                });
            }
            EntryAction::Enter => self.found.queue.push(self.below.join(&name)),
            EntryAction::Forget => {
                // Known as something else: that one is gone.
                if let Some(slot) = self.folder.entries.get_mut(&name) {
                    slot.round = self.round.wrapping_sub(1);
                }
                self.found.unknown.push(Unknown {
                    path: self.below.join(&name),
                    kind,
                });
            }
        }
        Ok(())
    }

    /// Takes out what was known and was not seen.
    pub(super) fn take_gone(&mut self) -> Result<Vec<(PathBuf, Entry)>, Stop> {
        let mut gone = Vec::new();
        let round = self.round;
        let mut rules = false;
        self.folder.entries.retain(|name, slot| {
            if slot.round == round || matches!(slot.entry, Entry::Pinned(..)) {
                return true;
            }
            rules |= is_rule_file(Some(name));
            let entry = std::mem::replace(&mut slot.entry, Entry::Ignored(FileKind::File));
            gone.push((self.below.join(name), entry));
            false
        });
        if rules { Err(Stop::Rescan) } else { Ok(gone) }
    }
}

fn compare(
    entry: &mut Entry,
    kind: FileKind,
    on_disk: &DirEntry,
    (reach, now): (Reach, Now),
    links: &mut Links,
) -> EntryAction {
    match (entry, kind) {
        (Entry::Pinned(..), _) | (Entry::Repo(_), FileKind::Folder) => EntryAction::Keep,
        (Entry::Ignored(known), kind) if *known == kind => EntryAction::Keep,
        (Entry::Folder(_), FileKind::Folder) => match reach {
            Reach::Everything => EntryAction::Enter,
            Reach::Named => EntryAction::Keep,
        },
        (Entry::Leaf(leaf), FileKind::File | FileKind::Link) => {
            let meta = on_disk.metadata();
            if kind == FileKind::File && meta.as_ref().is_ok_and(|meta| meta.nlink() > 1) {
                *links = Links::Some;
            }
            look_at_leaf(leaf, meta, now)
        }
        (Entry::Silent(known), FileKind::File | FileKind::Link | FileKind::Special) => {
            match on_disk.metadata() {
                Ok(meta) if Stamp::of(&meta) == *known => EntryAction::Keep,
                _ => EntryAction::Forget,
            }
        }
        _ => EntryAction::Forget,
    }
}

fn look_at_leaf(leaf: &mut Leaf, meta: io::Result<fs::Metadata>, now: Now) -> EntryAction {
    // Gone between the two calls: the next look will tell.
    let Ok(meta) = meta else {
        leaf.trust = Trust::Not;
        return EntryAction::Keep;
    };
    let stamp = Stamp::of(&meta);
    let holds = match leaf.trust {
        Trust::Not => false,
        Trust::Stamp(known) => known == stamp,
        Trust::Adopted => stamp.is_settled(now) && leaf.mode == Mode::of(&stamp),
    };
    leaf.trust = if holds {
        Trust::Stamp(stamp)
    } else {
        Trust::Not
    };
    if holds {
        EntryAction::Keep
    } else {
        EntryAction::Hash(stamp)
    }
}
