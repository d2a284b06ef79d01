//! Safety copies: snapshots with a name, written down before anything is put back.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::WorktreeError;
use super::snapshot::Snapshot;

fn place(objects: &Path, name: &str) -> Result<PathBuf, WorktreeError> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(harmless) {
        return Err(WorktreeError::BadName {
            what: "safety copy",
            name: name.to_owned(),
        });
    }
    Ok(objects.join("safety").join(name))
}

/// Writes it down, durably. A name that is taken is not given again: the older copy would be lost.
pub(super) fn save(objects: &Path, name: &str, copy: &Snapshot) -> Result<(), WorktreeError> {
    let path = place(objects, name)?;
    let folder = objects.join("safety");
    let write = || {
        fs::create_dir_all(&folder)?;
        let mut file = tempfile::Builder::new()
            .prefix(".tmp-")
            .tempfile_in(&folder)?;
        file.write_all(&serde_json::to_vec(copy)?)?;
        file.as_file().sync_all()?;
        file.persist_noclobber(&path)?;
        File::open(&folder)?.sync_all()
    };
    match write() {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(WorktreeError::Exists {
                what: "safety copy",
                name: name.to_owned(),
            })
        }
        other => other.map_err(WorktreeError::io(path.clone())),
    }
}

pub(super) fn load(objects: &Path, name: &str) -> Result<Snapshot, WorktreeError> {
    let path = place(objects, name)?;
    let read = || Ok(serde_json::from_slice(&fs::read(&path)?)?);
    read().map_err(WorktreeError::io(path.clone()))
}

/// The names of all, sorted.
pub(super) fn names(objects: &Path) -> Vec<String> {
    let entries = fs::read_dir(objects.join("safety"))
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}
