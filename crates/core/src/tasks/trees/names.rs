//! The name that a loop has in git's refs, which all checkouts of a repository share.
//!
//! `descartes-loops` in git's own folder holds a lock for each tag, which a loop of it holds while it
//! runs, and for each name under which there are refs, whose they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::tasks::{RefOwner, TakenName, TaskFile, TreesOf, choose_name, name_number};
use descartes_store::task_file::RunLock;

use super::files::{is_gone, write_note};
use super::{Done, GitError, Trees, short_hash};
use crate::host::{HostError, HostSettings};
use crate::tasks::git::Repo;

/// In the folder that all worktrees of a repository share.
const FOLDER: &str = "descartes-loops";

/// Whose a repository is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tasks) enum Sharing {
    /// The user's, with any number of checkouts and loops.
    Users,
    /// A worker's clone for one loop.
    OneLoop,
}

/// The name of a loop in refs.
#[derive(Debug, Default)]
pub(super) struct RefNames {
    pub(super) name: String,
    pub(super) notice: Option<String>,
    /// Where it is written down whose the name is, and whose.
    owner: Option<(PathBuf, RefOwner)>,
    _lock: Option<RunLock>,
}

impl RefNames {
    /// A name that nobody else can have.
    pub(super) fn alone(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Writes down whose the name is, and for which branch.
    fn keep_for(&self, branch: Option<String>) -> std::io::Result<()> {
        let Some((path, owner)) = &self.owner else {
            return Ok(());
        };
        let owner = owner.clone();
        write_owner(path, &RefOwner { branch, ..owner })
    }

    /// There are no refs under the name any more: others may have it.
    fn release(&self) {
        if let Some((path, _)) = &self.owner {
            drop(fs_err::remove_file(path));
        }
    }
}

/// A loop that wants a name.
pub(super) struct Claimant<'a> {
    pub(super) user: &'a Repo,
    pub(super) settings: &'a HostSettings,
    pub(super) source: &'a TaskFile,
    pub(super) config: &'a IterativeLoopConfig,
    /// The folder that it works in.
    pub(super) dir: &'a Path,
}

