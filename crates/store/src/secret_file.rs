//! Small files that only this user may read, in the state folder: tokens, sessions.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::ops::{self, IoError, Sync};
use crate::safe_open;

/// The bytes of a secret file; `None` where there is none.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, IoError> {
    match ops::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a secret file whole, mode 0600, with the folders above it, mode 0700.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    if let Some(folder) = path.parent() {
        ops::make_dir(folder, Sync::Durable)?;
    }
    ops::replace_shared(path, bytes, Sync::Durable)
}

/// Removes a secret file for good; it may be gone already.
pub fn remove(path: &Path) -> Result<(), IoError> {
    ops::remove_file(path)?;
    match path.parent().map_or(Ok(()), ops::sync_dir) {
        Err(error) if error.is_missing() => Ok(()),
        synced => synced,
    }
}

/// Whether others than its owner may read or write the file.
pub fn is_open_to_others(path: &Path) -> bool {
    safe_open::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}
