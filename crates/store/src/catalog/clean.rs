//! Making room: what old loops left behind. Planned first, so that it can be shown.

use super::{LoopEntry, LoopMeta, LoopStanding, list, standing};
use crate::layout::{LoopDir, PROJECT_FOLDER, StateRoot};
use crate::lock::{is_held, is_ours, lock_beside, remove_unheld};
use crate::logs::disk_use;
use crate::ops::{self, IoError};
use crate::safe_open;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};

/// What is removed of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleanScope {
    /// Logs and snapshots; its journal stays, and with it its history.
    Logs,
    Whole,
}

/// What would be removed, and what stays although it is old.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CleanPlan {
    /// To be removed.
    pub items: Vec<CleanItem>,
    /// Old loops that are not over: they can be resumed, and nothing of them is removed.
    pub interrupted: Vec<LoopMeta>,
    /// Locks that nobody holds, of state files that are gone; beside state files, also those that
    /// are old.
    pub locks: Vec<PathBuf>,
    /// Old loops that are over and whose work waits to land: their journals know how, and stay.
    pub unlanded: Vec<LoopMeta>,
    /// Old loops with safety copies, which stay unless they are asked for.
    pub copies: Vec<KeptCopies>,
}

/// Safety copies of the work tree that stay, with all that is needed to go back to them.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCopies {
    pub meta: LoopMeta,
    pub names: Vec<String>,
    /// Room that they take on the disk.
    pub bytes: u64,
}

/// What becomes of safety copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SafetyCopies {
    /// They stay, and with them the snapshots of their loops.
    Keep,
    /// They go with the rest.
    Remove,
}

/// A loop whose traces would be removed.
#[derive(Debug, Clone, PartialEq)]
pub struct CleanItem {
    /// The loop; `None` for a folder that is none any more.
    pub meta: Option<LoopMeta>,
    /// When something was last written there.
    pub last_used: Timestamp,
    /// Room that it takes on the disk.
    pub bytes: u64,
    dir: LoopDir,
    paths: Vec<PathBuf>,
}

