//! Objects that agents write in slots of a task loop. All worktrees of a repository share its objects: who
//! can write there can delete those of everybody. So a confined agent writes into a folder of its own, which
//! inside lies where the repository's lies, with that one as its alternate; when the agent has ended, its
//! objects are taken over by git itself, which names each by its content.
//!
//! What the agent writes lies in folders below the slot's own; what we note about it lies beside them, out of
//! its reach. Links and other things that it may have put in place of files are passed over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::sandbox::SHARED_OBJECTS;
use descartes_sandbox::{OWN_LOGS, OWN_OBJECTS, OWN_REFS, small_text};
use descartes_store::layout::StateRoot;
use sha2::{Digest, Sha256};
use tracing::debug;

use crate::worktree::Git;
use crate::worktree::deadline::Deadline;

/// Time for one take-over.
const TAKE_OVER: Duration = Duration::from_secs(10 * 60);

/// Up to so many bytes objects are kept one by one, as git does; more become a pack.
const LOOSE: usize = 16 << 20;

/// The file that names the repository they belong to.
const REPOSITORY: &str = "repository";

/// The file that names the branch, and the commit that it was on when it was last looked at.
const BRANCH: &str = "branch";

/// The objects of one slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotObjects {
    folder: PathBuf,
    /// The shared folder of the repository.
    common: PathBuf,
}

fn all(root: &StateRoot) -> PathBuf {
    root.path().join("sandbox").join("objects")
}

impl SlotObjects {
    /// Those of the worktree in `dir`.
    pub(crate) fn of(root: &StateRoot, dir: &Path, common: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let hash = Sha256::digest(dir.as_os_str().as_bytes());
        let name: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            folder: all(root).join(name),
            common: common.to_owned(),
        }
    }

    /// Those of all slots of a repository: a host that died has not taken them over.
    pub(crate) fn of_repository(root: &StateRoot, common: &Path) -> Vec<Self> {
        use std::os::unix::ffi::OsStrExt;
        let entries = std::fs::read_dir(all(root)).into_iter().flatten().flatten();
        let is_its = |folder: &PathBuf| {
            let named = std::fs::read(folder.join(REPOSITORY));
            named.is_ok_and(|named| named == common.as_os_str().as_bytes())
        };
        let folders = entries.map(|entry| entry.path()).filter(is_its);
        let common = common.to_owned();
        let one = |folder| Self {
            folder,
            common: common.clone(),
        };
        folders.map(one).collect()
    }

    /// The folder of the slot; the agent sees the folders in it, and not this one.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn objects(&self) -> PathBuf {
        self.folder.join(OWN_OBJECTS)
    }

    /// Makes the folders ready, and copies the ref of the branch that is worked on: the agent moves the copy.
    pub(crate) fn begin(&self, branch: Option<&str>) -> std::io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        // Made last: where anything fails they are missing, and so nothing can be started with old ones.
        for own in [OWN_REFS, OWN_LOGS] {
            remove_any(&self.folder.join(own))?;
        }
        fs_err::create_dir_all(self.objects())?;
        fs_err::write(
            self.folder.join(REPOSITORY),
            self.common.as_os_str().as_bytes(),
        )?;
        // An agent may have left a link there, which would lead what is written elsewhere.
        let info = self.objects().join("info");
        remove_any(&info)?;
        fs_err::create_dir(&info)?;
        fs_err::write(info.join("alternates"), format!("{SHARED_OBJECTS}\n"))?;
        if !is_folder(&self.objects().join("pack")) {
            remove_any(&self.objects().join("pack"))?;
            fs_err::create_dir(self.objects().join("pack"))?;
        }
        for own in [OWN_REFS, OWN_LOGS] {
            fs_err::create_dir(self.folder.join(own))?;
        }
        drop(fs_err::remove_file(self.folder.join(BRANCH)));
        let Some(branch) = branch else { return Ok(()) };
        let own = self.own_ref(branch);
        let known = match small_text(self.common.join("refs/heads").join(branch)) {
            Ok(id) => {
                fs_err::write(own, &id)?;
                id.trim().to_owned()
            }
            // Packed, where the agent sees it: the first commit makes a file of it.
            Err(_) => String::new(),
        };
        fs_err::write(self.folder.join(BRANCH), format!("{branch}\n{known}"))
    }

    fn own_ref(&self, branch: &str) -> PathBuf {
        let name = Path::new(branch).file_name().unwrap_or_default();
        self.folder.join(OWN_REFS).join(name)
    }

    /// Moves the branch to where the agent moved its copy, unless somebody else moved it since.
    fn move_branch(&self, git: &Git) -> Result<(), String> {
        let noted = match fs_err::read_to_string(self.folder.join(BRANCH)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            noted => noted.map_err(|error| error.to_string())?,
        };
        let (branch, known) = noted.split_once('\n').unwrap_or((&noted, ""));
        let own = self.own_ref(branch);
        if !own.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return Ok(());
        }
        let new = small_text(&own).map_err(|error| error.to_string())?;
        let new = new.trim();
        let is_id = [40, 64].contains(&new.len()) && new.chars().all(|c| c.is_ascii_hexdigit());
        if !is_id || new == known {
            return Ok(());
        }
        let name = format!("refs/heads/{branch}");
        let mut words = vec!["update-ref", "--no-deref", &name, new];
        words.extend((!known.is_empty()).then_some(known));
        let call = git.read(&self.common).env("GIT_DIR", &self.common);
        let moved = call.args(words).output(Deadline::after(TAKE_OVER));
        moved.map_err(|error| error.to_string())?;
        let noted = fs_err::write(self.folder.join(BRANCH), format!("{branch}\n{new}"));
        noted.map_err(|error| error.to_string())
    }

    /// Brings them into the repository with the branch that leads to them, and empties the folder.
    pub(crate) fn take_over(&self, git: &Git) -> Result<(), String> {
        self.take_over_objects(git)?;
        self.move_branch(git)
    }

    fn take_over_objects(&self, git: &Git) -> Result<(), String> {
        let loose = self.loose();
        let packs = self.packs();
        for pack in &packs {
            let bytes = fs_err::read(pack).map_err(|error| error.to_string())?;
            self.put(git, bytes)?;
        }
        if !loose.is_empty() {
            let ids = loose.iter().map(|(id, _)| format!("{id}\n"));
            let call = git
                .read(&self.common)
                .env("GIT_DIR", &self.common)
                .env("GIT_OBJECT_DIRECTORY", self.objects())
                .env(
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                    self.common.join("objects"),
                )
                .args(["pack-objects", "--quiet", "--stdout"])
                .stdin(ids.collect::<String>().into_bytes());
            let packed = call.output(Deadline::after(TAKE_OVER));
            self.put(git, packed.map_err(|error| error.to_string())?)?;
        }
        debug!(
            loose = loose.len(),
            packs = packs.len(),
            "objects taken over"
        );
        let files = loose.into_iter().map(|(_, file)| file).chain(packs);
        for file in files {
            drop(fs_err::remove_file(&file));
            drop(fs_err::remove_file(file.with_extension("idx")));
        }
        Ok(())
    }

    fn put(&self, git: &Git, pack: Vec<u8>) -> Result<(), String> {
        let call = git.read(&self.common).env("GIT_DIR", &self.common);
        let call = match pack.len() <= LOOSE {
            true => call.args(["unpack-objects", "-q"]),
            false => call.args(["index-pack", "--stdin", "--fix-thin"]),
        };
        let done = call.stdin(pack).output(Deadline::after(TAKE_OVER));
        done.map(drop).map_err(|error| error.to_string())
    }

    /// Ids and files of single objects.
    fn loose(&self) -> Vec<(String, PathBuf)> {
        let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
        let mut found = Vec::new();
        for folder in entries(&self.objects()) {
            let begin = name(&folder);
            if begin.len() != 2 || !is_hex(&begin) {
                continue;
            }
            for file in entries(&folder).into_iter().filter(|file| is_file(file)) {
                let rest = name(&file);
                if is_hex(&rest) && [38, 62].contains(&rest.len()) {
                    found.push((format!("{begin}{rest}"), file));
                }
            }
        }
        found
    }

    fn packs(&self) -> Vec<PathBuf> {
        let mut files = entries(&self.objects().join("pack"));
        files.retain(|file| is_file(file) && file.extension().is_some_and(|kind| kind == "pack"));
        files
    }
}

