//! Work in git worktrees outside the repository: a slot for each task at work, and one tree in
//! which finished work comes together before it lands in the user's checkout.
//!
//! Everything that must survive is a ref of the user's repository:
//! `refs/heads/descartes/TAG/ID` holds a task's work, `refs/descartes/TAG/merged` what was merged
//! and proven, `refs/descartes/TAG/waves` the last commit of a wave (or what the loop began
//! from). Each is moved only after what it points to is complete, so that a host that dies
//! anywhere begins the same step again.

mod landing;
mod marks;
mod slots;
mod workplace;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use descartes_kernel::tasks::TasksConfig;

use super::git::Repo;
use super::launch::file_name;
use super::locks::{Locks, Ours};
use super::place::Work;
use super::shell::Stopper;
use crate::host::{HostError, HostSettings, git_of};

type Done<T> = Result<T, String>;

/// The worktrees of a task loop.
pub(in crate::tasks) struct Trees {
    user: Repo,
    /// The branch that was checked out when the loop began; work lands nowhere else.
    branch: Option<String>,
    /// Where in the repository the loop works.
    prefix: PathBuf,
    folder: PathBuf,
    tag: String,
    ref_tag: String,
    /// Paths within the repository that are in no commit of ours.
    shielded: Vec<String>,
    squash: bool,
    marks_waves: bool,
    barrier: bool,
    copy: Vec<String>,
    setup: Option<String>,
    settings: HostSettings,
    /// Worktrees are made and removed one at a time.
    making: Mutex<()>,
    /// Ends the commands that make worktrees ready.
    setups: Mutex<Vec<Stopper>>,
}

impl Trees {
    /// Looks at the repository around `dir`, and writes nothing.
    pub(in crate::tasks) fn open(
        dir: &Path,
        settings: &HostSettings,
        shielded: &[PathBuf],
        config: &TasksConfig,
    ) -> Result<Self, HostError> {
        let here = Repo::at(dir, &git_of(settings));
        let top = here
            .ask(&["rev-parse", "--show-toplevel"])
            .map_err(|words| {
                HostError::refused(
                    format!(
                        "worktrees need git: {}",
                        words.trim_start_matches("git rev-parse: ")
                    ),
                    "give --in-place to work in this folder without git",
                )
            })?;
        let top = PathBuf::from(top);
        let user = here.beside(&top);
        let refuse =
            |words: String| HostError::refused(words, "give --in-place, or mend it in git");
        if user.commit_of("HEAD").map_err(refuse)?.is_none() {
            return Err(HostError::refused(
                "worktrees need a commit to start from, and this repository has none",
                "make a first commit, or give --in-place",
            ));
        }
        let tag = config.source.tag();
        let ref_tag = file_name(&tag);
        let hash = short_hash(&top);
        let folder = settings.root.worktrees().join(format!("{hash}-{ref_tag}"));
        let ours = ours(&user, &folder, &ref_tag).map_err(refuse)?;
        let user = user.with_locks(Locks::new(ours));
        let inside = |path: &PathBuf| {
            let path = fs_err::canonicalize(path).unwrap_or_else(|_| path.clone());
            Some(path.strip_prefix(&top).ok()?.to_string_lossy().into_owned())
        };
        let prefix = dir.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        Ok(Self {
            branch: user.branch().map_err(refuse)?,
            user,
            prefix,
            folder,
            tag,
            ref_tag,
            shielded: shielded
                .iter()
                .filter_map(inside)
                .filter(|p| !p.is_empty())
                .collect(),
            squash: config.auto_commit_waves && config.wave_barrier,
            marks_waves: config.auto_commit_waves && !config.wave_barrier,
            barrier: config.wave_barrier,
            copy: config.worktree_copy.clone(),
            setup: config.worktree_setup.clone(),
            settings: settings.clone(),
            making: Mutex::new(()),
            setups: Mutex::default(),
        })
    }

    /// What a person should know before work begins in worktrees.
    pub(in crate::tasks) fn notices(&self) -> Vec<String> {
        let submodules = self.user.dir.join(".gitmodules").is_file();
        let words = "this repository has submodules, and git leaves them empty in worktrees: \
            set worktree_setup = \"git submodule update --init --recursive\" in the config";
        (submodules && self.setup.is_none())
            .then(|| words.to_owned())
            .into_iter()
            .collect()
    }

    pub(super) fn merged_ref(&self) -> String {
        format!("refs/descartes/{}/merged", self.ref_tag)
    }

    pub(super) fn waves_ref(&self) -> String {
        format!("refs/descartes/{}/waves", self.ref_tag)
    }

    pub(super) fn branch_of(&self, work: &Work) -> String {
        format!("descartes/{}/{}", self.ref_tag, file_name(&work.id))
    }

    /// Where finished work waits that cannot land, while tasks have branches of their own: git has
    /// no room for a branch `descartes/TAG` beside branches under that name.
    pub(super) fn ready_branch(&self) -> String {
        format!("descartes/{}/=ready", self.ref_tag)
    }

    /// Where it waits once no task has one.
    pub(super) fn whole_branch(&self) -> String {
        format!("descartes/{}", self.ref_tag)
    }

    /// What was merged so far; at first, the user's commit.
    pub(super) fn merged(&self) -> Done<String> {
        if let Some(commit) = self.user.commit_of(&self.merged_ref())? {
            return Ok(commit);
        }
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        self.move_refs(&[(self.merged_ref(), &head), (self.waves_ref(), &head)])?;
        Ok(head)
    }

    /// The same, once commits that the user made since our last landing are taken up.
    pub(super) fn caught_up(&self) -> Done<String> {
        let merged = self.merged()?;
        let head = self.user.commit_of("HEAD")?.ok_or("there is no commit")?;
        let moved = head != merged && self.user.is_ancestor(&merged, &head)?;
        if moved && self.user.branch()? == self.branch {
            self.move_refs(&[(self.merged_ref(), &head), (self.waves_ref(), &head)])?;
            return Ok(head);
        }
        Ok(merged)
    }

    pub(super) fn waves(&self) -> Done<String> {
        let merged = self.merged()?;
        Ok(self.user.commit_of(&self.waves_ref())?.unwrap_or(merged))
    }

    pub(super) fn move_refs(&self, refs: &[(String, &str)]) -> Done<()> {
        for (name, commit) in refs {
            self.user.quiet(&["update-ref", name, commit])?;
        }
        Ok(())
    }
}

/// Locks that nobody but us has a reason to make.
fn ours(user: &Repo, folder: &Path, ref_tag: &str) -> Done<Ours> {
    let common = user.ask(&["rev-parse", "--git-common-dir"])?;
    let common = user.dir.join(common);
    // As git itself and the kernel name them.
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let common = real(&common);
    let refs = ["refs/heads/descartes", "refs/descartes"];
    Ok(Ours {
        refs: refs.map(|name| common.join(name).join(ref_tag)).to_vec(),
        trees: folder.to_owned(),
        folders: vec![real(&user.dir), common.clone(), real(folder)],
    })
}

fn short_hash(path: &Path) -> String {
    use sha2::{Digest, Sha256};
    use std::os::unix::ffi::OsStrExt;
    let hash = Sha256::digest(path.as_os_str().as_bytes());
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
