//! What was proven in place and is in no commit yet: kept as snapshots of our own, so that it is
//! noticed when an agent takes it back, and put back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::tasks::{
    FileFate, FileWork, ProvenFile, ProvenStep, UndoneWork, WorkBase, undone_work,
};

use super::place::Work;
use crate::worktree::{ChangeStatus, Snapshot, Tree, TreeHash};

const MEASURING: Duration = Duration::from_secs(120);
/// Files that are named one by one.
const NAMED: usize = 5;

/// The files at one moment.
#[derive(Clone, Debug)]
enum Content {
    Git(Snapshot),
    /// Without git: hashes, and nothing to put back.
    Plain(BTreeMap<PathBuf, String>),
}

/// What tasks proved since the last commit.
#[derive(Debug)]
pub(super) struct ProvenFiles {
    tree: Tree,
    /// What was committed last, or what the loop began from.
    base: Option<Content>,
    /// Who was proven since, with what that left.
    steps: Vec<(String, Content)>,
}

/// Proven work that somebody took back.
#[derive(Debug)]
pub(super) struct TakenBack {
    undone: UndoneWork,
    /// What could not be put back.
    left: BTreeSet<PathBuf>,
}

impl ProvenFiles {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            base: None,
            steps: Vec::new(),
        }
    }

    /// Takes what an earlier host wrote down.
    pub(super) fn recall(&mut self, base: &WorkBase, steps: &[ProvenStep]) {
        let content = |tree: &String| {
            let tree: TreeHash = tree.parse().ok()?;
            Some(Content::Git(Snapshot::recorded(None, tree)))
        };
        self.base = base.tree.as_ref().and_then(content);
        let steps = steps.iter();
        let steps = steps.filter_map(|step| Some((step.task.clone(), content(&step.tree)?)));
        self.steps = steps.collect();
    }

    /// Begins, unless an earlier host did.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        match self.base {
            Some(_) => Ok(()),
            None => self.committed(),
        }
    }

    /// Everything is in a commit now.
    pub(super) fn committed(&mut self) -> Result<(), String> {
        self.steps.clear();
        self.base = None;
        self.base = Some(self.measure()?);
        Ok(())
    }

    /// A task was proven on the tree as it is.
    pub(super) fn proven(&mut self, task: &str) -> Result<(), String> {
        let content = self.measure()?;
        self.steps.push((task.to_owned(), content));
        Ok(())
    }

    /// What a later host has to know: what was committed, and who was proven last.
    pub(super) fn record(&self) -> (Option<String>, Option<ProvenStep>) {
        let text = |content: &Content| match content {
            Content::Git(snapshot) => Some(snapshot.tree.to_string()),
            Content::Plain(_) => None,
        };
        let last = self.steps.last().and_then(|(task, content)| {
            Some(ProvenStep {
                task: task.clone(),
                tree: text(content)?,
            })
        });
        (self.base.as_ref().and_then(text), last)
    }

    /// Looks whether proven work was taken back, and puts it back where it can be. `by` is who worked
    /// on the tree since.
    pub(super) fn restore(&mut self, by: Option<&Work>) -> Result<Option<TakenBack>, String> {
        if self.steps.is_empty() {
            return Ok(None);
        }
        let now = self.measure()?;
        let files = self.files(&now)?;
        let upon = by.into_iter().flat_map(|by| by.upon.iter().chain([&by.id]));
        let undone = undone_work(&files, &upon.cloned().collect());
        if undone.is_empty() {
            return Ok(None);
        }
        let left = self.put_back(&now, &undone.put_back)?;
        Ok(Some(TakenBack { undone, left }))
    }

    /// Puts back what a task took back of those that it depends on: without that a gate is red.
    pub(super) fn restore_rest(&mut self, taken: &TakenBack) -> Result<(), String> {
        let now = self.measure()?;
        self.put_back(&now, &taken.undone.by_dependent).map(drop)
    }

    fn put_back(
        &self,
        now: &Content,
        files: &BTreeMap<String, Vec<String>>,
    ) -> Result<BTreeSet<PathBuf>, String> {
        let paths: BTreeSet<PathBuf> = files.values().flatten().map(PathBuf::from).collect();
        let (Content::Git(now), Some((_, Content::Git(last)))) = (now, self.steps.last()) else {
            return Ok(paths);
        };
        let done = self.tree.put_back(now, last, &paths);
        let done = done.map_err(|error| error.to_string())?;
        Ok(paths.difference(&done).cloned().collect())
    }

    /// The files of proven tasks, with what became of them; none where none of them changed.
    fn files(&self, now: &Content) -> Result<Vec<ProvenFile>, String> {
        let (Some(base), Some((_, last))) = (&self.base, self.steps.last()) else {
            return Ok(Vec::new());
        };
        let changed = self.changes(last, now)?;
        let work = match changed.is_empty() {
            true => BTreeMap::new(),
            false => self.changes(base, last)?,
        };
        if !work.keys().any(|path| changed.contains_key(path)) {
            return Ok(Vec::new());
        }
        let since = self.changes(base, now)?;
        let mut whose: BTreeMap<PathBuf, &str> = BTreeMap::new();
        let mut before = base;
        for (task, content) in &self.steps {
            let paths = self.changes(before, content)?;
            whose.extend(paths.into_keys().map(|path| (path, task.as_str())));
            before = content;
        }
        let files = work.into_iter().map(|(path, status)| ProvenFile {
            task: whose.get(&path).copied().unwrap_or_default().to_owned(),
            work: match status {
                ChangeStatus::Added => FileWork::Created,
                _ => FileWork::Changed,
            },
            fate: match (changed.contains_key(&path), since.contains_key(&path)) {
                (false, _) => FileFate::Kept,
                (true, false) => FileFate::Undone,
                (true, true) => FileFate::Edited,
            },
            path: path.to_string_lossy().into_owned(),
        });
        Ok(files.collect())
    }

    fn measure(&mut self) -> Result<Content, String> {
        if let Some(reason) = self.tree.pipe() {
            return Err(reason);
        }
        let snapshot = self.tree.snapshot(MEASURING);
        match &snapshot.tree {
            TreeHash::Git { .. } => Ok(Content::Git(snapshot)),
            TreeHash::Content(_) => Ok(Content::Plain(self.tree.contents())),
            TreeHash::Unknown { reason } => Err(reason.clone()),
        }
    }

    fn changes(
        &self,
        from: &Content,
        to: &Content,
    ) -> Result<BTreeMap<PathBuf, ChangeStatus>, String> {
        match (from, to) {
            (Content::Git(from), Content::Git(to)) => {
                let changed = self.tree.changed_files(from, to);
                let changed = changed.map_err(|error| error.to_string())?.into_iter();
                Ok(changed.map(|one| (one.path, one.status)).collect())
            }
            (Content::Plain(from), Content::Plain(to)) => Ok(differences(from, to)),
            _ => Err("git was added or removed in the meantime".to_owned()),
        }
    }
}

