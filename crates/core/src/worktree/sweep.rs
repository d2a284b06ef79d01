//! Looking at the work tree: what is new, what is gone, what must be hashed again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use super::changes::Changes;
use super::deadline::Deadline;
use super::error::Stop;
use super::folder::{Entry, FileKind, Folder, Leaf, Mode, Trust, Visit};
use super::ground::{Ground, OWN_FOLDER};
use super::stamp::{Now, Stamp};
use super::watch::Watch;

/// Something on disk that is not known yet.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// A file or link that must be hashed.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// Whether something counts as part of the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Counts,
    Ignored,
}

/// Knows the ignore rules.
pub(super) trait Judge {
    /// One verdict for each, in order.
    fn judge(&mut self, unknown: &[Unknown], deadline: Deadline) -> Result<Vec<Verdict>, Stop>;

    /// What a `.git` in a folder below the root means.
    fn inner_git(&self) -> InnerGit;
}

/// What to do about a folder with a `.git` of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InnerGit {
    /// An ordinary folder; the `.git` does not count.
    Ordinary,
    /// Another repository, if git did not take it for a folder.
    Note,
    /// git must say what it is.
    AskGit,
}

/// How far a look goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Into every folder.
    Everything,
    /// Only into those that were named, and new ones.
    Named,
}

/// One look.
pub(super) struct Sweep<'a> {
    pub(super) ground: &'a Ground,
    pub(super) top: &'a mut Folder,
    pub(super) watch: &'a mut Option<Watch>,
    pub(super) judge: &'a mut dyn Judge,
    pub(super) changes: &'a mut Changes,
    pub(super) deadline: Deadline,
    pub(super) now: Now,
    pub(super) round: u32,
    pub(super) reach: Reach,
    pub(super) found: Found,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) stale: Vec<Stale>,
    pub(super) attributes: Attributes,
    unknown: Vec<Unknown>,
    queue: Vec<PathBuf>,
}

/// Whether a file was met that says how git converts others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attributes {
    #[default]
    NotMet,
    Met,
}

impl Sweep<'_> {
    /// Looks into the named folders, and as far as the reach says.
    pub(super) fn run(mut self, start: BTreeSet<PathBuf>) -> Result<Found, Stop> {
        // Parents first: what is below a folder that is gone needs no look.
        self.found.queue.extend(start.into_iter().rev());
        self.run_queue()?;
        while !self.found.unknown.is_empty() {
            self.place_unknown()?;
            self.run_queue()?;
        }
        Ok(self.found)
    }

    fn run_queue(&mut self) -> Result<(), Stop> {
        while let Some(folder) = self.found.queue.pop() {
            self.deadline.check()?;
            self.visit(&folder)?;
        }
        Ok(())
    }

    fn visit(&mut self, below: &Path) -> Result<(), Stop> {
        if let Some(watch) = self.watch
            && watch.arm(&self.ground.root, below).is_err()
        {
            *self.watch = None;
        }
        let entries = match fs::read_dir(self.ground.root.join(below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() => {
                return Err(Stop::Failed(format!(
                    "{}: {error}",
                    self.ground.root.display()
                )));
            }
            // Gone, which its parent tells; or not readable, and then what was known stays.
            Err(_) => return Ok(()),
        };
        let Some(folder) = self.top.find(below) else {
            return Ok(());
        };
        let unknown = self.found.unknown.len();
        let mut look = Look {
            below,
            folder,
            ground: self.ground,
            now: self.now,
            round: self.round,
            reach: self.reach,
            found: &mut self.found,
            visit: Visit::Ordinary,
        };
        for entry in entries.flatten() {
            look.see(&entry)?;
        }
        let visit = look.visit;
        let known = std::mem::replace(&mut look.folder.visit, visit);
        let gone = look.take_gone()?;
        if !gone.is_empty() {
            for (path, entry) in gone {
                self.changes.gone(path, &entry);
            }
            self.top.unseal(below);
        }
        self.note_git(below, (known, visit), unknown)
    }

    fn note_git(
        &mut self,
        below: &Path,
        (known, visit): (Visit, Visit),
        unknown: usize,
    ) -> Result<(), Stop> {
        if known == visit || below.as_os_str().is_empty() {
            return Ok(());
        }
        match (self.judge.inner_git(), known, visit) {
            (InnerGit::Ordinary, ..) | (_, Visit::Never, Visit::Ordinary) => Ok(()),
            (InnerGit::Note, Visit::Never, _) => {
                self.note_repo(below, unknown);
                Ok(())
            }
            _ => Err(Stop::Anew),
        }
    }

    /// A repository of which git took nothing: it has no commit yet. Where git took files from
    /// within, it is an ordinary folder.
    fn note_repo(&mut self, below: &Path, unknown: usize) {
        if self
            .top
            .find(below)
            .is_some_and(|folder| folder.entries.is_empty())
        {
            self.found.unknown.truncate(unknown);
            self.top.put(below, Entry::Repo(None), self.round);
        }
    }

    fn place_unknown(&mut self) -> Result<(), Stop> {
        let unknown = std::mem::take(&mut self.found.unknown);
        let verdicts = self.judge.judge(&unknown, self.deadline)?;
        for (unknown, verdict) in unknown.into_iter().zip(verdicts) {
            let entry = match (verdict, unknown.kind) {
                (Verdict::Counts, FileKind::Folder) => {
                    self.found.queue.push(unknown.path.clone());
                    Entry::Folder(Folder::default())
                }
                (Verdict::Counts, FileKind::File | FileKind::Link) => {
                    let Some(stamp) = self.stamp(&unknown.path) else {
                        continue;
                    };
                    self.found.stale.push(Stale {
                        path: unknown.path.clone(),
                        stamp,
                    });
                    Entry::Leaf(Leaf {
                        trust: Trust::Not,
                        mode: Mode::of(&stamp),
                        oid: None,
                    })
                }
                // Ignored or not, a rule file is obeyed: it must be looked at.
                (Verdict::Ignored, kind) if !is_rule_file(unknown.path.file_name()) => {
                    Entry::Ignored(kind)
                }
                _ => match self.stamp(&unknown.path) {
                    Some(stamp) => Entry::Silent(stamp),
                    None => continue,
                },
            };
            self.top.put(&unknown.path, entry, self.round);
        }
        Ok(())
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        let meta = fs::symlink_metadata(self.ground.root.join(path)).ok()?;
        Some(Stamp::of(&meta))
    }
}

