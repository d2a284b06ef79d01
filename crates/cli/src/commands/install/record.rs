//! What was put into a settings file, written down in the state folder: while the file is as it was left,
//! exactly that can be taken out again.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::insertion::Insertion;
use super::settings_text;

const FOLDER: &str = "installed";

#[derive(Debug, Serialize, Deserialize)]
pub struct InstallRecord {
    /// Hash of the file as it was left.
    after: String,
    /// What was put in, in the order of the file before.
    inserted: Vec<(usize, String)>,
    /// The file was not there before.
    pub made_file: bool,
    /// Folders that were not there before, innermost first.
    pub made_folders: Vec<PathBuf>,
}

impl InstallRecord {
    pub fn new(
        after: &str,
        new: &[Insertion],
        made_file: bool,
        made_folders: Vec<PathBuf>,
    ) -> Self {
        let inserted = new.iter().map(|one| (one.at, one.text.clone()));
        Self {
            after: hash(after.as_bytes()),
            inserted: inserted.collect(),
            made_file,
            made_folders,
        }
    }

    /// What is known of a settings file; one that cannot be read is none.
    pub fn read(root: &Path, settings: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path(root, settings)).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub fn write(&self, root: &Path, settings: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(root.join(FOLDER))?;
        std::fs::write(path(root, settings), serde_json::to_string(self)?)
    }

    /// The text before, where this is the one that was left.
    pub fn before(&self, text: &str) -> Option<String> {
        let inserted = self.inserted.iter().cloned();
        let inserted: Vec<Insertion> = inserted
            .map(|(at, text)| Insertion::new(at, text))
            .collect();
        match hash(text.as_bytes()) == self.after {
            true => settings_text::before(text, &inserted),
            false => None,
        }
    }
}

/// Nothing is known of it any more.
pub fn forget(root: &Path, settings: &Path) {
    drop(std::fs::remove_file(path(root, settings)));
}

fn path(root: &Path, settings: &Path) -> PathBuf {
    let name = hash(settings.as_os_str().as_encoded_bytes());
    root.join(FOLDER).join(format!("{}.json", &name[..16]))
}

fn hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
