//! Looking at the work tree: what is new, what is gone, what must be hashed again.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::changes::Changes;
use super::deadline::Deadline;
use super::error::Stop;
use super::findings::{InnerGit, Judge, Reach, Stale, SweepFindings, SweepVerdict};
use super::folder::{Entry, Folder, Leaf, Trust, Visit};
use super::kind::{FileKind, Mode};
use super::look::{Links, Look, is_rule_file};
use super::scan_root::ScanRoot;
use super::stamp::{Now, Stamp};
use super::watch::FolderWatch;

/// One look.
pub(super) struct Sweep<'a> {
    pub(super) scan_root: &'a ScanRoot,
    pub(super) top: &'a mut Folder,
    pub(super) watch: &'a mut Option<FolderWatch>,
    pub(super) judge: &'a mut dyn Judge,
    pub(super) changes: &'a mut Changes,
    pub(super) deadline: Deadline,
    pub(super) now: Now,
    pub(super) round: u32,
    pub(super) reach: Reach,
    /// Folders with files that have other names elsewhere.
    pub(super) linked: &'a mut BTreeSet<PathBuf>,
    pub(super) found: SweepFindings,
}

impl Sweep<'_> {
    /// Looks into the named folders, and as far as the reach says.
    pub(super) fn run(mut self, start: BTreeSet<PathBuf>) -> Result<SweepFindings, Stop> {
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
            && watch.arm(&self.scan_root.root, below).is_err()
        {
            *self.watch = None;
        }
        let entries = match fs::read_dir(self.scan_root.root.join(below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() => {
                return Err(unreadable(self.scan_root, below, &error));
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
            scan_root: self.scan_root,
            now: self.now,
            round: self.round,
            reach: self.reach,
            found: &mut self.found,
            visit: Visit::Ordinary,
            links: Links::None,
        };
        for entry in entries {
            // What was not listed must not be taken for gone.
            look.see(&entry.map_err(|error| unreadable(self.scan_root, below, &error))?)?;
        }
        let visit = look.visit;
        match look.links {
            Links::Some => self.linked.insert(below.to_owned()),
            Links::None => self.linked.remove(below),
        };
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
            _ => Err(Stop::Rescan),
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
        let verdicts = self.judge.judge(&unknown, self.deadline.clone())?;
        for (unknown, verdict) in unknown.into_iter().zip(verdicts) {
            let entry = match (verdict, unknown.kind) {
                (SweepVerdict::Counts, FileKind::Folder) => {
                    self.found.queue.push(unknown.path.clone());
                    Entry::Folder(Folder::default())
                }
                (SweepVerdict::Counts, FileKind::File | FileKind::Link) => {
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
                (SweepVerdict::Ignored, kind) if !is_rule_file(unknown.path.file_name()) => {
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

    fn stamp(&mut self, path: &Path) -> Option<Stamp> {
        let meta = fs::symlink_metadata(self.scan_root.root.join(path)).ok()?;
        if meta.is_file() && meta.nlink() > 1 {
            let folder = path.parent().unwrap_or(Path::new(""));
            self.linked.insert(folder.to_owned());
        }
        Some(Stamp::of(&meta))
    }
}

fn unreadable(scan_root: &ScanRoot, below: &Path, error: &std::io::Error) -> Stop {
    Stop::Failed(format!("{}: {error}", scan_root.root.join(below).display()))
}
