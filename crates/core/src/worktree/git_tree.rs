//! Measuring a git work tree.
//!
//! The first time git itself takes the snapshot, and the index is filled from that. From then on
//! only what changed is looked at and written, with git asked about new names alone. Where that
//! does not suffice (ignore rules changed, a repository appeared, files that this file system
//! does not keep faithfully) git takes the snapshot again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::catalog;
use super::deadline::Deadline;
use super::error::Stop;
use super::facts::{Facts, Files};
use super::findings::{Attributes, InnerGit, Judge, SweepVerdict, Unknown};
use super::inner::{self, Inner};
use super::objects::{Blobs, Objects};
use super::oid::{Oid, object_id};
use super::repo::Repo;
use super::scan_root::ScanRoot;
use super::seed::{Belief, seed};
use super::snapshot::TreeHash;
use super::stamp::Now;
use super::text;
use super::tree_index::TreeIndex;

/// How git's own snapshot is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reading {
    /// The user's index is believed: no agent of the loop has been here.
    #[default]
    NewToUs,
    /// Agents may have written into the index, and what we saw ourselves is believed.
    KnownToUs,
    /// Agents may have written into the index: every file is read.
    Everything,
}

/// A git work tree, and what is known of it.
#[derive(Debug)]
pub(super) struct GitTree {
    pub(super) repo: Repo,
    pub(super) index: TreeIndex,
    /// Settings as they were when the index was filled; `None` while it is not.
    facts: Option<Facts>,
    /// HEAD as it was then or when it was last followed.
    head: Option<String>,
    inner: Vec<Inner>,
    /// How the next snapshot of git's is taken.
    reading: Reading,
    /// What is noted with a snapshot: the ignore rules that lie outside the work tree.
    rules: Option<String>,
}

impl GitTree {
    pub(super) fn new(repo: Repo, scan_root: ScanRoot) -> GitTree {
        GitTree {
            repo,
            index: TreeIndex::new(scan_root),
            facts: None,
            head: None,
            inner: Vec::new(),
            reading: Reading::default(),
            rules: None,
        }
    }

    pub(super) fn reading(mut self, reading: Reading) -> GitTree {
        self.reading = reading;
        self
    }

    /// There was no time to read everything.
    pub(super) fn was_late(&mut self) {
        if self.reading == Reading::Everything {
            self.reading = Reading::NewToUs;
        }
    }

    pub(super) fn rules(&self) -> Option<&str> {
        self.rules.as_deref()
    }

    /// Hash of the work tree, all its content kept in the object folder.
    pub(super) fn measure(
        &mut self,
        head: Option<&str>,
        deadline: Deadline,
    ) -> Result<TreeHash, Stop> {
        let tree = match self.measure_changes(head, deadline.clone()) {
            Err(Stop::Rescan) => self.measure_all(deadline.clone())?,
            other => other?,
        };
        self.head = head.map(str::to_owned);
        let nested = inner::measure(&mut self.inner, deadline);
        Ok(TreeHash::Git {
            tree: tree.to_string(),
            nested,
        })
    }

    /// Repositories inside this one.
    pub(super) fn inner_paths(&self) -> Vec<PathBuf> {
        self.inner.iter().map(|inner| inner.path.clone()).collect()
    }

    /// Has the next snapshot taken by git itself, which reads every file.
    pub(super) fn forget(&mut self) {
        self.facts = None;
        self.reading = Reading::Everything;
    }

    fn measure_changes(&mut self, head: Option<&str>, deadline: Deadline) -> Result<Oid, Stop> {
        if !self.facts.as_ref().is_some_and(Facts::hold) || self.inner.iter().any(Inner::is_other) {
            return Err(Stop::Rescan);
        }
        self.follow_head(head, deadline.clone())?;
        let Some(facts) = &mut self.facts else {
            return Err(Stop::Rescan);
        };
        let now = Now::read();
        let mut judge = AskGit {
            repo: &self.repo,
            inner_git: InnerGit::AskGit,
        };
        let found = self.index.look(&mut judge, now, deadline.clone())?;
        if found.attributes == Attributes::Met {
            facts.blobs = Blobs::Filtered;
        }
        let blobs = facts.blobs;
        for inner in &self.inner {
            self.index.move_repo(&inner.path, inner.commit());
        }
        let mut objects = Objects {
            repo: &self.repo,
            blobs,
        };
        self.index.settle(&found.stale, &mut objects, now, deadline)
    }

