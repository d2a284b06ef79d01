//! The folder of control sockets: private, and with paths short enough for a socket.

use super::{EnvPaths, short_hash};
use crate::ops::{self, IoError, Sync};
use nix::unistd::Uid;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a socket address holds, without its closing NUL.
const LONGEST: usize = 107;

/// No place for a control socket.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The folder is there, and is not ours alone.
    #[error("{} is not a private folder owned by this user", .0.display())]
    NotPrivate(PathBuf),
    /// The path would not fit into a socket address.
    #[error("{} is too long for a socket path (at most {LONGEST} bytes)", .0.display())]
    TooLong(PathBuf),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// The path for a loop's control socket, in a folder that was made and found private:
/// `$XDG_RUNTIME_DIR/descartes/<16 hex>.sock`, else in a folder of the temp dir.
pub fn socket_path(env: &EnvPaths, loop_id: &str) -> Result<PathBuf, RuntimeError> {
    let name = format!("{}.sock", short_hash(loop_id.as_bytes()));
    let ours = format!("descartes-{}", Uid::effective());
    let xdg = env
        .xdg_runtime_dir
        .as_ref()
        .filter(|dir| dir.is_absolute() && dir.is_dir());
    let folders = xdg
        .map(|dir| dir.join("descartes"))
        .into_iter()
        .chain([env.temp_dir.join(&ours), Path::new("/tmp").join(&ours)]);
    let mut first_error = None;
    for folder in folders {
        match socket_in(&folder, &name) {
            Ok(socket) => return Ok(socket),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(RuntimeError::NotPrivate(env.temp_dir.clone())))
}

fn socket_in(folder: &Path, name: &str) -> Result<PathBuf, RuntimeError> {
    let socket = folder.join(name);
    if socket.as_os_str().as_bytes().len() > LONGEST {
        return Err(RuntimeError::TooLong(socket));
    }
    let resolved = folder.parent().and_then(|base| base.canonicalize().ok());
    let name = folder.file_name().unwrap_or_default();
    let made = resolved.map_or_else(|| folder.to_owned(), |base| base.join(name));
    if let Err(error) = ops::make_dir(&made, Sync::Lazy)
        && error.refusal().is_none()
    {
        return Err(error.into());
    }
    // Not followed: in a shared temp dir a link may be somebody's trap.
    let there = std::fs::symlink_metadata(folder).map_err(ops::at("inspect", folder))?;
    let private =
        there.is_dir() && there.uid() == Uid::effective().as_raw() && there.mode() & 0o077 == 0;
    match private {
        true => Ok(socket),
        false => Err(RuntimeError::NotPrivate(folder.to_owned())),
    }
}