fn is_rule_file(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| name == ".gitignore" || name == ".gitattributes")
}

/// A look into one folder.
struct Look<'a> {
    below: &'a Path,
    folder: &'a mut Folder,
    ground: &'a Ground,
    now: Now,
    round: u32,
    reach: Reach,
    found: &'a mut Found,
    visit: Visit,
}

/// What is to be done about an entry that was known.
enum Next {
    Keep,
    Hash(Stamp),
    Enter,
    Forget,
}

impl Look<'_> {
    fn see(&mut self, on_disk: &DirEntry) -> Result<(), Stop> {
        let name = on_disk.file_name();
        if name == ".git" {
            self.visit = Visit::WithGit;
            return Ok(());
        }
        let apart = &self.ground.apart;
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
                compare(&mut slot.entry, kind, on_disk, self.reach, self.now)
            }
            None => Next::Forget,
        };
        // New rules for a folder that is known already change what counts in it.
        let ruled = self.folder.visit != Visit::Never && is_rule_file(Some(&name));
        if ruled && !matches!(next, Next::Keep) {
            return Err(Stop::Anew);
        }
        match next {
            Next::Keep => {}
            Next::Hash(stamp) => {
                self.found.stale.push(Stale {
                    path: self.below.join(&name),
                    stamp,
                });
            }
            Next::Enter => self.found.queue.push(self.below.join(&name)),
            Next::Forget => {
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
    fn take_gone(&mut self) -> Result<Vec<(PathBuf, Entry)>, Stop> {
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
        if rules { Err(Stop::Anew) } else { Ok(gone) }
    }
}

fn compare(entry: &mut Entry, kind: FileKind, on_disk: &DirEntry, reach: Reach, now: Now) -> Next {
    match (entry, kind) {
        (Entry::Pinned(..), _) | (Entry::Repo(_), FileKind::Folder) => Next::Keep,
        (Entry::Ignored(known), kind) if *known == kind => Next::Keep,
        (Entry::Folder(_), FileKind::Folder) => match reach {
            Reach::Everything => Next::Enter,
            Reach::Named => Next::Keep,
        },
        (Entry::Leaf(leaf), FileKind::File | FileKind::Link) => {
            look_at_leaf(leaf, on_disk.metadata(), now)
        }
        (Entry::Silent(known), FileKind::File | FileKind::Link | FileKind::Special) => {
            match on_disk.metadata() {
                Ok(meta) if Stamp::of(&meta) == *known => Next::Keep,
                _ => Next::Forget,
            }
        }
        _ => Next::Forget,
    }
}

fn look_at_leaf(leaf: &mut Leaf, meta: io::Result<fs::Metadata>, now: Now) -> Next {
    // Gone between the two calls: the next look will tell.
    let Ok(meta) = meta else {
        leaf.trust = Trust::Not;
        return Next::Keep;
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
    if holds { Next::Keep } else { Next::Hash(stamp) }
}
