//! A working directory as descartes sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::budget::{Budget, Room};
use super::catalog;
use super::commit::{CommitJob, CommitOutcome};
use descartes_proc::Ending;

use super::deadline::Deadline;
use super::diff::{self, DiffOptions};
use super::error::{Stop, WorktreeError};
use super::git::Git;
use super::git::confined::ConfinedGit;
use super::git_tree::{GitTree, Reading};
use super::lines::{Change, Lines};
use super::own_output;
use super::pipes::pipe_in;
use super::plain::PlainTree;
use super::repo::{GIT_TIMEOUT, Repo};
use super::rewind::{self, Rewound};
use super::safety;
use super::scan_root::{ScanRoot, Watching};
use super::snapshot::{Changed, Snapshot, TreeHash, TreeKind};
use super::state::RepoState;

/// After so many snapshots in a row that took too long, no more are tried.
const TRIES: u32 = 3;

/// How a work tree is opened.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Which git, and in what environment.
    pub git: Git,
    /// Files and folders that never count, though they may lie in the work tree: a state file
    /// that was put there, its lock, the folder of all loops.
    pub apart: Vec<PathBuf>,
    /// Whether the kernel may be asked to tell which folders change.
    pub watching: Watching,
    /// Whether the first snapshot may believe the index.
    pub agents: PriorAgents,
}

/// Whether agents may have written into the index of the repository: so that a changed file looks
/// like the old one (`update-index --assume-unchanged`, metadata of their own making).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorAgents {
    /// No agent of this loop has been here.
    #[default]
    NotYet,
    /// They have: the first snapshot reads every file, as far as there is time for it.
    HaveWorked,
}

/// A working directory: a git work tree, or a plain folder.
///
/// ```
/// use std::time::Duration;
/// use descartes_core::worktree::Tree;
///
/// let dir = tempfile::tempdir()?;
/// let objects = tempfile::tempdir()?;
/// let mut tree = Tree::open(dir.path(), objects.path());
/// let before = tree.snapshot(Duration::from_secs(2));
/// std::fs::write(dir.path().join("new.txt"), "work")?;
/// let after = tree.snapshot(Duration::from_secs(2));
/// assert_eq!(before.differs(&after), Some(true));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Tree {
    way: Way,
    /// The working directory, from the top of the work tree.
    below: PathBuf,
    /// Snapshots in a row that took too long.
    late: u32,
    /// The newest one that was written down.
    noted: Option<String>,
    room: Arc<Room>,
}

#[derive(Debug)]
enum Way {
    Git(Box<GitTree>),
    Plain {
        content: Box<PlainTree>,
        why: String,
    },
}

impl Tree {
    /// Looks at what `dir` is. Snapshots are kept in `objects`, a folder of our own that is made
    /// when it is needed.
    pub fn open(dir: &Path, objects: &Path) -> Tree {
        Tree::open_with(dir, objects, TreeOptions::default())
    }

    /// The same, with another git or with paths that never count.
    pub fn open_with(dir: &Path, objects: &Path, options: TreeOptions) -> Tree {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        let objects = absolute(objects);
        let mut apart = options.apart;
        apart.push(objects.clone());
        apart.extend(own_output::noted(&objects));
        let found = match dir.is_dir() {
            true => Repo::find(&options.git, dir, &objects),
            false => Err(format!("there is no folder {}", dir.display())),
        };
        let way = match found {
            Ok(repo) => {
                let scan_root = ScanRoot::new(repo.root.clone(), &apart, options.watching);
                let tree = GitTree::new(repo, scan_root);
                let reading = match options.agents {
                    PriorAgents::NotYet => Reading::NewToUs,
                    PriorAgents::HaveWorked => Reading::Everything,
                };
                Way::Git(Box::new(tree.reading(reading)))
            }
            Err(why) => {
                let root = dir.canonicalize().unwrap_or_else(|_| absolute(dir));
                let cache = Some(objects.join("content-hashes"));
                let content = Box::new(PlainTree::new(
                    ScanRoot::new(root, &apart, options.watching),
                    cache,
                ));
                Way::Plain { content, why }
            }
        };
        let below = match &way {
            Way::Git(tree) => dir
                .canonicalize()
                .ok()
                .and_then(|dir| Some(dir.strip_prefix(&tree.repo.root).ok()?.to_owned())),
            Way::Plain { .. } => None,
        };
        Tree {
            way,
            below: below.unwrap_or_default(),
            late: 0,
            noted: None,
            room: Arc::default(),
        }
    }

