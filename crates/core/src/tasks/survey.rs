//! Where every piece of work of task loops is: on branches, in worktrees, waiting to land.

use std::path::{Path, PathBuf};

use descartes_kernel::tasks::KeptTree;
use descartes_store::layout::StateRoot;
use serde::Serialize;

use super::git::Repo;
use super::git_error::GitError;
use super::source::SourceError;
use super::trees::{folders_of, kept_in};
use crate::worktree::Git;

/// A piece of work that is not in the user's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkItem {
    /// The tag and task.
    pub what: String,
    /// Where it is.
    #[serde(flatten)]
    pub at: WorkLocation,
}

/// Where a piece of work is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum WorkLocation {
    /// On a task's own branch.
    Branch {
        /// The branch.
        name: String,
        /// Commits that HEAD does not have.
        commits: u32,
    },
    /// Proven, and waiting to land.
    Ready {
        /// The branch.
        name: String,
        /// Commits that HEAD does not have.
        commits: u32,
    },
    /// Proven and put together, in a loop that is not over.
    Merged {
        /// Commits that HEAD does not have.
        commits: u32,
    },
    /// In a worktree.
    Worktree {
        /// The worktree.
        path: PathBuf,
        /// The disk it uses.
        bytes: u64,
        /// Files with changes in no commit.
        changed: u32,
        /// What it holds that is found nowhere else, where it is kept for that.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        holds: Vec<String>,
    },
}

/// Looks at the repository around `dir`.
pub fn survey(dir: &Path, root: &StateRoot) -> Result<Vec<WorkItem>, SourceError> {
    look(dir, root).map_err(|error| SourceError::Content {
        path: dir.to_owned(),
        message: error.to_string(),
        hint: "work of task loops is kept in git".to_owned(),
    })
}

fn look(dir: &Path, root: &StateRoot) -> Result<Vec<WorkItem>, GitError> {
    let repo = Repo::at(dir, &Git::default());
    let refs = repo.ask(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/heads/descartes",
        "refs/heads/descartes-kept",
        "refs/heads/descartes-kept-[0-9]*/**",
        "refs/descartes",
    ])?;
    let ahead = |name: &str| -> Result<u32, GitError> {
        let count = repo.ask(&["rev-list", "--count", &format!("HEAD..{name}")])?;
        Ok(count.parse().unwrap_or(0))
    };
    let mut pieces = Vec::new();
    for full in refs.lines() {
        if full.starts_with("refs/descartes/") && full.contains("/ours/") {
            // Which commits are ours, and no work in themselves.
            continue;
        }
        let commits = ahead(full)?;
        let name = full.trim_start_matches("refs/heads/");
        let what = name
            .trim_start_matches("refs/")
            .trim_start_matches("descartes/")
            .to_owned();
        let whole = full.starts_with("refs/heads/descartes/") && !what.contains('/');
        let ready = what.strip_suffix("/=ready").or(whole.then_some(&*what));
        let at = if let Some(tag) = ready.or(what.strip_suffix("/ready")) {
            let (name, what) = (name.to_owned(), tag.to_owned());
            pieces.push(WorkItem {
                what,
                at: WorkLocation::Ready { name, commits },
            });
            continue;
        } else if full.starts_with("refs/descartes/") {
            if commits == 0 || !full.ends_with("/merged") {
                continue;
            }
            WorkLocation::Merged { commits }
        } else {
            let name = name.to_owned();
            WorkLocation::Branch { name, commits }
        };
        pieces.push(WorkItem { what, at });
    }
    let listed = repo.ask(&["worktree", "list", "--porcelain"])?;
    let folder = root.worktrees();
    let paths = listed
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    let top = repo.top().unwrap_or_default();
    let kept: Vec<KeptTree> = folders_of(&top, &folder)
        .iter()
        .flat_map(|folder| kept_in(folder))
        .collect();
    let listed: Vec<PathBuf> = paths
        .map(PathBuf::from)
        .filter(|path| path.starts_with(&folder))
        .collect();
    // A folder that is no worktree any more is kept as well.
    let others = kept.iter().map(|tree| tree.path.clone());
    let others = others.filter(|path| !listed.contains(path));
    for path in listed.iter().cloned().chain(others) {
        let holds = kept.iter().find(|tree| tree.path == path);
        let holds = holds.map(|tree| tree.holds.clone()).unwrap_or_default();
        let inside = path.strip_prefix(&folder).unwrap_or(&path);
        let changed = repo
            .beside(&path)
            .ask(&["status", "--porcelain", "--ignore-submodules=dirty"])
            .map_or(0, |out| out.lines().count() as u32);
        pieces.push(WorkItem {
            what: inside.to_string_lossy().into_owned(),
            at: WorkLocation::Worktree {
                bytes: size_of(&path),
                path,
                changed,
                holds,
            },
        });
    }
    Ok(pieces)
}

fn size_of(path: &Path) -> u64 {
    let Ok(meta) = fs_err::symlink_metadata(path) else {
        return 0;
    };
    if !meta.is_dir() {
        return meta.len();
    }
    let entries = fs_err::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}
