//! The directory that a loop works in, held on to from its start. An agent can move or delete it; what
//! then has its name is empty, or somebody else's, and proves nothing.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_DIRECTORY, O_PATH};

use super::HostError;

/// A working directory.
#[derive(Debug)]
pub(crate) struct WorkDirectory {
    path: PathBuf,
    /// What must stay the same directory: the top of the work tree, since git makes folders inside
    /// anew as it switches branches; without git the working directory itself.
    top: PathBuf,
    /// Open, so that its number is given to no other directory, and its new name can be told.
    held: Option<File>,
}

impl WorkDirectory {
    /// Takes hold of it.
    pub(crate) fn hold(path: &Path) -> Self {
        let top = path.ancestors().find(|dir| dir.join(".git").exists());
        let top = top.unwrap_or(path).to_owned();
        let mut options = OpenOptions::new();
        let held = options
            .read(true)
            .custom_flags(O_PATH | O_DIRECTORY)
            .open(&top)
            .ok();
        Self {
            path: path.to_owned(),
            top,
            held,
        }
    }

    /// Whether this file would lie in it.
    pub(crate) fn is_above(&self, file: &Path) -> bool {
        file.starts_with(&self.path) || file.starts_with(&self.top)
    }

    /// Whether it is still the same directory, at the same place; else what happened to it.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        let Some(held) = &self.held else {
            return Ok(());
        };
        let same = match (held.metadata(), std::fs::metadata(&self.top)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            // Not ours to read any more is not gone.
            (_, Err(error)) => error.kind() != std::io::ErrorKind::NotFound,
            (Err(_), Ok(_)) => true,
        };
        match (same, self.path.is_dir()) {
            (true, true) => Ok(()),
            (true, false) => Err(HostError::Lost {
                message: format!(
                    "the working directory {} is gone: nothing can be proven without it",
                    self.path.display()
                ),
                hint: "put it back, then continue with: descartes loop resume".to_owned(),
            }),
            (false, _) => Err(self.lost(held)),
        }
    }

    fn lost(&self, held: &File) -> HostError {
        let link = format!("/proc/self/fd/{}", held.as_raw_fd());
        let now = std::fs::read_link(link).ok();
        let deleted = held.metadata().is_ok_and(|meta| meta.nlink() == 0);
        let moved = now.filter(|now| !deleted && *now != self.top);
        let top = self.top.display();
        let (what, hint) = match moved {
            Some(now) => (
                format!("was moved to {}", now.display()),
                format!(
                    "put it back (mv {} {}), then continue with: descartes loop resume",
                    shell_words::quote(&now.display().to_string()),
                    shell_words::quote(&top.to_string())
                ),
            ),
            None => (
                "was deleted".to_owned(),
                "put it back, then continue with: descartes loop resume".to_owned(),
            ),
        };
        let instead = match self.top.exists() {
            true => ", and another one has its name",
            false => "",
        };
        HostError::Lost {
            message: format!(
                "the working directory {top} {what}{instead}: nothing can be proven without it"
            ),
            hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_moved_deleted_or_replaced_is_lost() {
        let world = tempfile::tempdir().unwrap();
        let (dir, other) = (world.path().join("proj"), world.path().join("renamed"));
        fs_err::create_dir(&dir).unwrap();
        let held = WorkDirectory::hold(&dir);
        assert!(held.check().is_ok());
        fs_err::rename(&dir, &other).unwrap();
        let moved = held.check().unwrap_err().to_string();
        assert!(moved.contains(&format!("was moved to {}", other.display())));
        fs_err::create_dir(&dir).unwrap();
        let replaced = held.check().unwrap_err().to_string();
        assert!(replaced.contains("another one has its name"), "{replaced}");
        fs_err::remove_dir(&dir).unwrap();
        fs_err::rename(&other, &dir).unwrap();
        assert!(held.check().is_ok(), "it is back");
        fs_err::remove_dir(&dir).unwrap();
        let gone = held.check().unwrap_err().to_string();
        assert!(gone.contains("was deleted"), "{gone}");
        fs_err::create_dir(&dir).unwrap();
        assert!(held.check().is_err());
    }

    #[test]
    fn a_folder_of_a_work_tree_may_be_made_anew() {
        let world = tempfile::tempdir().unwrap();
        let inner = world.path().join("packages/one");
        fs_err::create_dir_all(world.path().join(".git")).unwrap();
        fs_err::create_dir_all(&inner).unwrap();
        let held = WorkDirectory::hold(&inner);
        fs_err::remove_dir(&inner).unwrap();
        assert!(held.check().is_err());
        fs_err::create_dir(&inner).unwrap();
        assert!(held.check().is_ok());
    }
}