    /// The top of the work tree.
    pub(crate) fn top(&self) -> &Path {
        match &self.way {
            Way::Git(tree) => &tree.repo.root,
            Way::Plain { content, .. } => &content.index.scan_root.root,
        }
    }

    /// What it is, and if git is not used, why.
    pub fn kind(&self) -> TreeKind {
        match &self.way {
            Way::Git(tree) => TreeKind::Git {
                root: tree.repo.root.clone(),
            },
            Way::Plain { why, .. } => TreeKind::Plain { why: why.clone() },
        }
    }

    /// The working directory, from the top of the work tree: empty where it is the top.
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// Measures the work tree. Never fails and never takes much longer than `budget`: what cannot
    /// be measured is unknown, with the reason.
    pub fn snapshot(&mut self, budget: Duration) -> Snapshot {
        self.snapshot_until(Deadline::after(budget))
    }

    /// The same, which somebody may want the end of.
    pub(crate) fn snapshot_until(&mut self, deadline: Deadline) -> Snapshot {
        let limit = deadline.limit;
        let begun = Instant::now();
        let room = Arc::clone(&self.room);
        let _held = room.enter();
        let head = self.head();
        let tree = match self.late {
            0..TRIES => self.measure(head.as_deref(), deadline),
            _ => Err(Stop::Failed(
                "measuring took too long too often: not tried any more".to_owned(),
            )),
        };
        let tree = match tree {
            Ok(tree) => {
                self.late = 0;
                self.note(&tree);
                tree
            }
            Err(stop) => TreeHash::Unknown {
                reason: self.reason(stop, limit),
            },
        };
        if let Way::Git(git) = &mut self.way {
            room.wrote(git.index.take_written());
        }
        let changed = match (&tree, &self.way) {
            (TreeHash::Unknown { .. }, _) => None,
            (_, Way::Git(tree)) => tree.index.changed(),
            (_, Way::Plain { content, .. }) => content.index.changed(),
        };
        Snapshot {
            head,
            tree,
            changed,
            took: begun.elapsed(),
        }
    }

    /// Whether the newest snapshot took too long.
    pub(crate) fn was_late(&self) -> bool {
        self.late > 0
    }

    /// Writes down that this snapshot is there.
    fn note(&mut self, tree: &TreeHash) {
        if let (Way::Git(git), Some(tree)) = (&self.way, tree.git_tree())
            && self.noted.as_deref() != Some(tree)
        {
            catalog::note(&git.repo.objects, tree, git.rules());
            self.noted = Some(tree.to_owned());
        }
    }

    fn measure(&mut self, head: Option<&str>, deadline: Deadline) -> Result<TreeHash, Stop> {
        match &mut self.way {
            Way::Git(tree) => tree.measure(head, deadline),
            Way::Plain { content, .. } => content
                .measure(deadline)
                .map(|oid| TreeHash::Content(oid.to_string())),
        }
    }

    fn reason(&mut self, stop: Stop, limit: Duration) -> String {
        match stop {
            Stop::Late => {
                self.late = self.late.saturating_add(1);
                if let Way::Git(git) = &mut self.way {
                    git.was_late();
                }
                let why = self.pipe().map(|why| format!(": {why}"));
                let why = why.unwrap_or_default();
                format!("measuring the work tree took longer than {limit:?}{why}")
            }
            Stop::Asked => self
                .pipe()
                .unwrap_or_else(|| "measuring the work tree was stopped".to_owned()),
            Stop::Rescan => "the work tree changed while it was measured".to_owned(),
            Stop::Failed(message) => message,
        }
    }