    /// A commit may hold files that are ignored, added by force: from then on they count.
    fn follow_head(&mut self, head: Option<&str>, deadline: Deadline) -> Result<(), Stop> {
        let Some(new) = head.filter(|new| self.head.as_deref() != Some(new)) else {
            return Ok(());
        };
        let call = self.repo.read();
        let call = match &self.head {
            Some(old) => call.args(["diff-tree", "-r", "-z", "--name-only", old, new]),
            None => call.args(["ls-tree", "-r", "-z", "--name-only", new]),
        };
        // Commits that are gone by now tell nothing.
        let out = call
            .output(deadline)
            .map_err(|error| match Stop::from(error) {
                stop @ (Stop::Late | Stop::Asked) => stop,
                _ => Stop::Rescan,
            })?;
        let mut paths = text::zero_ended(&out).map(text::path);
        match paths.any(|path| self.index.top.is_ignored(&path)) {
            true => Err(Stop::Rescan),
            false => Ok(()),
        }
    }

    fn measure_all(&mut self, deadline: Deadline) -> Result<Oid, Stop> {
        let begun = self.facts.take().is_some();
        let facts = Facts::read(&self.repo, deadline.clone())?;
        let rules = catalog::keep_rules(&self.repo.objects, &facts.rules);
        // Before git reads the first file: one that is changed after that is hashed again.
        let now = Now::read();
        let belief = match self.reading {
            Reading::NewToUs => Belief::UserIndex,
            Reading::Everything => Belief::Nothing,
            Reading::KnownToUs if self.index.top.entries.is_empty() => Belief::NothingIfSmall,
            Reading::KnownToUs => Belief::Seen(&mut self.index.top),
        };
        let scan_root = &self.index.scan_root;
        let seed = seed(&self.repo, scan_root, &facts, belief, deadline.clone())?;
        self.reading = Reading::KnownToUs;
        self.rules = catalog::remark(rules, seed.is_filtered);
        if facts.files == Files::Translated {
            return Ok(seed.tree);
        }
        let old = self.index.replace(seed.top);
        let tree = self.fill(facts, seed.tree, now, deadline)?;
        if begun && self.index.is_begun() {
            self.index.note_replaced(&old);
        }
        let known = std::mem::take(&mut self.inner);
        self.inner = Inner::all(&self.index.top, &self.index.scan_root, known);
        Ok(tree)
    }

    /// Looks at the files that git found. Only if that gives the very tree that git wrote can
    /// later snapshots be built on it.
    fn fill(
        &mut self,
        mut facts: Facts,
        tree: Oid,
        now: Now,
        deadline: Deadline,
    ) -> Result<Oid, Stop> {
        let mut judge = AskGit {
            repo: &self.repo,
            inner_git: InnerGit::Note,
        };
        let found = self.index.look(&mut judge, now, deadline.clone())?;
        let format = self.repo.format;
        let mut name = |content: &[u8]| Ok(object_id(format, "tree", content));
        let mine = match self.index.top.seal(&mut name)? {
            Some(oid) => oid,
            None => object_id(format, "tree", b""),
        };
        if mine != tree {
            self.index.abandon();
            return Ok(tree);
        }
        if found.attributes == Attributes::Met {
            facts.blobs = Blobs::Filtered;
        }
        let tree = match facts.blobs {
            Blobs::Raw => {
                let mut objects = Objects {
                    repo: &self.repo,
                    blobs: Blobs::Raw,
                };
                self.index
                    .settle(&found.stale, &mut objects, now, deadline)?
            }
            // What changed in this very moment is left to the next look.
            Blobs::Filtered => {
                self.index.look_again(&found.stale);
                tree
            }
        };
        self.facts = Some(facts);
        Ok(tree)
    }
}

/// git's own word on what is ignored.
struct AskGit<'a> {
    repo: &'a Repo,
    inner_git: InnerGit,
}

impl Judge for AskGit<'_> {
    fn judge(
        &mut self,
        unknown: &[Unknown],
        deadline: Deadline,
    ) -> Result<Vec<SweepVerdict>, Stop> {
        // A name that begins with a colon would be taken for a pattern.
        let paths: Vec<PathBuf> = unknown
            .iter()
            .map(|unknown| Path::new(".").join(&unknown.path))
            .collect();
        let paths = text::zero_joined(paths.iter().map(PathBuf::as_path));
        let call = self.repo.read().args(["check-ignore", "-z", "--stdin"]);
        let answer = call.stdin(paths).run(deadline)?;
        if !matches!(answer.code, Some(0 | 1)) {
            return Err(answer.error().into());
        }
        let plain = |path: PathBuf| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        let ignored: HashSet<PathBuf> = text::zero_ended(&answer.stdout)
            .map(|name| plain(text::path(name)))
            .collect();
        let verdict = |unknown: &Unknown| match ignored.contains(&unknown.path) {
            true => SweepVerdict::Ignored,
            false => SweepVerdict::Counts,
        };
        Ok(unknown.iter().map(verdict).collect())
    }

    fn inner_git(&self) -> InnerGit {
        self.inner_git
    }
}
