//! Files, with their folders made on the way and their paths in every error.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::Trouble;

pub(super) fn remove(path: &Path) -> Result<(), Trouble> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => at(path, |path| fs::remove_dir_all(path)),
        Ok(_) => at(path, |path| fs::remove_file(path)),
        Err(_) => Ok(()),
    }
}

/// A new file is there whole or not at all, for those who wait for it.
pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Trouble> {
    make_folder(path)?;
    let name = path.file_name().filter(|_| !path.exists());
    let Some(name) = name.map(|name| name.to_string_lossy()) else {
        return at(path, |path| fs::write(path, content));
    };
    let partial = path.with_file_name(format!(".{name}.{}", std::process::id()));
    at(path, |path| {
        fs::write(&partial, content)?;
        fs::rename(&partial, path)
    })
}

pub(super) fn append(path: &Path, text: &str) -> Result<(), Trouble> {
    let mut file = open_append(path)?;
    at(path, |_| file.write_all(text.as_bytes()))
}

pub(super) fn open_append(path: &Path) -> Result<File, Trouble> {
    make_folder(path)?;
    at(path, |path| {
        OpenOptions::new().create(true).append(true).open(path)
    })
}

fn make_folder(path: &Path) -> Result<(), Trouble> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    folder.map_or(Ok(()), |folder| {
        at(folder, |folder| fs::create_dir_all(folder))
    })
}

pub(super) fn at<T>(
    path: &Path,
    act: impl FnOnce(&Path) -> std::io::Result<T>,
) -> Result<T, Trouble> {
    act(path).map_err(|error| Trouble::system(path.display().to_string(), error))
}
