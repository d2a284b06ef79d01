//! The project's own folder, and what a path really means.

use crate::ops::{self, IoError, Sync};
use crate::real_path::{PROJECT_FOLDER, real_path};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Makes `.descartes/` in a project, with a `.gitignore` that keeps it out of every commit.
pub fn ensure_project_folder(project: &Path) -> Result<PathBuf, IoError> {
    let folder = project.join(PROJECT_FOLDER);
    ensure(&folder)?;
    Ok(folder)
}

/// Makes the folder that a file is to lie in. Where that is a `.descartes/`, it ignores itself.
pub fn ensure_folder_of(file: &Path) -> Result<(), IoError> {
    match file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => ensure(folder),
        None => Ok(()),
    }
}

fn ensure(folder: &Path) -> Result<(), IoError> {
    let own = folder
        .file_name()
        .is_some_and(|name| name == PROJECT_FOLDER);
    // A project that was moved or deleted is not made anew around our own folder.
    if let Some(project) = folder
        .parent()
        .filter(|dir| own && !dir.as_os_str().is_empty())
        && !project.exists()
    {
        let gone = std::io::Error::from(ErrorKind::NotFound);
        return Err(IoError::new("create the folder", folder, gone));
    }
    ops::make_dir(folder, Sync::Durable)?;
    let ignore = folder.join(".gitignore");
    match own && !crate::safe_open::is_there(&ignore) {
        true => ops::replace_shared(&ignore, b"*\n", Sync::Lazy),
        false => Ok(()),
    }
}

/// The absolute path of a state file: links above it are resolved (above `.descartes`, where it lies
/// in one). The file itself is no link: it is refused when it is opened.
pub fn state_file_path(path: &Path) -> Result<PathBuf, IoError> {
    crate::safe_open::link_free(path).map_err(ops::at("resolve", path))
}

/// The absolute path with every symbolic link followed. Neither the file nor its folders
/// need be there yet.
pub fn canonical(path: &Path) -> Result<PathBuf, IoError> {
    real_path(path).map_err(ops::at("resolve", path))
}
