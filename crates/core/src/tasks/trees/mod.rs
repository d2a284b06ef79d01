//! Work in git worktrees outside the repository: a slot for each task at work, and one tree in
//! which finished work comes together before it lands in the user's checkout.
//!
//! Everything that must survive is a ref of the user's repository:
//! `refs/heads/descartes/TAG/ID` holds a task's work, `refs/descartes/TAG/ours/ID` which commit
//! there is ours, `refs/descartes/TAG/merged` what was merged and proven,
//! `refs/descartes/TAG/waves` the last commit of a wave (or what the loop began from). Each is
//! moved only after what it points to is complete, so that a host that dies anywhere begins the
//! same step again.

mod beginning;
mod brought;
mod checkout_files;
mod copying;
mod files;
mod half_landed;
mod integration;
mod kept;
mod landing;
mod leftovers;
mod links;
mod marks;
mod names;
mod put_back;
mod refs;
mod rescue;
mod self_ignored;
mod shared;
mod slots;
mod stash_list;
mod stash_watch;
mod stashes;
mod statuses;
mod target;
mod train;
mod unsaved;
mod wire;
mod workplace;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::sandbox::SandboxConfig;
use descartes_kernel::tasks::{
    Case, Landing, ProvenTree, TaskFile, TaskMarks, TasksConfig, ref_name,
};

use super::git::Repo;
use super::git_error::GitError;
use super::launch::file_name;
use super::locks::{Locks, Ours};
use super::place::{Gates, Work};
use super::shared_settings::SharedSettings;
use super::shell::RunningShells;
use crate::host::confined_programs::with_confined_programs;
use crate::host::{HostError, HostSettings, git_of};

pub(in crate::tasks) use files::is_gone;
use integration::LockPatience;
pub(in crate::tasks) use kept::kept_in;
pub(in crate::tasks) use names::Sharing;
use names::{Claimant, RefNames};
use stashes::Stashes;

type Done<T> = Result<T, GitError>;

/// How often waits look whether somebody wants the loop to end.
const LOOK: Duration = Duration::from_millis(50);

/// Trees on which the gates were green.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    known: Vec<ProvenTree>,
    /// Those of them that the journal does not have yet.
    new: Vec<ProvenTree>,
}

/// The worktrees of a task loop.
pub(in crate::tasks) struct Trees {
    user: Repo,
    /// The branch that was checked out when the loop began; work lands nowhere else.
    branch: Mutex<Option<String>>,
    /// The commit of that branch which everything merged is built on.
    base: Mutex<Option<String>>,
    /// Commits that tasks may be built on.
    earlier: Mutex<target::Earlier>,
    /// What an earlier host had merged and not landed, until that was looked for.
    recalled: Mutex<Option<String>>,
    /// Whether it is gone.
    lost: AtomicBool,
    /// Settings of the repository, as the loop found them.
    shared: OnceLock<SharedSettings>,
    /// Where in the repository the loop works.
    prefix: PathBuf,
    folder: PathBuf,
    /// The folder that all worktrees share, once git was asked.
    common: OnceLock<PathBuf>,
    tag: String,
    ref_tag: String,
    names: RefNames,
    /// The tasks, and their file within the repository, where its statuses are committed.
    source: TaskFile,
    task_file: Option<String>,
    /// It was said why they are not.
    said_statuses: AtomicBool,
    /// Paths within the repository that are in no commit of ours.
    shielded: Vec<String>,
    squash: bool,
    marks_waves: bool,
    barrier: bool,
    copy: Vec<String>,
    setup: Option<String>,
    settings: HostSettings,
    /// What confines setups and hooks, which run code of all tasks.
    whole: Arc<Mutex<IterativeLoopConfig>>,
    /// Folders that may be taken from a slot where gates are red without them.
    caches: Vec<String>,
    case: Case,
    /// Worktrees are made, removed and given branches one at a time.
    turn: Mutex<()>,
    /// Merges and landings come one at a time.
    integrating: Mutex<()>,
    /// What was merged, as this host left it.
    known: Mutex<Option<String>>,
    /// What this host put onto which branch.
    put: Mutex<HashMap<String, String>>,
    proofs: Mutex<Proofs>,
    /// Ignored files in the integration worktree, as setups and gates left them.
    leftovers: Mutex<Option<leftovers::Leftovers>>,
    /// Where each piece of work was proven last.
    slots: Mutex<HashMap<String, PathBuf>>,
    stopped: AtomicBool,
    /// Ends the commands that make worktrees ready.
    setups: RunningShells,
    /// Files of setups that an agent changed, once that was said.
    said_brought: Mutex<BTreeSet<PathBuf>>,
    /// Named pipes that an agent left in a slot and that went before its gates.
    pipes: Mutex<HashMap<String, String>>,
    stashes: Stashes,
    /// Work that was stacked last.
    stack: Mutex<Option<train::Stack>>,
}

