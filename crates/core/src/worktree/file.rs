//! Opening files that others may change under our hands.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use super::findings::Hashed;

/// Opens what was an ordinary file a moment ago: not through a link, not waiting for a pipe.
pub(super) fn open(path: &Path) -> Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

/// What an error says about a file that was there a moment ago.
pub(super) fn failed(error: &Error) -> Hashed {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Hashed::Gone,
        _ => Hashed::Unreadable,
    }
}
