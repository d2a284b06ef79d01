//! A worker's clones: a mirror for each repository, and for each task loop a repository over it in whose
//! worktrees its agents work.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descartes_bridge::Engine;
use sha2::{Digest, Sha256};
use tracing::info;

use super::git_remote::{GitRemote, offer_refs};
use super::messages::{GitParcel, OfferMessage};
use crate::host::{HostSettings, git_of};
use crate::tasks::git::Repo;
use crate::tasks::git_error::GitError;
use crate::tasks::launch::file_name;
use crate::tasks::trees::{Sharing, Trees};

/// In the folder of a repository: what its clones share.
const MIRROR: &str = "mirror.git";
/// In the folder of a clone: written whenever an attempt uses it, with the folder of its worktrees.
const USED: &str = "used";

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.is_dir()).collect()
}

/// Whether a repository has the files without which git takes it for none, or cannot write: git makes those again
/// that somebody removed.
fn is_whole(git_dir: &Path) -> bool {
    let folders = ["objects/info", "objects/pack", "refs"];
    git_dir.join("HEAD").is_file() && folders.iter().all(|name| git_dir.join(name).is_dir())
}

/// Names of commits that are gone can neither be read nor made again.
fn drop_broken_refs(repo: &Repo) -> Result<(), GitError> {
    let listed = repo.ask(&["for-each-ref", "--format=%(objectname) %(refname)"])?;
    let named = listed.lines().filter_map(|line| line.split_once(' '));
    let named: Vec<(&str, &str)> = named.collect();
    if named.is_empty() {
        return Ok(());
    }
    let asked: String = named.iter().map(|(hash, _)| format!("{hash}\n")).collect();
    let found = repo.fed(&["cat-file", "--batch-check"], asked.as_bytes())?;
    let gone = found
        .lines()
        .filter_map(|line| line.strip_suffix(" missing"));
    let gone: BTreeSet<&str> = gone.collect();
    let broken = named.iter().filter(|(hash, _)| gone.contains(hash));
    let script: String = broken.map(|(_, name)| format!("delete {name}\n")).collect();
    match script.is_empty() {
        true => Ok(()),
        false => repo.update_refs(&script),
    }
}

/// How long ago it was written.
pub(super) fn age(path: &Path) -> Option<Duration> {
    let written = fs_err::metadata(path).ok()?.modified().ok()?;
    written.elapsed().ok()
}

/// Why there is no place for an attempt on this machine.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// The repository by which commits travel does not give them.
    #[error("cannot fetch the work: {0}")]
    Remote(String),
    #[error("{0}")]
    Local(String),
}

impl From<String> for PlaceError {
    fn from(message: String) -> Self {
        Self::Local(message)
    }
}

impl From<&str> for PlaceError {
    fn from(message: &str) -> Self {
        Self::Local(message.to_owned())
    }
}

/// A clone that attempts work in.
struct OpenClone {
    trees: Arc<Trees>,
    /// When something went wrong there: somebody may have removed or damaged it.
    suspect_since: Option<Instant>,
    /// When an attempt was last seen to use it.
    used: Instant,
}

impl OpenClone {
    /// Whether it is opened anew, and what is missing made again: not while another attempt is at work there.
    fn is_reopened(&self) -> bool {
        self.suspect_since.is_some() && !self.is_in_use()
    }

    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.trees) > 1
    }
}

/// Where a worker keeps what it works on.
pub(super) struct Clones {
    folder: PathBuf,
    settings: HostSettings,
    engine: Arc<dyn Engine>,
    /// By task loop. Held for a moment alone.
    open: Mutex<HashMap<String, OpenClone>>,
    /// By the folder of a repository: held over everything that makes, fills or removes clones of it. Nobody waits
    /// for what another repository takes.
    repositories: Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>,
    /// The worker's own way to make worktrees ready.
    copy: Vec<String>,
    setup: Option<String>,
}

impl Clones {
    pub(super) fn new(
        folder: PathBuf,
        settings: HostSettings,
        engine: Arc<dyn Engine>,
        copy: Vec<String>,
        setup: Option<String>,
    ) -> Self {
        Self {
            folder,
            settings,
            engine,
            open: Mutex::default(),
            repositories: Mutex::default(),
            copy,
            setup,
        }
    }

    /// Where all of it lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where what belongs to a task loop lies.
    pub(super) fn folder_of(&self, offer: &OfferMessage) -> PathBuf {
        self.project(offer).join(file_name(&offer.loop_id))
    }