fn real(path: &Path) -> PathBuf {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Claimant<'_> {
    /// Takes the tag for this loop, and finds the name that it has in refs; `name` is the tag as one.
    /// Whoever is refused later has changed nothing.
    pub(super) fn take(&self, name: &str) -> Result<RefNames, HostError> {
        let refuse = |error: GitError| {
            HostError::refused(error.to_string(), "mend what git says, then start again")
        };
        let common = real(&self.user.common_dir().map_err(refuse)?);
        let me = self.owner(&common).map_err(refuse)?;
        let folder = common.join(FOLDER);
        let lock = hold(
            &folder.join(format!("{name}.lock")),
            &me,
            &self.source.tag(),
        )?;
        let taken = self.taken(name, &folder).map_err(refuse)?;
        let chosen = choose_name(name, &me, &taken);
        let path = folder.join(format!("{}.json", chosen.name));
        Ok(RefNames {
            name: chosen.name,
            notice: chosen.notice,
            owner: Some((path, me)),
            _lock: Some(lock),
        })
    }

    fn owner(&self, common: &Path) -> Done<RefOwner> {
        let git_dir = real(&self.user.git_dir()?);
        let path = match self.source {
            // The same tasks may be in another file there, of another format.
            TaskFile::Scud { file, .. } => file.parent().unwrap_or(file),
            other => other.path(),
        };
        // A tracker's path names no file, but it is in a folder.
        let path = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if !path.exists() => real(folder).join(name),
            _ => real(path),
        };
        let top = real(&self.user.dir);
        Ok(RefOwner {
            loop_id: self.settings.mark(),
            checkout: text(git_dir.strip_prefix(common).unwrap_or(&git_dir)),
            source: text(path.strip_prefix(top).unwrap_or(&path)),
            branch: self.user.branch()?,
            folder: self.dir.to_owned(),
            state_file: self.config.state_file.clone(),
            pid: std::process::id(),
        })
    }

    /// The names of a tag that have refs.
    fn taken(&self, tag: &str, folder: &Path) -> Done<Vec<TakenName>> {
        let format = "--format=%(refname)";
        let refs = [
            "for-each-ref",
            format,
            "refs/heads/descartes",
            "refs/descartes",
        ];
        let refs = self.user.ask(&refs)?;
        let names = refs.lines().filter_map(|name| {
            let name = name.strip_prefix("refs/")?;
            let name = name.strip_prefix("heads/").unwrap_or(name);
            name.strip_prefix("descartes/")?.split('/').next()
        });
        let of_tag = names.filter(|name| name_number(tag, name).is_some());
        let of_tag: BTreeSet<&str> = of_tag.collect();
        let taken = of_tag.into_iter().map(|name| {
            let path = folder.join(format!("{name}.json"));
            // One that cannot be read has an owner all the same.
            let owner = match fs_err::read(&path) {
                Err(error) if is_gone(&error) => None,
                text => serde_json::from_slice(&text?).ok(),
            };
            Ok(TakenName {
                trees: match owner {
                    Some(_) => TreesOf::Nobody,
                    None => self.trees_of(name)?,
                },
                name: name.to_owned(),
                owner,
            })
        });
        taken.collect()
    }

    /// Whose worktrees there are for a name.
    fn trees_of(&self, name: &str) -> Done<TreesOf> {
        let worktrees = self.settings.root.worktrees();
        let has_trees = |top: &Path| {
            let folder = format!("{}-{name}", short_hash(top));
            worktrees.join(folder).exists()
        };
        if has_trees(&self.user.dir) {
            return Ok(TreesOf::Us);
        }
        let listed = self.user.ask(&["worktree", "list", "--porcelain"])?;
        let paths = listed
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        let mut others = paths.map(Path::new);
        Ok(match others.any(has_trees) {
            true => TreesOf::Another,
            false => TreesOf::Nobody,
        })
    }
}

/// Holds the lock of a tag, or says who does.
fn hold(path: &Path, me: &RefOwner, tag: &str) -> Result<RunLock, HostError> {
    let text = serde_json::to_string(me).unwrap_or_default();
    let lock = RunLock::acquire(path, &text)?;
    lock.ok_or_else(|| {
        let (message, hint) = match read_owner(path) {
            Some(holder) => holder.refusal(tag),
            None => (
                format!("another run is already working on the tag `{tag}` in this repository"),
                "wait for it, or end it: descartes loop list --all".to_owned(),
            ),
        };
        HostError::refused(message, hint)
    })
}

fn read_owner(path: &Path) -> Option<RefOwner> {
    serde_json::from_slice(&fs_err::read(path).ok()?).ok()
}

/// Puts it in the place of what is there as a whole.
fn write_owner(path: &Path, owner: &RefOwner) -> std::io::Result<()> {
    let new = path.with_extension("json.new");
    write_note(&new, serde_json::to_vec(owner)?)?;
    fs_err::rename(&new, path)
}

impl Trees {
    /// The loop begins: from now on what is found under its name is its own. Its work lands on the branch
    /// of its beginning, whatever is checked out.
    pub(super) fn keep_name(&self) -> Done<()> {
        Ok(self.names.keep_for(self.landing_branch())?)
    }

    /// Gives the name back where nothing of the loop is left under it.
    pub(super) fn release_name(&self) {
        let heads = format!("refs/heads/descartes/{}", self.ref_tag);
        let refs = format!("refs/descartes/{}", self.ref_tag);
        let args = ["for-each-ref", "--count=1", "--format=x", &heads, &refs];
        if self.user.ask(&args).is_ok_and(|left| left.is_empty()) {
            self.names.release();
        }
    }
}
