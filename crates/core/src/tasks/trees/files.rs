//! Files of worktrees: copied as they are, and removed.

use std::fs::FileTimes;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Copies a file or folder with its times, links as links: build tools look at times.
pub(super) fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    let meta = fs_err::symlink_metadata(from)?;
    if meta.is_symlink() {
        let target = fs_err::read_link(from)?;
        remove_all(to)?;
        return fs_err::os::unix::fs::symlink(target, to);
    }
    if meta.is_file() {
        if to.symlink_metadata().is_ok_and(|old| !old.is_file()) {
            remove_all(to)?;
        }
        fs_err::copy(from, to)?;
        let times = FileTimes::new().set_modified(meta.modified()?);
        let writable = meta.permissions().mode() & 0o200 != 0;
        if writable {
            fs_err::OpenOptions::new()
                .write(true)
                .open(to)?
                .into_file()
                .set_times(times)?;
        }
        return Ok(());
    }
    if !meta.is_dir() {
        // Sockets and the like are of no use elsewhere.
        return Ok(());
    }
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Copies what is not there, or is there in another state.
pub(super) fn fresher(from: &Path, to: &Path) -> std::io::Result<()> {
    // A link that a person named stands for what it points to.
    let from = &fs_err::canonicalize(from)?;
    if from.is_dir() {
        if to.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            // Never through a link.
            remove_all(to)?;
        }
        fs_err::create_dir_all(to)?;
        for entry in fs_err::read_dir(from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            match entry.file_type()?.is_dir() {
                true => fresher(&from, &to)?,
                false => fresher_file(&from, &to)?,
            }
        }
        return Ok(());
    }
    fresher_file(from, to)
}

fn fresher_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let (new, old) = (fs_err::symlink_metadata(from)?, to.symlink_metadata());
    let same = old.is_ok_and(|old| {
        old.is_file()
            && new.is_file()
            && old.len() == new.len()
            && old.modified().ok() == new.modified().ok()
    });
    match same {
        true => Ok(()),
        false => copy_all(from, to),
    }
}

/// Lets us into all folders below, and write to them: caches of modules often are as nobody may change them.
pub(super) fn open_folders(dir: &Path) {
    let Ok(meta) = dir.symlink_metadata() else {
        return;
    };
    if !meta.is_dir() {
        return;
    }
    let mode = meta.permissions().mode();
    if mode & 0o700 != 0o700 {
        // Where it is not ours nothing changes, and what needed it says so.
        drop(fs_err::set_permissions(
            dir,
            PermissionsExt::from_mode(mode | 0o700),
        ));
    }
    for entry in fs_err::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_folders(&entry.path());
        }
    }
}

/// Removes a file, link or folder; nothing there is fine.
pub(super) fn remove_all(path: &Path) -> std::io::Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs_err::remove_dir_all(path),
        Ok(_) => fs_err::remove_file(path),
        Err(_) => return Ok(()),
    };
    match gone {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The first part of a path in a tree, short of its end, that is a link and may lead elsewhere.
pub(super) fn link_above(tree: &Path, path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let mut above = above.into_iter().map(|part| tree.join(part));
    above.find(|part| part != tree && part.is_symlink())
}

/// Writes a note of ours beside a tree. Agents can reach that folder: never through a link.
pub(super) fn write_note(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    use std::io::Write;
    remove_all(path)?;
    let mut file = fs_err::OpenOptions::new();
    let mut file = file.write(true).create_new(true).open(path)?;
    file.write_all(text.as_ref())
}

/// Paths as git reads them, with a NUL after each, and these prefix before.
pub(super) fn zero_ended<'p>(prefix: &str, paths: impl Iterator<Item = &'p Path>) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(prefix.as_bytes());
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}