impl CleanItem {
    /// The files and folders that go.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// Why something could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// A live process has the loop.
    #[error("{} is in use by a running loop", .0.display())]
    InUse(PathBuf),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// Lists what loops that ended before `before` left behind, and what lies in the project `here`.
/// Loops in `unlanded`, by their ids, have work that waits. Changes nothing.
pub fn plan_clean(
    root: &StateRoot,
    here: &Path,
    before: Timestamp,
    scope: CleanScope,
    copies: SafetyCopies,
    unlanded: &BTreeSet<String>,
) -> Result<CleanPlan, IoError> {
    let all = list(root)?;
    let mut plan = CleanPlan {
        locks: idle_locks(root, &all, here, before)?,
        ..CleanPlan::default()
    };
    for entry in all {
        let last_used = last_used(&entry.dir);
        if last_used >= before {
            continue;
        }
        let names = match copies {
            SafetyCopies::Keep => safety_copies(&entry.dir),
            SafetyCopies::Remove => Vec::new(),
        };
        let standing = standing(&entry.dir);
        let waits = scope == CleanScope::Whole && unlanded.contains(&entry.meta.id);
        if waits && matches!(standing, Ok(LoopStanding::Finished(_))) {
            plan.unlanded.push(entry.meta.clone());
        }
        match standing {
            Ok(LoopStanding::Running(_)) => {}
            Ok(LoopStanding::Finished(_)) | Err(_) if !names.is_empty() => {
                let bytes = disk_use(&entry.dir.objects());
                plan.copies.push(KeptCopies {
                    meta: entry.meta.clone(),
                    names,
                    bytes,
                });
                let paths = vec![entry.dir.runs()];
                plan.items
                    .extend(item(Some(entry.meta), entry.dir, last_used, paths));
            }
            Ok(LoopStanding::Interrupted) => plan.interrupted.push(entry.meta),
            // A journal that cannot be read is not ours to throw away, but its logs are old.
            Ok(LoopStanding::Finished(_)) | Err(_) if waits || scope == CleanScope::Logs => {
                let paths = vec![entry.dir.runs(), entry.dir.objects()];
                plan.items
                    .extend(item(Some(entry.meta), entry.dir, last_used, paths));
            }
            Ok(LoopStanding::Finished(_)) => {
                let paths = vec![entry.dir.path().to_owned()];
                plan.items
                    .extend(item(Some(entry.meta), entry.dir, last_used, paths));
            }
            Err(_) => plan.interrupted.push(entry.meta),
        }
    }
    plan.items.extend(leftovers(root, before));
    Ok(plan)
}

/// The names of a loop's safety copies.
fn safety_copies(dir: &LoopDir) -> Vec<String> {
    let names = files_in(&dir.objects().join("safety"));
    let names = names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

fn item(
    meta: Option<LoopMeta>,
    dir: LoopDir,
    last_used: Timestamp,
    mut paths: Vec<PathBuf>,
) -> Option<CleanItem> {
    paths.retain(|path| safe_open::is_there(path));
    let bytes = paths.iter().map(|path| disk_use(path)).sum();
    (!paths.is_empty()).then_some(CleanItem {
        meta,
        last_used,
        bytes,
        dir,
        paths,
    })
}

/// Locks that nobody holds, and that are made anew where they are needed.
fn idle_locks(
    root: &StateRoot,
    all: &[LoopEntry],
    here: &Path,
    before: Timestamp,
) -> Result<Vec<PathBuf>, IoError> {
    let files = || all.iter().map(|entry| entry.meta.state_file.as_path());
    let needed: BTreeSet<PathBuf> = files()
        .filter(|file| file.exists())
        .map(|file| root.lock_for(file))
        .collect();
    let in_root = files_in(&root.locks()).filter(|path| !needed.contains(path));
    let is_idle = |lock: &PathBuf| {
        let is_old = modified(lock).is_some_and(|time| time < before);
        is_ours(lock) && (is_old || !lock.with_extension("").exists())
    };
    let beside = locks_in_projects(files(), here).into_iter().filter(is_idle);
    let mut idle = BTreeSet::new();
    for path in in_root.chain(beside) {
        if !is_held(&path)? {
            idle.insert(path);
        }
    }
    Ok(idle.into_iter().collect())
}

/// Locks beside these state files; and since loops that nobody knows any more left some too, all
/// that lie in the folders of their projects.
fn locks_in_projects<'a>(files: impl Iterator<Item = &'a Path>, here: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::from([here.join(PROJECT_FOLDER)]);
    let mut locks = BTreeSet::new();
    for file in files {
        locks.insert(lock_beside(file));
        let folder = file
            .parent()
            .filter(|folder| folder.ends_with(PROJECT_FOLDER));
        folders.extend(folder.map(Path::to_owned));
    }
    let is_lock = |path: &PathBuf| path.extension() == Some(OsStr::new("lock"));
    let found = folders.iter().flat_map(|folder| files_in(folder));
    locks.extend(found.filter(is_lock));
    locks
}

fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let names = safe_open::names_in(folder).unwrap_or_default();
    let folder = folder.to_owned();
    names.into_iter().map(move |name| folder.join(name))
}

/// Removes a lock of a plan, unless a loop took it meanwhile.
pub fn remove_lock(path: &Path) -> Result<(), CleanError> {
    Ok(remove_unheld(path)?)
}

/// Folders that were begun and never became a loop.
fn leftovers(root: &StateRoot, before: Timestamp) -> Vec<CleanItem> {
    let names = safe_open::names_in(&root.loops()).unwrap_or_default();
    names
        .into_iter()
        .filter_map(|name| root.loop_dir(name.to_str()?).ok())
        .filter(|dir| !safe_open::is_there(&dir.meta()) && !safe_open::is_there(&dir.journal()))
        .filter(|dir| last_used(dir) < before)
        .filter_map(|dir| {
            let (last_used, path) = (last_used(&dir), dir.path().to_owned());
            item(None, dir, last_used, vec![path])
        })
        .collect()
}

fn last_used(dir: &LoopDir) -> Timestamp {
    let time = modified(&dir.journal()).or_else(|| modified(dir.path()));
    time.unwrap_or(Timestamp::MIN)
}

fn modified(path: &Path) -> Option<Timestamp> {
    let time = safe_open::metadata(path).and_then(|meta| meta.modified());
    Timestamp::try_from(time.ok()?).ok()
}

/// Removes one item of a plan, unless a loop took it up again meanwhile.
pub fn remove(item: &CleanItem) -> Result<(), CleanError> {
    let lock = item.dir.lock();
    let held = safe_open::open_read(&lock).ok();
    if let Some(file) = &held {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CleanError::InUse(item.dir.path().to_owned()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(IoError::new("lock", &lock, error).into());
            }
        }
    }
    for path in &item.paths {
        ops::remove_tree(path)?;
    }
    Ok(())
}
