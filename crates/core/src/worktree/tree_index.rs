//! All that is known of a work tree, kept true from snapshot to snapshot.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::changes::Changes;
use super::deadline::Deadline;
use super::error::Stop;
use super::findings::{Hashed, Judge, Reach, Stale, Store, SweepFindings};
use super::folder::{Entry, Folder, Trust};
use super::kind::Mode;
use super::oid::Oid;
use super::scan_root::ScanRoot;
use super::scan_root::Watching;
use super::stamp::Now;
use super::sweep::Sweep;
use super::watch::{FolderWatch, Heard};

/// For so long the watch alone is believed; then every file is looked at again.
const FULL_SCAN_EVERY: Duration = Duration::from_secs(10);

/// The index of one work tree.
#[derive(Debug)]
pub(super) struct TreeIndex {
    pub(super) scan_root: ScanRoot,
    pub(super) top: Folder,
    watch: Option<FolderWatch>,
    changes: Changes,
    round: u32,
    /// When every file was last looked at; `None` if the next look must go everywhere.
    walked: Option<Instant>,
    content: Coverage,
    /// Bytes of content at most that were kept since they were last asked for; `None` where git
    /// took the snapshot.
    written: Option<u64>,
    /// Folders with files that have other names elsewhere: the watch does not tell of what is
    /// written there.
    linked: BTreeSet<PathBuf>,
}

/// Whether what is known is of the whole work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    Partial,
    Whole,
}

impl TreeIndex {
    pub(super) fn new(scan_root: ScanRoot) -> TreeIndex {
        TreeIndex {
            scan_root,
            top: Folder::default(),
            watch: None,
            changes: Changes::default(),
            round: 0,
            walked: None,
            content: Coverage::Partial,
            written: None,
            linked: BTreeSet::new(),
        }
    }

    /// How much was written since this was last asked; `None` where that is not known.
    pub(super) fn take_written(&mut self) -> Option<u64> {
        self.written.replace(0)
    }

    /// Whether there is anything that a next look can build on.
    pub(super) fn is_begun(&self) -> bool {
        self.content == Coverage::Whole
    }

    /// Files that differ from the last mark.
    pub(super) fn changed(&self) -> Option<u32> {
        self.changes.count()
    }

    pub(super) fn mark(&mut self) {
        if self.is_begun() {
            self.changes.begin();
        }
    }

    /// Puts something else in the place of what was known; the next look goes everywhere.
    pub(super) fn replace(&mut self, top: Folder) -> Folder {
        self.written = None;
        self.walked = None;
        self.content = Coverage::Partial;
        std::mem::replace(&mut self.top, top)
    }

    /// Drops what was known, because it proved wrong.
    pub(super) fn abandon(&mut self) {
        self.replace(Folder::default());
        self.changes.lose();
    }

    /// Compares with what was there before it was replaced.
    pub(super) fn note_replaced(&mut self, old: &Folder) {
        self.changes.replaced(old, &self.top);
    }

    /// Looks at what may have changed.
    pub(super) fn look(
        &mut self,
        judge: &mut dyn Judge,
        now: Now,
        deadline: Deadline,
    ) -> Result<SweepFindings, Stop> {
        let begun = Instant::now();
        let named = self.named();
        let reach = if named.is_some() {
            Reach::Named
        } else {
            Reach::Everything
        };
        if reach == Reach::Everything {
            self.linked.clear();
            self.renew_watch();
        }
        let watched = self.watch.is_some();
        self.round = self.round.wrapping_add(1);
        let sweep = Sweep {
            scan_root: &self.scan_root,
            top: &mut self.top,
            watch: &mut self.watch,
            judge,
            changes: &mut self.changes,
            deadline,
            now,
            round: self.round,
            reach,
            linked: &mut self.linked,
            found: SweepFindings::default(),
        };
        let found = sweep.run(named.unwrap_or_else(|| BTreeSet::from([PathBuf::new()])));
        if watched && self.watch.is_none() {
            // Too many folders, or one that it cannot serve: that will not be better next time.
            self.scan_root.watching = Watching::Never;
        }
        match (&found, reach) {
            (Ok(_), Reach::Everything) => {
                self.walked = Some(begun);
                self.content = Coverage::Whole;
            }
            (Ok(_), Reach::Named) => {}
            (Err(stop), _) => self.distrust(stop),
        }
        found
    }