fn differences(
    from: &BTreeMap<PathBuf, String>,
    to: &BTreeMap<PathBuf, String>,
) -> BTreeMap<PathBuf, ChangeStatus> {
    let mut all = BTreeMap::new();
    for (path, hash) in to {
        let status = match from.get(path) {
            None => ChangeStatus::Added,
            Some(old) if old != hash => ChangeStatus::Modified,
            Some(_) => continue,
        };
        all.insert(path.clone(), status);
    }
    let gone = from.keys().filter(|path| !to.contains_key(*path));
    all.extend(gone.map(|path| (path.clone(), ChangeStatus::Removed)));
    all
}

impl TakenBack {
    /// Whether all of it is back.
    pub(super) fn is_whole(&self) -> bool {
        let UndoneWork {
            by_dependent,
            replaced,
            ..
        } = &self.undone;
        self.left.is_empty() && by_dependent.is_empty() && replaced.is_empty()
    }

    /// What happened, for a person or an agent; `who` did it.
    pub(super) fn describe(&self, who: &str) -> String {
        let UndoneWork {
            put_back,
            by_dependent,
            replaced,
        } = &self.undone;
        let mut parts = Vec::new();
        let is_left = |path: &&String| self.left.contains(Path::new(path.as_str()));
        let restored = named(put_back, |path| !is_left(path));
        let left = named(put_back, is_left);
        if let Some(files) = restored {
            parts.push(format!("{files}: put back"));
        }
        if let Some(files) = left {
            parts.push(format!("{files}: could not be put back"));
        }
        if let Some(files) = named(by_dependent, |_| true) {
            parts.push(format!("{files}: left as it is, since it depends on that"));
        }
        if let Some(files) = named(replaced, |_| true) {
            parts.push(format!("{files}: changed again since, and left as it is"));
        }
        format!(
            "{who} removed or reset finished work of other tasks that is not committed yet: {}",
            parts.join("; ")
        )
    }
}

/// `out.txt (task a), lib.rs and 3 others (task b)`
fn named(
    files: &BTreeMap<String, Vec<String>>,
    is_meant: impl Fn(&&String) -> bool,
) -> Option<String> {
    let rows = files.iter().filter_map(|(task, paths)| {
        let paths: Vec<&str> = paths.iter().filter(&is_meant).map(String::as_str).collect();
        let more = match paths.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = paths[..paths.len().min(NAMED)].join(", ");
        (!paths.is_empty()).then(|| format!("{shown}{more} (task {task})"))
    });
    let rows: Vec<String> = rows.collect();
    (!rows.is_empty()).then(|| rows.join(", "))
}
