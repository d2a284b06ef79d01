//! The files of an OpenSpec change: those of its usual workflow, or of one that the project has made.

use std::path::{Path, PathBuf};

use descartes_plans::lists::{OpenSpecSchema, openspec_schema_name, path_fits};
use descartes_store::safe_open::read_user_text;

/// Files of a change that are looked at, at the most, and how deep.
const MOST: usize = 200;
const DEPTH: usize = 5;

/// The folder of the change that a path lies in: `openspec/changes/NAME`.
pub(super) fn change_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| {
        let above = folder.parent();
        let is_named = |at: Option<&Path>, name: &str| {
            at.and_then(Path::file_name)
                .is_some_and(|seen| seen == name)
        };
        let is_archive = folder.file_name().is_some_and(|name| name == "archive");
        is_named(above, "changes")
            && is_named(above.and_then(Path::parent), "openspec")
            && !is_archive
    })
}

/// The archived change that a path lies in: `openspec/changes/archive/NAME`.
pub(super) fn archived_change_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| {
        let above = folder.ancestors().skip(1).filter_map(Path::file_name);
        above.take(3).eq(["archive", "changes", "openspec"])
    })
}

/// The workflow of a change, where the project has made one of its own.
fn schema_of(change: &Path) -> Option<OpenSpecSchema> {
    let openspec = change.parent()?.parent()?;
    let read = |path: PathBuf| read_user_text(&path).ok();
    let own = read(change.join(".openspec.yaml"));
    let config = read(openspec.join("config.yaml"));
    let name = own.as_deref().and_then(openspec_schema_name);
    let name = name.or_else(|| config.as_deref().and_then(openspec_schema_name))?;
    let text = read(openspec.join("schemas").join(name).join("schema.yaml"))?;
    Some(OpenSpecSchema::read(&text))
}

/// The files of a change that hold its tasks: `tasks.md`, or what its workflow says.
pub(super) fn task_files(change: &Path) -> Vec<PathBuf> {
    let tracks = schema_of(change).and_then(|schema| schema.tracks);
    let tracks = tracks.unwrap_or_else(|| "tasks.md".to_owned());
    files_that_fit(change, &tracks)
}

/// The other files of a change, where its workflow names them.
pub(super) fn own_documents(change: &Path) -> Option<Vec<PathBuf>> {
    let schema = schema_of(change)?;
    let patterns = schema.documents.iter();
    let found = patterns.flat_map(|pattern| files_that_fit(change, pattern));
    let mut documents: Vec<PathBuf> = Vec::new();
    for file in found {
        if !documents.contains(&file) {
            documents.push(file);
        }
    }
    Some(documents)
}

fn files_that_fit(change: &Path, pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains(['*', '?']) {
        let file = change.join(pattern);
        return file.is_file().then_some(file).into_iter().collect();
    }
    let mut all = Vec::new();
    collect(change, DEPTH, &mut all);
    let fits = |file: &PathBuf| {
        let inside = file.strip_prefix(change).unwrap_or(file);
        path_fits(pattern, &inside.to_string_lossy())
    };
    all.retain(fits);
    all
}

/// The files below a folder, in the order of their names; links are not followed.
fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs_err::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs_err::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 {
            collect(&entry.path(), depth - 1, found);
        } else if kind.is_file() && found.len() < MOST {
            found.push(entry.path());
        }
    }
}