/// What is in a folder, unless a link leads to it: the agent made it.
fn entries(folder: &Path) -> Vec<PathBuf> {
    if !is_folder(folder) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Neither a link nor something that a reader would wait for.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Removes whatever is there; a link, and not what it leads to.
fn remove_any(path: &Path) -> std::io::Result<()> {
    let removed = match is_folder(path) {
        true => fs_err::remove_dir_all(path),
        false => fs_err::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn git(dir: &Path, words: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let output = Command::new("git")
            .args(identity)
            .args(words)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn what_an_agent_puts_in_place_of_its_folders_leads_nowhere() {
        let world = tempfile::tempdir().unwrap();
        let repo = world.path().join("repo");
        fs_err::create_dir(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&repo, &["branch", "descartes/t/1"]);
        let before = git(&repo, &["rev-parse", "main"]);
        git(&repo, &["commit", "-q", "--allow-empty", "-m", "two"]);
        let other = git(&repo, &["rev-parse", "main"]);
        git(&repo, &["update-ref", "refs/heads/main", &before]);
        // Files of the user that links lead to.
        let outside = world.path().join("outside");
        fs_err::create_dir(&outside).unwrap();
        for name in ["alternates", "user.pack"] {
            fs_err::write(outside.join(name), "mine").unwrap();
        }
        let root = StateRoot::at(world.path().join("state"));
        let slot = SlotObjects::of(&root, &world.path().join("slot"), &repo.join(".git"));
        slot.begin(Some("descartes/t/1")).unwrap();
        let own = slot.objects();
        for name in ["info", "pack"] {
            remove_any(&own.join(name)).unwrap();
            symlink(&outside, own.join(name)).unwrap();
        }
        // As if these were our own notes.
        fs_err::write(own.join(BRANCH), "main\n").unwrap();
        fs_err::write(slot.folder().join(OWN_REFS).join("main"), &other).unwrap();
        let fifo = slot.folder().join(OWN_REFS).join("1");
        remove_any(&fifo).unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        slot.take_over(&Git::default()).unwrap();
        slot.begin(Some("descartes/t/1")).unwrap();
        assert_eq!(git(&repo, &["rev-parse", "main"]), before);
        for name in ["alternates", "user.pack"] {
            let text = fs_err::read_to_string(outside.join(name)).unwrap();
            assert_eq!(text, "mine", "{name}");
        }
        // And what it moved by the rules is moved.
        fs_err::write(slot.own_ref("descartes/t/1"), &other).unwrap();
        slot.take_over(&Git::default()).unwrap();
        assert_eq!(git(&repo, &["rev-parse", "descartes/t/1"]), other);
    }
}
