//! Files that our own output goes to (`> run.log`, `nohup`, `| tee run.log`): each line that we print changes them,
//! and would be taken for work of the agent. Whoever looks at the snapshots later prints elsewhere,
//! so that they are noted beside them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use descartes_proc::files_behind_pipe;

use super::text;

/// Those of this process.
pub(super) fn now() -> Vec<PathBuf> {
    let files = [1, 2].into_iter().flat_map(|fd| {
        let direct = fs::read_link(format!("/proc/self/fd/{fd}")).ok();
        let direct = direct.filter(|path| path.is_file());
        direct.into_iter().chain(files_behind_pipe(fd))
    });
    let files: BTreeSet<PathBuf> = files.collect();
    files.into_iter().collect()
}

/// Writes down those of this process, for all who open the same snapshots later. It is no loss of
/// work where it fails: the safety copy of a rewind has such a file.
pub(crate) fn note(objects: &Path) {
    let known = noted(objects);
    let new = now().into_iter().filter(|path| !known.contains(path));
    let new: Vec<PathBuf> = new.collect();
    if new.is_empty() || fs::create_dir_all(objects).is_err() {
        return;
    }
    let bytes = text::zero_joined(new.iter().map(PathBuf::as_path));
    let mut options = fs::OpenOptions::new();
    if let Ok(mut file) = options.append(true).create(true).open(place(objects)) {
        drop(file.write_all(&bytes));
    }
}

/// Files that hosts of the loop with these snapshots printed to.
pub fn noted(objects: &Path) -> Vec<PathBuf> {
    let bytes = fs::read(place(objects)).unwrap_or_default();
    text::zero_ended(&bytes).map(text::path).collect()
}

fn place(objects: &Path) -> PathBuf {
    objects.join("own-output")
}
