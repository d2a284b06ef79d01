//! Files made ahead.
//!
//! Making a file takes longer than all else that is done between two iterations, and much longer
//! where many were deleted shortly before, as builds and tests do: so it is done while an agent
//! works.

use crate::ops::{self, IoError};
use crate::safe_open::Options;
use std::path::{Path, PathBuf};

/// An empty file, mode 0600, that waits to become another.
#[derive(Debug)]
pub struct Spare(PathBuf);

impl Spare {
    /// Makes one, in the place of what an earlier one left.
    pub fn make(path: PathBuf) -> Result<Self, IoError> {
        remove(&path)?;
        ops::open(Options::new().write().create_new(), &path).map_err(ops::at("create", &path))?;
        Ok(Self(path))
    }

    /// Becomes the file at `path`, with these bytes, without waiting for the disk; an older one is
    /// left in its own place. Fails where the two places are not on one file system.
    pub(crate) fn put(self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let Self(spare) = self;
        let write = || ops::write_all(&ops::open(Options::new().write(), &spare)?, bytes);
        write().map_err(ops::at("write", &spare))?;
        ops::swap(&spare, path).map(drop)
    }
}

/// Takes away what is left of a spare.
pub fn remove(path: &Path) -> Result<(), IoError> {
    ops::remove_file(path)
}