impl Trees {
    /// Looks at the repository around `dir`, and writes nothing but the lock of its tag.
    pub(in crate::tasks) fn open(
        dir: &Path,
        settings: &HostSettings,
        shielded: &[PathBuf],
        config: &TasksConfig,
        whole: &IterativeLoopConfig,
        sharing: Sharing,
    ) -> Result<Self, HostError> {
        let confined = Arc::new(Mutex::new(whole.clone()));
        let git = with_confined_programs(git_of(settings), settings, Arc::clone(&confined));
        let here = Repo::at(dir, &git);
        let top = here.top().map_err(|error| {
            HostError::refused(
                format!("worktrees need git: {error}"),
                "use --in-place to work in this folder without git",
            )
        })?;
        let refuse = |error: GitError| {
            let hint = error.hint();
            let hint = hint.unwrap_or_else(|| "use --in-place, or fix it in git".to_owned());
            HostError::refused(error.to_string(), hint)
        };
        let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !real(dir).starts_with(real(&top)) {
            return Err(HostError::refused(
                format!(
                    "the work tree of this repository is elsewhere, as set by core.worktree: {}",
                    top.display()
                ),
                "go there, or: git config --unset core.worktree",
            ));
        }
        let git_dir = here
            .path(&["rev-parse", "--absolute-git-dir"])
            .map_err(refuse)?;
        let user = here.pinned(&top, &git_dir);
        if user
            .commit_of("refs/heads/descartes")
            .map_err(refuse)?
            .is_some()
        {
            return Err(HostError::refused(
                "work on tasks is kept on branches descartes/…, which git cannot create while \
                 there is a branch named descartes",
                "rename that branch: git branch -m descartes descartes-old; or use --in-place",
            ));
        }
        if user.commit_of("HEAD").map_err(refuse)?.is_none() {
            return Err(HostError::refused(
                "worktrees need a commit to start from, and this repository has none",
                "make a first commit, or use --in-place",
            ));
        }
        let tag = config.source.tag();
        let folded = user.ask(&["config", "--type=bool", "--get", "core.ignoreCase"]);
        let case = match folded.as_deref() {
            Ok("true") => Case::Ignored,
            _ => Case::Differs,
        };
        let ref_tag = ref_name(&tag, case);
        // A loop of an earlier version goes on where it was.
        let earlier = file_name(&tag);
        let has_refs = |tag: &str| user.commit_of(&format!("refs/descartes/{tag}/merged"));
        let ref_tag = match earlier != ref_tag
            && has_refs(&ref_tag).map_err(refuse)?.is_none()
            && has_refs(&earlier).map_err(refuse)?.is_some()
        {
            true => earlier,
            false => ref_tag,
        };
        let claimant = Claimant {
            user: &user,
            settings,
            source: &config.source,
            config: whole,
            dir,
        };
        let names = match sharing {
            Sharing::Users => claimant.take(&ref_tag)?,
            Sharing::OneLoop => RefNames::alone(ref_tag),
        };
        let ref_tag = names.name.clone();
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
            branch: Mutex::new(user.branch().map_err(refuse)?),
            stashes: Stashes::new(&user, &folder, &ref_tag),
            stack: Mutex::default(),
            common: OnceLock::new(),
            base: Mutex::default(),
            earlier: Mutex::default(),
            recalled: Mutex::default(),
            lost: AtomicBool::new(false),
            shared: OnceLock::new(),
            user,
            prefix,
            folder,
            tag,
            ref_tag,
            names,
            task_file: inside(&config.source.path().to_owned()).filter(|path| {
                let is_file = !matches!(config.source, TaskFile::Tracker(_));
                config.auto_commit_waves && is_file && !path.is_empty()
            }),
            source: config.source.clone(),
            said_statuses: AtomicBool::new(false),
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
            whole: confined,
            caches: config.gate_caches.clone(),
            case,
            turn: Mutex::new(()),
            integrating: Mutex::new(()),
            known: Mutex::default(),
            put: Mutex::default(),
            proofs: Mutex::default(),
            leftovers: Mutex::default(),
            slots: Mutex::default(),
            stopped: AtomicBool::new(false),
            setups: RunningShells::default(),
            said_brought: Mutex::default(),
            pipes: Mutex::default(),
        })
    }

    /// What a person should know before work begins in worktrees.
    pub(in crate::tasks) fn notices(&self) -> Vec<String> {
        let submodules = self.user.dir.join(".gitmodules").is_file();
        let message = "this repository has submodules, which git leaves empty in worktrees: set \
            worktree_setup = \"git submodule update --init --recursive\" in the config";
        let submodules = (submodules && self.setup.is_none()).then(|| message.to_owned());
        self.names
            .notice
            .iter()
            .cloned()
            .chain(submodules)
            .collect()
    }

    /// The name that an id has in refs.
    pub(super) fn name_of(&self, id: &str) -> String {
        let (name, earlier) = (ref_name(id, self.case), file_name(id));
        let is_there = |name: &str| {
            let name = format!("refs/heads/descartes/{}/{name}", self.ref_tag);
            matches!(self.user.commit_of(&name), Ok(Some(_)))
        };
        // Earlier versions gave odd ids other names.
        match earlier != name && is_there(&earlier) && !is_there(&name) {
            true => earlier,
            false => name,
        }
    }

    /// The folder that all worktrees of the repository share.
    pub(super) fn common_dir(&self) -> Done<PathBuf> {
        if let Some(known) = self.common.get() {
            return Ok(known.clone());
        }
        let common = self.user.common_dir()?;
        let common = fs_err::canonicalize(&common).unwrap_or(common);
        Ok(self.common.get_or_init(|| common).clone())
    }

    /// Waits a little; false where somebody wants the loop to end.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_stopped() {
            std::thread::sleep(LOOK.min(time));
        }
        !self.is_stopped()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Worktrees and branches are changed one at a time.
    /// How setups and hooks are confined.
    pub(super) fn confinement(&self) -> IterativeLoopConfig {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.clone()
    }

    /// Confines them at least as far as an attempt whose work they run.
    pub(in crate::tasks) fn confine_more(&self, sandbox: &SandboxConfig) {
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.sandbox.ask_as(sandbox);
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn integrating(&self) -> MutexGuard<'_, ()> {
        self.integrating
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Option<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn proofs(&self) -> MutexGuard<'_, Proofs> {
        self.proofs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn slots_of(&self) -> MutexGuard<'_, HashMap<String, PathBuf>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree in which a piece of work was proven last.
    pub(super) fn slot_of(&self, work: &Work) -> Option<PathBuf> {
        let known = self.slots_of().get(&work.id).cloned();
        known.filter(|path| path.join(".git").exists())
    }

    pub(super) fn is_proven(&self, tree: &str, gates: &[String]) -> bool {
        let proofs = self.proofs();
        proofs.known.iter().any(|proof| proof.proves(tree, gates))
    }

    pub(super) fn add_proof(&self, proof: ProvenTree) {
        let mut proofs = self.proofs();
        proofs.known.push(proof.clone());
        proofs.new.push(proof);
    }

    /// Proofs that the journal does not have yet.
    pub(super) fn new_proofs(&self) -> Vec<ProvenTree> {
        std::mem::take(&mut self.proofs().new)
    }

    /// Lands, or says why not.
    pub(super) fn land_or_wait(
        &self,
        message: &str,
        gates: Gates<'_>,
        marks: &TaskMarks,
        patience: LockPatience,
    ) -> Option<Landing> {
        let landed = self.land(message, gates, marks, patience);
        let landed = landed.or_else(|error| {
            error.log("landing");
            self.not_landed(&self.merged()?, &error, &error.to_string())
        });
        landed.ok().and_then(|(_, landing)| landing)
    }
}

/// Locks that nobody but us has a reason to make.
fn ours(user: &Repo, folder: &Path, ref_tag: &str) -> Done<Ours> {
    let common = user.common_dir()?;
    // As git itself and the kernel name them.
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let common = real(&common);
    let refs = ["refs/heads/descartes", "refs/descartes"];
    Ok(Ours {
        refs: refs.map(|name| common.join(name).join(ref_tag)).to_vec(),
        trees: folder.to_owned(),
        control: folder.join("control"),
        folders: vec![real(&user.dir), common.clone(), real(folder)],
    })
}

/// The folders of worktrees that a repository has.
pub(in crate::tasks) fn folders_of(top: &Path, worktrees: &Path) -> Vec<PathBuf> {
    let start = format!("{}-", short_hash(top));
    let entries = fs_err::read_dir(worktrees).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
        .map(|entry| entry.path())
        .collect()
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