    /// The folders in which something happened, where the watch can be believed.
    fn named(&mut self) -> Option<BTreeSet<PathBuf>> {
        let fresh = self.walked.is_some_and(|at| at.elapsed() < FULL_SCAN_EVERY);
        match self.watch.as_mut()?.hear() {
            Heard::Folders(mut folders) if fresh => {
                folders.extend(self.linked.iter().cloned());
                Some(folders)
            }
            _ => None,
        }
    }

    /// The watch is used again, because to end one makes the kernel wait for tens of milliseconds.
    fn renew_watch(&mut self) {
        match (&mut self.watch, self.scan_root.watching) {
            (Some(watch), _) => watch.forget(),
            (none, Watching::WherePossible) => *none = FolderWatch::new(&self.scan_root.root),
            (None, Watching::Never) => {}
        }
    }

    /// The next look must go everywhere.
    fn distrust(&mut self, stop: &Stop) {
        self.walked = None;
        if !matches!(stop, Stop::Rescan) {
            self.changes.lose();
        }
    }

    /// Leaves what must be hashed to the next look, which then has to find it by itself.
    pub(super) fn look_again(&mut self, stale: &[Stale]) {
        if !stale.is_empty() {
            self.walked = None;
        }
    }

    /// Hashes what must be, and makes the trees above it. Gives the hash of all.
    pub(super) fn settle(
        &mut self,
        stale: &[Stale],
        store: &mut dyn Store,
        now: Now,
        deadline: Deadline,
    ) -> Result<Oid, Stop> {
        let settled = self.try_settle(stale, store, now, deadline);
        if let Err(stop) = &settled {
            self.distrust(stop);
        }
        settled
    }

    fn try_settle(
        &mut self,
        stale: &[Stale],
        store: &mut dyn Store,
        now: Now,
        deadline: Deadline,
    ) -> Result<Oid, Stop> {
        if !stale.is_empty() {
            // With the trees above them, and a block of the disk for each.
            let bytes: u64 = stale.iter().map(|stale| stale.stamp.size + 16_384).sum();
            self.written = self.written.map(|before| before.saturating_add(bytes));
            let mut hashed = Vec::with_capacity(stale.len());
            let through = store.leaves(&self.scan_root.root, stale, deadline, &mut hashed);
            for (stale, hashed) in stale.iter().zip(hashed) {
                self.enter(stale, hashed, now);
            }
            through?;
        }
        self.root(store)
    }

    /// The hash of all, from what is known.
    pub(super) fn root(&mut self, store: &mut dyn Store) -> Result<Oid, Stop> {
        match self.top.seal(&mut |content| store.tree(content))? {
            Some(root) => Ok(root),
            None => store.tree(b""),
        }
    }

    fn enter(&mut self, stale: &Stale, hashed: Hashed, now: Now) {
        let Some(entry) = self.top.entry(&stale.path) else {
            return;
        };
        let was = entry.content();
        let Entry::Leaf(leaf) = entry else { return };
        match hashed {
            Hashed::Content(oid) => {
                leaf.oid = Some(oid);
                leaf.mode = Mode::of(&stale.stamp);
                // An edit within this tick of the clock would not show: look again next time.
                let settled = stale.stamp.is_settled(now);
                leaf.trust = if settled {
                    Trust::Stamp(stale.stamp)
                } else {
                    Trust::Not
                };
            }
            Hashed::Gone => {
                leaf.oid = None;
                leaf.trust = Trust::Not;
            }
            // What git does: a file that was known keeps its last known content.
            Hashed::Unreadable if leaf.oid.is_some() => leaf.trust = Trust::Stamp(stale.stamp),
            Hashed::Unreadable => *entry = Entry::Silent(stale.stamp),
        }
        let is = entry.content();
        if was != is {
            self.changes.note(stale.path.clone(), was, is);
            self.top
                .unseal(stale.path.parent().unwrap_or(Path::new("")));
        }
    }

    /// Notes that a repository inside this one is at another commit.
    pub(super) fn move_repo(&mut self, path: &Path, commit: Option<Oid>) {
        let Some(entry) = self.top.entry(path) else {
            return;
        };
        let Entry::Repo(known) = entry else { return };
        if commit.is_none() || *known == commit {
            return;
        }
        let was = std::mem::replace(known, commit);
        let repo = |oid| (Mode::Repo, oid);
        self.changes
            .note(path.to_path_buf(), was.map(repo), commit.map(repo));
        self.top.unseal(path.parent().unwrap_or(Path::new("")));
    }
}