    /// A named pipe that git would wait for, for people.
    pub(crate) fn pipe(&self) -> Option<String> {
        match &self.way {
            Way::Git(tree) => pipe_in(&tree.repo.root),
            Way::Plain { .. } => None,
        }
    }

    /// Makes room among the snapshots, in another thread; `None` where there is
    /// enough, and without git.
    pub(crate) fn budget(&self, limit: u64) -> Option<Budget> {
        match &self.way {
            Way::Git(git) if self.room.is_due(limit) => Some(Budget {
                repo: git.repo.clone(),
                room: Arc::clone(&self.room),
                limit,
            }),
            _ => None,
        }
    }

    /// Counts changed files from here on: see [`Snapshot::changed`].
    pub fn mark(&mut self) {
        match &mut self.way {
            Way::Git(tree) => tree.index.mark(),
            Way::Plain { content, .. } => content.index.mark(),
        }
    }

    /// The commit of HEAD; `None` before the first one and without git.
    pub fn head(&self) -> Option<String> {
        match &self.way {
            Way::Git(tree) => tree.repo.head().commit().map(str::to_owned),
            Way::Plain { .. } => None,
        }
    }

    /// What changed between two snapshots, as git writes it.
    pub fn diff(
        &self,
        from: &Snapshot,
        to: &Snapshot,
        options: DiffOptions,
    ) -> Result<Vec<u8>, WorktreeError> {
        self.repo("a diff")?.diff(from, to, options)
    }

