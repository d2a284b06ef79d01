//! Where a path really leads.

use std::io;
use std::path::{Path, PathBuf};

/// The folder that a project's own descartes files lie in.
pub const PROJECT_FOLDER: &str = ".descartes";

/// The absolute path with every symbolic link followed. Neither the file nor its folders
/// need be there yet.
pub(crate) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    // As many links as the kernel follows.
    for _ in 0..40 {
        match path.canonicalize() {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            break;
        };
        match std::fs::read_link(&path) {
            // A link to what is not there yet.
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(real_path(parent)?.join(name)),
        }
    }
    Err(io::Error::from_raw_os_error(nix::libc::ELOOP))
}
