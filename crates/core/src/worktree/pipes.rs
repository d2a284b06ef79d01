//! Named pipes where git expects a file of its own: it opens `.gitattributes` and the like wherever
//! they are, and waits for a pipe forever.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::deadline::Deadline;

/// Files that git opens in a work tree whatever they are.
const OPENED: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// Longer than this is not looked for any: it is to save time.
const LOOKING: Duration = Duration::from_millis(1500);

/// Those below a folder that are no files, also in repositories inside it: git asks these for their commit.
pub(crate) fn pipes(root: &Path) -> Vec<PathBuf> {
    let deadline = Deadline::after(LOOKING);
    let (mut found, mut folders) = (Vec::new(), vec![(root.to_owned(), false)]);
    while let Some((folder, is_of_git)) = folders.pop() {
        if deadline.check().is_err() {
            break;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if kind.is_dir() {
                let begins_git = name == ".git";
                let is_looked_at =
                    !(begins_git && folder == root || is_of_git && name == "objects");
                folders.extend(is_looked_at.then(|| (entry.path(), is_of_git || begins_git)));
            } else if kind.is_fifo() && (is_of_git || OPENED.iter().any(|opened| name == *opened)) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Whether this is a pipe.
pub(crate) fn is_pipe(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_fifo())
}

/// The first one, for people.
pub(crate) fn pipe_in(root: &Path) -> Option<String> {
    let path = pipes(root).into_iter().next()?;
    let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
    let quoted = shell_words::quote(&name);
    Some(format!(
        "{name} is a named pipe, and git would wait for it forever; type first: rm {quoted}"
    ))
}