    /// The files that differ between two snapshots.
    pub fn changed_files(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<Changed>, WorktreeError> {
        self.repo("a list of changed files")?
            .changed_files(from, to)
    }

    /// The repositories inside the work tree, if files in them differ between two snapshots, which hold only
    /// their commits.
    pub fn repositories_that_differ(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<PathBuf>, WorktreeError> {
        self.repo("a list of repositories")?
            .repositories_that_differ(from, to)
    }

    /// How many lines each of these changed, in order; `None` where it cannot be told, or not
    /// within the budget.
    pub fn lines(&self, changes: &[Change], budget: Duration) -> Vec<Option<Lines>> {
        match self.repo("a count of lines") {
            Ok(repo) => repo.lines(changes, budget),
            Err(_) => vec![None; changes.len()],
        }
    }

    /// Puts the working directory back to a snapshot. Before anything is touched, the work tree as it is
    /// becomes the safety copy of this name: rewinding to that is the way back. HEAD, the index
    /// and ignored files stay as they are, and so does the rest of a repository around it.
    pub fn rewind(&mut self, to: &Snapshot, safety: &str) -> Result<Rewound, WorktreeError> {
        let below = self.below.clone();
        self.rewind_below(to, safety, &below)
    }

    /// The same for the whole repository that the working directory lies in.
    pub fn rewind_whole_tree(
        &mut self,
        to: &Snapshot,
        safety: &str,
    ) -> Result<Rewound, WorktreeError> {
        self.rewind_below(to, safety, Path::new(""))
    }

    fn rewind_below(
        &mut self,
        to: &Snapshot,
        safety: &str,
        below: &Path,
    ) -> Result<Rewound, WorktreeError> {
        // Taken by git itself: nothing that a file's metadata hides may be lost here.
        self.git("rewinding")?.forget();
        self.late = 0;
        let copy = self.snapshot(GIT_TIMEOUT);
        diff::tree_of(to)?;
        diff::tree_of(&copy)?;
        let tree = self.git("rewinding")?;
        safety::save(&tree.repo.objects, safety, &copy)?;
        let nested = match (&copy.tree, &to.tree) {
            (TreeHash::Git { nested: is, .. }, TreeHash::Git { nested: was, .. }) => is != was,
            _ => false,
        };
        let mut done = rewind::rewind(&tree.repo, &tree.index.scan_root, copy, to, below)?;
        if nested {
            let inner = tree.inner_paths().into_iter();
            done.nested
                .extend(inner.filter(|path| path.starts_with(below)));
        }
        done.nested.sort();
        done.nested.dedup();
        Ok(done)
    }

    /// Writes these files as they were in a snapshot, where nothing that no snapshot holds is in the
    /// way; gives those. `now` is the work tree as it is.
    pub(crate) fn put_back(
        &self,
        now: &Snapshot,
        to: &Snapshot,
        paths: &BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, WorktreeError> {
        rewind::put_back(self.repo("putting files back")?, now, to, paths)
    }

    /// Without git: the files of the last snapshot, each with the hash of its content.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        if let Way::Plain { content, .. } = &self.way {
            content.index.top.each(Path::new(""), &mut |path, entry| {
                if let Some((mode, oid)) = entry.content() {
                    all.insert(path, format!("{mode:?} {oid}"));
                }
            });
        }
        all
    }

    /// The safety copy of that name.
    pub fn safety_copy(&self, name: &str) -> Result<Snapshot, WorktreeError> {
        safety::load(&self.repo("a safety copy")?.objects, name)
    }

    /// The names of all safety copies.
    pub fn safety_copies(&self) -> Vec<String> {
        self.repo("")
            .map(|repo| safety::names(&repo.objects))
            .unwrap_or_default()
    }

    /// Commits everything but what is ours, as the user would: hooks run.
    pub fn commit_all(&self, message: &str) -> CommitOutcome {
        self.commit_job(message).run()
    }

    /// The same, to be done in another thread.
    pub(crate) fn commit_job(&self, message: &str) -> CommitJob {
        match &self.way {
            Way::Git(tree) => CommitJob::new(&tree.repo, &tree.index.scan_root, message),
            Way::Plain { why, .. } => CommitJob::hopeless(why),
        }
    }

    /// Ends gits of ours that run hooks or filters.
    pub(crate) fn end_calls(&self, how: Ending) {
        if let Way::Git(tree) = &self.way {
            tree.repo.git.end_calls(how);
        }
    }

    /// Makes a branch at HEAD and switches to it; changes in the work tree come along.
    pub fn create_branch(&self, name: &str) -> Result<(), WorktreeError> {
        self.repo("a branch")?.create_branch(name, false)
    }

    /// The same without any hook or filter.
    pub(crate) fn create_branch_quietly(&self, name: &str) -> Result<(), WorktreeError> {
        self.repo("a branch")?.create_branch(name, true)
    }

    /// Tags HEAD. A tag that is there already, at the same commit, is fine.
    pub fn tag(&self, name: &str) -> Result<(), WorktreeError> {
        self.repo("a tag")?.tag(name, None)
    }

    /// The same in a sandbox, where there is one.
    pub(crate) fn tag_confined(
        &self,
        name: &str,
        confined: Option<&Arc<ConfinedGit>>,
    ) -> Result<(), WorktreeError> {
        self.repo("a tag")?.tag(name, confined)
    }

    /// What the repository is in the middle of, and who commits.
    pub fn state(&self) -> Result<RepoState, WorktreeError> {
        self.repo("the state of the repository")?.state()
    }

    fn repo(&self, what: &'static str) -> Result<&Repo, WorktreeError> {
        match &self.way {
            Way::Git(tree) => Ok(&tree.repo),
            Way::Plain { why, .. } => Err(WorktreeError::NotGit {
                what,
                why: why.clone(),
            }),
        }
    }

    fn git(&mut self, what: &'static str) -> Result<&mut GitTree, WorktreeError> {
        match &mut self.way {
            Way::Git(tree) => Ok(tree),
            Way::Plain { why, .. } => Err(WorktreeError::NotGit {
                what,
                why: why.clone(),
            }),
        }
    }
}
