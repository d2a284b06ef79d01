//! Where the work tree is, and what in it never counts.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::own_output;

/// How changes are noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// Told by the kernel where that can be relied on, with a look at every file now and then.
    #[default]
    WherePossible,
    /// By a look at every file.
    Never,
}

/// Our own folder, wherever it lies, is never part of anything.
pub(super) const OWN_FOLDER: &str = ".descartes";

/// What stays the same for all looks at one work tree.
#[derive(Clone, Debug)]
pub(super) struct ScanRoot {
    pub(super) root: PathBuf,
    /// Paths below it that do not count whatever the rules say, with all below them.
    pub(super) apart: BTreeSet<PathBuf>,
    pub(super) watching: Watching,
}

impl ScanRoot {
    pub(super) fn new(root: PathBuf, apart: &[PathBuf], watching: Watching) -> ScanRoot {
        let below = |path: &PathBuf| {
            let path = real(path)?.strip_prefix(&root).ok()?.to_path_buf();
            (!path.as_os_str().is_empty()).then_some(path)
        };
        let own = own_output::now();
        let apart = apart.iter().chain(&own).filter_map(below).collect();
        ScanRoot {
            root,
            apart,
            watching,
        }
    }

    /// Whether a path below the root never counts.
    pub(super) fn is_apart(&self, path: &Path) -> bool {
        path.components().any(|part| part.as_os_str() == OWN_FOLDER)
            || path.ancestors().any(|path| self.apart.contains(path))
    }

    /// The same for git: everything that counts.
    pub(super) fn pathspecs(&self) -> Vec<OsString> {
        let mut specs = vec![
            ".".into(),
            format!(":(exclude,glob)**/{OWN_FOLDER}/**").into(),
        ];
        for path in &self.apart {
            let mut spec = OsString::from(":(exclude,literal)");
            spec.push(path);
            specs.push(spec);
        }
        specs
    }
}

/// The path without links on the way, though the last part may not exist yet.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    match fs::canonicalize(&path) {
        Ok(path) => Some(path),
        Err(_) => Some(real(path.parent()?)?.join(path.file_name()?)),
    }
}