    fn project(&self, offer: &OfferMessage) -> PathBuf {
        let hash = Sha256::digest(offer.repository.as_bytes());
        let hash: String = hash.iter().take(6).map(|b| format!("{b:02x}")).collect();
        self.folder.join(hash)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, OpenClone>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_of(&self, project: &Path) -> Arc<Mutex<()>> {
        let known = self.repositories.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        known.entry(project.to_owned()).or_default().clone()
    }

    /// Removes what no attempt used for so long, and of which none of these files is needed any more.
    pub(super) fn remove_unused(&self, limit: Duration, needed: &[PathBuf]) {
        for project in folders_in(&self.folder) {
            let lock = self.lock_of(&project);
            // While one is made or filled there is time.
            let Ok(_alone) = lock.try_lock() else {
                continue;
            };
            let mut used = false;
            for clone in folders_in(&project) {
                let is_clone = clone.join(USED).is_file();
                let is_needed = needed.iter().any(|file| file.starts_with(&clone));
                let is_old = age(&clone.join(USED)).is_some_and(|age| age > limit);
                match is_clone && is_old && !is_needed && self.give_up(&clone) {
                    true => self.remove(&project.join(MIRROR), &clone),
                    false => used |= is_clone,
                }
            }
            // The mirror is for its clones alone.
            let is_mirror = project.join(MIRROR).is_dir();
            if is_mirror && !used && age(&project).is_some_and(|age| age > limit) {
                info!(folder = %project.display(), "removing an unused mirror");
                drop(fs_err::remove_dir_all(&project));
            }
        }
    }

    /// Closes a clone, unless an attempt is at work there.
    fn give_up(&self, clone: &Path) -> bool {
        let mut open = self.open();
        let is_it = |loop_id: &str| clone.file_name() == Some(file_name(loop_id).as_ref());
        let loop_id = open.keys().find(|loop_id| is_it(loop_id)).cloned();
        match loop_id {
            Some(loop_id) if open.get(&loop_id).is_some_and(OpenClone::is_in_use) => false,
            Some(loop_id) => open.remove(&loop_id).is_some(),
            None => true,
        }
    }

    /// With what the mirror keeps for it.
    fn remove(&self, mirror: &Path, clone: &Path) {
        info!(folder = %clone.display(), "removing an unused clone");
        let name = clone.file_name().unwrap_or_default().to_string_lossy();
        let refs = format!("refs/wire/{name}/");
        let repo = self.repo(mirror);
        let kept = repo.ask(&["for-each-ref", "--format=delete %(refname)", &refs]);
        if let Ok(kept) = kept.map(|kept| format!("{}\n", kept.trim()))
            && kept != "\n"
        {
            // What cannot be deleted now costs a name.
            drop(repo.update_refs(&kept));
        }
        let worktrees = fs_err::read_to_string(clone.join(USED)).unwrap_or_default();
        let worktrees = Path::new(worktrees.trim());
        let ours = self.settings.root.worktrees();
        if worktrees.parent() == Some(&*ours) {
            drop(fs_err::remove_dir_all(worktrees));
        }
        // What cannot be removed now is met again at the next start.
        drop(fs_err::remove_dir_all(clone));
    }

    /// Gives back what clones hold open (processes that guard their gits) that no attempt used for so long. They
    /// stay where they are, and the next attempt opens them again.
    pub(super) fn close_idle(&self, limit: Duration) {
        self.open().retain(|_, clone| {
            if clone.is_in_use() {
                clone.used = Instant::now();
            }
            clone.used.elapsed() < limit
        });
    }

    /// The worktrees of a task loop, with everything that an attempt needs.
    pub(super) fn place_for(&self, offer: &OfferMessage) -> Result<Arc<Trees>, PlaceError> {
        let lock = self.lock_of(&self.project(offer));
        let alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.fill_place(offer);
        drop(alone);
        if let Err(PlaceError::Local(_)) = place {
            self.suspect(offer);
        }
        place
    }

    /// Something went wrong in the clone of an offer: the next attempt opens it anew.
    pub(super) fn suspect(&self, offer: &OfferMessage) {
        if let Some(open) = self.open().get_mut(&offer.loop_id) {
            open.suspect_since.get_or_insert_with(Instant::now);
        }
    }

    /// Whether something had gone wrong in the clone of an offer, for another attempt, since this time.
    pub(super) fn is_suspect_since(&self, offer: &OfferMessage, began: Instant) -> bool {
        let open = self.open();
        let since = open.get(&offer.loop_id).and_then(|open| open.suspect_since);
        since.is_some_and(|since| since > began)
    }

    /// The clone of an offer's loop, where it is open.
    fn known_place(&self, offer: &OfferMessage) -> Option<Arc<Trees>> {
        let mut open = self.open();
        if open.get(&offer.loop_id).is_some_and(OpenClone::is_reopened) {
            open.remove(&offer.loop_id);
        }
        let known = open.get_mut(&offer.loop_id)?;
        known.used = Instant::now();
        Some(known.trees.clone())
    }

    fn fill_place(&self, offer: &OfferMessage) -> Result<Arc<Trees>, PlaceError> {
        let mirror = self.project(offer).join(MIRROR);
        self.fill(&mirror, offer)?;
        let trees = match self.known_place(offer) {
            Some(trees) => trees,
            None => {
                let trees = Arc::new(self.open_clone(&mirror, offer)?);
                let made = OpenClone {
                    trees: trees.clone(),
                    suspect_since: None,
                    used: Instant::now(),
                };
                self.open().insert(offer.loop_id.clone(), made);
                trees
            }
        };
        trees.confine_more(&offer.order.config.sandbox);
        let used = self.folder_of(offer).join(USED);
        fs_err::write(used, trees.folder().to_string_lossy().as_bytes())
            .map_err(|error| error.to_string())?;
        let GitParcel { base, branch, .. } = &offer.git;
        trees
            .take_parcel(&offer.order.work, base, branch.as_deref())
            .map_err(|error| format!("cannot take what was sent: {error}"))?;
        Ok(trees)
    }

    fn repo(&self, dir: &Path) -> Repo {
        Repo::at(dir, &git_of(&self.settings))
    }

    /// Fetches what the mirror does not have.
    fn fill(&self, mirror: &Path, offer: &OfferMessage) -> Result<(), PlaceError> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot fetch the work: {error}");
        if !is_whole(mirror) {
            fs_err::create_dir_all(mirror).map_err(|error| failed(&error))?;
            let repo = self.repo(mirror);
            repo.quiet(&["init", "--quiet", "--bare"])
                .map_err(|error| failed(&error))?;
            // What a clone uses must stay.
            repo.quiet(&["config", "gc.auto", "0"])
                .map_err(|error| failed(&error))?;
        }
        let repo = self.repo(mirror);
        let has = |commit: &str| matches!(repo.commit_of(commit), Ok(Some(_)));
        let GitParcel {
            base,
            branch,
            root,
            rest,
            remote,
            ..
        } = &offer.git;
        let wanted = [Some(base), branch.as_ref()];
        if wanted.into_iter().flatten().all(|commit| has(commit)) {
            return Ok(());
        }
        if let Some(url) = remote {
            let refs = offer_refs(&offer.loop_id, &offer.subject);
            let branch = branch.as_ref().map(|_| refs.branch());
            let names: Vec<String> = [refs.base()].into_iter().chain(branch).collect();
            return GitRemote::at(url, &repo, self.settings.remote_terms)
                .fetch(&names)
                .map_err(|message| PlaceError::Remote(format!("{url}: {message}")));
        }
        if let Some((root, object)) = root
            && !has(root)
        {
            self.fetch(&repo, mirror, offer, object)?;
        }
        match rest {
            Some(rest) => Ok(self.fetch(&repo, mirror, offer, rest)?),
            None => Ok(()),
        }
    }

