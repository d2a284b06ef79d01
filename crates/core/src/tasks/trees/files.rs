//! Files of worktrees and our notes beside them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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

/// Writes a note of ours beside a tree. Agents can reach that folder: never through a link.
pub(super) fn write_note(path: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    use std::io::Write;
    remove_all(path)?;
    let mut file = fs_err::OpenOptions::new();
    let mut file = file.write(true).create_new(true).open(path)?;
    file.write_all(text.as_ref())
}

/// Whether an error says that nothing is there.
pub(in crate::tasks) fn is_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// What a note of ours says; none where there is none. One that cannot be read is not taken for that.
pub(super) fn read_note(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match fs_err::symlink_metadata(path) {
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(error),
        // An agent put it there, and may as well have removed ours.
        Ok(meta) if meta.is_symlink() => return Ok(None),
        Ok(meta) if meta.is_file() => {}
        Ok(_) => {
            let message = format!("{} is no file of ours", path.display());
            return Err(std::io::Error::other(message));
        }
    }
    fs_err::read(path).map(Some)
}

/// Removes a file, and the folders above it that are empty then.
pub(super) fn remove_with_folders(top: &Path, path: &Path) -> std::io::Result<()> {
    let path = top.join(path);
    remove_all(&path)?;
    let mut folder = path.parent();
    while let Some(empty) = folder.filter(|folder| *folder != top) {
        if fs_err::remove_dir(empty).is_err() {
            break;
        }
        folder = empty.parent();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_cannot_be_read_is_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        assert_eq!(read_note(&path).unwrap(), None);
        assert_eq!(read_note(&path.join("below")).unwrap(), None);
        write_note(&path, "").unwrap();
        assert_eq!(read_note(&path).unwrap(), Some(Vec::new()));
        let error = read_note(dir.path()).unwrap_err().to_string();
        assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
        // Nobody is led elsewhere.
        write_note(&path, "theirs").unwrap();
        let link = dir.path().join("link");
        fs_err::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_note(&link).unwrap(), None);
    }
}
