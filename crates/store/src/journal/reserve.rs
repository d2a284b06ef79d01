//! Room kept free, so that a loop on a full disk can still write down why it stopped.

use crate::ops::{self, IoError};
use crate::safe_open::{self, Options};
use nix::fcntl::posix_fallocate;
use std::path::{Path, PathBuf};

pub(super) const SIZE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub fn beside(journal: &Path) -> Self {
        Self {
            path: ops::beside(journal, ".reserve"),
        }
    }

    /// Takes the room. A disk that is full already has none to give; the loop runs without.
    pub fn fill(&self) -> Result<(), IoError> {
        if safe_open::metadata(&self.path).is_ok_and(|meta| meta.len() >= SIZE as u64) {
            return Ok(());
        }
        let fill = || {
            let file = ops::open(Options::new().write().create(), &self.path)?;
            match posix_fallocate(&file, 0, SIZE as i64) {
                Ok(()) => Ok(()),
                // Not every file system can; zeros take the same room there.
                Err(_) => ops::write_all(&file, &vec![0; SIZE]),
            }
        };
        match fill() {
            Err(error) if ops::is_full(&error) => ops::remove_file(&self.path),
            other => other.map_err(ops::at("reserve space in", &self.path)),
        }
    }

    /// Gives the room back to the disk.
    pub fn release(&self) -> Result<(), IoError> {
        ops::remove_file(&self.path)
    }
}
