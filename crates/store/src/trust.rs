//! What the user has trusted, project by project: a hash over the keys that need trust and the
//! project's real path. It is kept in the state folder, never in the project itself.

use crate::layout::{EnvPaths, StateRoot, canonical, hex};
use crate::ops::{self, IoError, Sync};
use crate::safe_open;
use descartes_kernel::trust::{Powers, Standing};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A record that is longer was not written by us.
const LARGEST: u64 = 8 * 1024 * 1024;

/// Which file of a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// `.descartes/config.toml`.
    Config,
    /// `[swarm.backpressure]` of `.scud/config.toml`.
    ScudGates,
}

/// A hash over keys that need trust, the file they stand in and the project's real path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

/// What was trusted of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    digest: Digest,
    /// The keys as they were, to show what changed.
    #[serde(default)]
    pub keys: Powers,
    pub at: Timestamp,
}

/// The file that is kept for a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TrustRecord {
    version: u32,
    /// For people who look.
    project: String,
    #[serde(default)]
    trusted: BTreeMap<Subject, Trusted>,
}

/// Why trust cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Whoever writes the project could write its record.
    #[error(
        "the state folder {} is inside the project: its contents could have come with the project",
        .0.display()
    )]
    Inside(PathBuf),
}

/// What is trusted of one project.
#[derive(Debug, Clone)]
pub struct TrustBook {
    /// The project's real path.
    project: PathBuf,
    /// The record; `None` where the state folder lies in the project.
    file: Result<PathBuf, PathBuf>,
}

impl TrustBook {
    /// The book of a project.
    pub fn of(root: &StateRoot, paths: &EnvPaths, project: &Path) -> Result<Self, IoError> {
        let project = canonical(project)?;
        let folder = canonical(root.path())?;
        // Who works in the home folder itself has nowhere else to keep anything.
        let home = paths.home.as_ref().and_then(|home| canonical(home).ok());
        let is_home = home.is_some_and(|home| home.starts_with(&project));
        let file = match folder.starts_with(&project) && !is_home {
            true => Err(folder),
            false => {
                let name = hex(&Sha256::digest(project.as_os_str().as_bytes()));
                Ok(folder.join("trust").join(format!("{}.json", &name[..32])))
            }
        };
        Ok(Self { project, file })
    }

    /// The project's real path.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The hash of these keys in this project.
    pub fn digest(&self, subject: Subject, keys: &Powers) -> Digest {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(b"descartes trust 1");
        part(match subject {
            Subject::Config => b"config",
            Subject::ScudGates => b"scud gates",
        });
        part(self.project.as_os_str().as_bytes());
        for (key, value) in keys {
            part(key.as_bytes());
            part(value.as_bytes());
        }
        Digest(hex(&hash.finalize()))
    }

    /// What was trusted. A record that cannot be read, or that others could have written, is none.
    pub fn trusted(&self, subject: Subject) -> Option<Trusted> {
        self.read()?.trusted.remove(&subject)
    }

    /// How these keys stand to what was trusted.
    pub fn standing(&self, subject: Subject, keys: &Powers) -> Standing {
        let trusted = self.trusted(subject);
        let holds = trusted
            .as_ref()
            .is_some_and(|trusted| trusted.digest == self.digest(subject, keys));
        Standing::of(keys, trusted.is_some(), holds)
    }

    /// Keeps that the user trusts these keys.
    pub fn keep(&self, subject: Subject, keys: &Powers, at: Timestamp) -> Result<(), TrustError> {
        let file = self.file()?;
        let mut record = self.read().unwrap_or_default();
        record.version = 1;
        record.project = self.project.display().to_string();
        let trusted = Trusted {
            digest: self.digest(subject, keys),
            keys: keys.clone(),
            at,
        };
        record.trusted.insert(subject, trusted);
        let bytes = serde_json::to_vec_pretty(&record)
            .map_err(|error| IoError::new("write", file, error.into()))?;
        if let Some(folder) = file.parent() {
            ops::make_dir(folder, Sync::Durable)?;
        }
        Ok(ops::replace_shared(file, &bytes, Sync::Durable)?)
    }

    /// Forgets the project; tells whether there was something to forget.
    pub fn revoke(&self) -> Result<bool, TrustError> {
        let file = self.file()?;
        let there = std::fs::symlink_metadata(file).is_ok();
        ops::remove_file(file)?;
        Ok(there)
    }

    fn file(&self) -> Result<&Path, TrustError> {
        match &self.file {
            Ok(file) => Ok(file),
            Err(folder) => Err(TrustError::Inside(folder.clone())),
        }
    }

    fn read(&self) -> Option<TrustRecord> {
        let file = safe_open::open_read(self.file.as_ref().ok()?).ok()?;
        let meta = file.metadata().ok()?;
        let own = meta.mode() & 0o077 == 0;
        if !own || meta.len() > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice::<TrustRecord>(&bytes)
            .ok()
            .filter(|record| record.version == 1)
    }
}