    fn fetch(
        &self,
        repo: &Repo,
        mirror: &Path,
        offer: &OfferMessage,
        object: &str,
    ) -> Result<(), String> {
        let file = mirror.join(format!("{}.bundle", file_name(object)));
        self.engine
            .get_object(object, &file)
            .map_err(|error| format!("cannot fetch {object}: {error}"))?;
        let spec = format!("+refs/*:refs/wire/{}/*", file_name(&offer.loop_id));
        let path = file.to_string_lossy();
        let fetched = repo.quiet(&[
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            &path,
            &spec,
        ]);
        drop(fs_err::remove_file(&file));
        fetched
            .map(drop)
            .map_err(|error| format!("cannot read {object}: {error}"))
    }

    /// The repository of a task loop, whose objects are the mirror's.
    fn open_clone(&self, mirror: &Path, offer: &OfferMessage) -> Result<Trees, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot make a clone: {error}");
        let dir = self.folder_of(offer).join("repo");
        if !is_whole(&dir.join(".git")) {
            fs_err::create_dir_all(&dir).map_err(|error| failed(&error))?;
            self.repo(&dir)
                .quiet(&["init", "--quiet"])
                .map_err(|error| failed(&error))?;
        }
        let alternates = dir.join(".git/objects/info/alternates");
        let objects = mirror.join("objects");
        fs_err::write(&alternates, format!("{}\n", objects.display()))
            .map_err(|error| failed(&error))?;
        let repo = self.repo(&dir);
        if let Some((name, address)) = &offer.git.author {
            for (key, value) in [("user.name", name), ("user.email", address)] {
                repo.quiet(&["config", key, value])
                    .map_err(|error| failed(&error))?;
            }
        }
        drop_broken_refs(&repo).map_err(|error| failed(&error))?;
        // Nobody works in the clone itself: it has no files, and no branch is checked out.
        repo.quiet(&["update-ref", "--no-deref", "HEAD", &offer.git.base])
            .map_err(|error| failed(&error))?;
        let work = dir.join(&offer.folder);
        fs_err::create_dir_all(&work).map_err(|error| failed(&error))?;
        let mut tasks = offer.tasks.clone();
        tasks.worktree_copy.clone_from(&self.copy);
        tasks.worktree_setup.clone_from(&self.setup);
        let top = repo.top().map_err(|error| failed(&error))?;
        let shielded: Vec<PathBuf> = offer.shielded.iter().map(|path| top.join(path)).collect();
        let trees = Trees::open(
            &work,
            &self.settings,
            &shielded,
            &tasks,
            &offer.order.config,
            Sharing::OneLoop,
        )
        .map_err(|error| failed(&error))?;
        trees.begin_clone().map_err(|error| failed(&error))?;
        Ok(trees)
    }
}
