//! The folders of a repository, read from its files.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use descartes_kernel::sandbox::{COMMON_DIR_IS_HERE, GitPlaces, Make, PlantedInGit, SlotGit};

use super::{OWN_LOGS, OWN_OBJECTS, OWN_REFS, SlotOrigin, real};
use crate::sandbox::make_one;
use crate::small_text;

/// The repository around a directory.
pub(super) fn find(work_dir: &Path) -> Option<GitPlaces> {
    let top = work_dir.ancestors().find(|dir| dir.join(".git").exists())?;
    let entry = top.join(".git");
    let is_folder = entry.symlink_metadata().ok()?.is_dir();
    let git_dir = match is_folder {
        true => entry,
        false => linked(top, &entry)?,
    };
    let common_dir = match small_text(git_dir.join("commondir")) {
        // No git makes such a file in a repository that has its folder to itself: an agent would.
        Ok(text) if !is_folder => real(&git_dir.join(text.trim())),
        _ => git_dir.clone(),
    };
    is_repository(&common_dir).then(|| GitPlaces {
        top: top.to_owned(),
        git_dir,
        common_dir,
        ..GitPlaces::default()
    })
}

/// Where a `.git` file leads. It lies in the agent's reach, so the folder must say itself that it belongs
/// to this work tree: else an agent could have another repository opened for it.
fn linked(top: &Path, entry: &Path) -> Option<PathBuf> {
    let text = small_text(entry).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let folder = std::fs::canonicalize(top.join(target)).ok()?;
    let back = small_text(folder.join("gitdir"));
    let is_ours = match back {
        Ok(back) => real(&folder.join(back.trim())) == real(entry),
        Err(_) => folder.starts_with(top) || work_tree_of(&folder).as_deref() == Some(top),
    };
    is_ours.then_some(folder)
}

/// The work tree that the config of a submodule's repository names.
fn work_tree_of(git_dir: &Path) -> Option<PathBuf> {
    let config = small_text(git_dir.join("config")).ok()?;
    let line = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "worktree").then(|| value.trim().to_owned())
    })?;
    std::fs::canonicalize(git_dir.join(line)).ok()
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").exists() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// The file in git's own folder that leads it to another, where there is one that does.
pub(super) fn misled(common: &Path) -> Option<PathBuf> {
    let file = common.join("commondir");
    let found = file.symlink_metadata().ok()?;
    let is_ours = found.is_file()
        && small_text(&file).is_ok_and(|text| text.trim() == COMMON_DIR_IS_HERE.trim());
    (!is_ours).then_some(file)
}

/// Moves it to another name; says so.
pub(super) fn put_aside(file: &Path) -> Option<PlantedInGit> {
    let mut names = (0..1000).map(|n| file.with_file_name(format!("commondir.put-aside-{n}")));
    let aside = names.find(|aside| aside.symlink_metadata().is_err())?;
    let what = "it leads git to another folder for settings and hooks";
    let (what, remove) = match std::fs::rename(file, &aside) {
        Ok(()) => (
            format!(
                "{what}; it is {} now, where git does not look",
                aside.display()
            ),
            aside.as_path(),
        ),
        Err(error) => (format!("{what}; it cannot be moved away: {error}"), file),
    };
    Some(PlantedInGit {
        file: file.display().to_string(),
        what,
        undo: format!("rm -r {}", shell_words::quote(&remove.to_string_lossy())),
    })
}

/// Makes what locks that name while agents run, and holds it beside other loops of this repository.
pub(super) fn hold(common: &Path) -> io::Result<File> {
    let path = common.join("commondir");
    loop {
        make_one(&Make::File(path.clone(), COMMON_DIR_IS_HERE.to_owned()))?;
        let file = File::open(&path)?;
        file.lock_shared()?;
        // Another loop may have taken it away before it was locked.
        let there = std::fs::symlink_metadata(&path).map(|meta| (meta.dev(), meta.ino()));
        if there.is_ok_and(|there| {
            file.metadata()
                .is_ok_and(|own| (own.dev(), own.ino()) == there)
        }) {
            return Ok(file);
        }
    }
}

/// Takes it away where no other loop holds it.
pub(super) fn tidy_up(common: &Path, held: Option<File>) {
    let path = common.join("commondir");
    if misled(common).is_some() {
        return;
    }
    let file = held.or_else(|| File::open(&path).ok());
    if file.is_some_and(|file| file.try_lock().is_ok()) {
        drop(std::fs::remove_file(path));
    }
}

/// Folders that the repository keeps for other work trees.
pub(super) fn other_work_trees(git: &GitPlaces) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(git.common_dir.join("worktrees"));
    let entries = entries.into_iter().flatten().flatten();
    let mut others: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    others.retain(|other| *other != git.git_dir);
    others.sort();
    others
}

/// The branch that a work tree is on.
pub(super) fn branch(git_dir: &Path) -> Option<String> {
    let head = small_text(git_dir.join("HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    let climbs = branch
        .split('/')
        .any(|part| part == ".." || part.is_empty());
    (!climbs).then(|| branch.to_owned())
}

/// What a slot may write.
pub(super) fn slot(git: &GitPlaces, slot: &SlotOrigin) -> SlotGit {
    let mut out = SlotGit {
        objects: slot.folder.join(OWN_OBJECTS),
        ..SlotGit::default()
    };
    // In a reftable all refs are in the same files: nothing of it is writable, and work is committed by
    // the host.
    let files = !git.common_dir.join("reftable").exists();
    if let Some(branch) = slot.branch.as_ref().filter(|_| files) {
        let below = Path::new("refs/heads").join(branch);
        let folder = below.parent().map(Path::to_owned).unwrap_or_default();
        let logs = git.common_dir.join("logs").join(&folder);
        out.refs = Some((git.common_dir.join(&folder), slot.folder.join(OWN_REFS)));
        out.logs = Some((logs, slot.folder.join(OWN_LOGS)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_locks_a_name_stays_until_the_last_loop_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let is_locked = || dir.path().join("commondir").is_file();
        let (first, second) = (hold(dir.path()).unwrap(), hold(dir.path()).unwrap());
        tidy_up(dir.path(), Some(first));
        assert!(is_locked());
        tidy_up(dir.path(), None);
        assert!(
            is_locked(),
            "nor does a loop that held nothing take it away"
        );
        tidy_up(dir.path(), Some(second));
        assert!(!is_locked());
        // One that a killed loop left.
        drop(hold(dir.path()).unwrap());
        tidy_up(dir.path(), None);
        assert!(!is_locked());
    }
}
