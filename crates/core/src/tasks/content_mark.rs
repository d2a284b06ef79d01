//! What is at a path, so that another content is told from the same.

use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::trees::is_gone;

/// Larger files are known by their size and time.
const LARGEST_HASHED: u64 = 16 * 1024 * 1024;

/// What is at a path: enough to see that another content lies there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ContentMark(String);

impl ContentMark {
    /// One that was written down.
    pub(super) fn noted(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let meta = match fs_err::symlink_metadata(path) {
            Err(error) if is_gone(&error) => return Ok(Self("gone".to_owned())),
            meta => meta?,
        };
        Ok(Self(match () {
            () if meta.is_symlink() => {
                let target = fs_err::read_link(path)?;
                format!(
                    "link {}",
                    hex(&Sha256::digest(target.as_os_str().as_bytes()))
                )
            }
            () if meta.is_file() => format!("{} {}", Self::stamp(&meta), hash_of(path, &meta)?),
            () if meta.is_dir() => "folder".to_owned(),
            () => "other".to_owned(),
        }))
    }

    /// What is known of a file without reading it.
    fn stamp(meta: &Metadata) -> String {
        let mode = meta.permissions().mode() & 0o100;
        let (size, seconds, nanos) = (meta.size(), meta.mtime(), meta.mtime_nsec());
        format!("file {mode:o} {size} {seconds}.{nanos}")
    }

    /// Whether the same is there; a file that has its time and size is not read again.
    pub(super) fn is_at(&self, path: &Path) -> std::io::Result<bool> {
        let meta = match fs_err::symlink_metadata(path) {
            Err(error) if is_gone(&error) => return Ok(self.0 == "gone"),
            // An agent shut its folder.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
            meta => meta?,
        };
        if meta.is_file() && self.0.starts_with(&format!("{} ", Self::stamp(&meta))) {
            return Ok(true);
        }
        let now = Self::of(path)?;
        // A tool that writes the same again changes nothing but the time.
        let content = |mark: &Self| -> Option<String> {
            let mut words = mark.0.split(' ').map(str::to_owned);
            let (kind, mode, size) = (words.next()?, words.next()?, words.next()?);
            let hash = words.nth(1).filter(|hash| hash != "-")?;
            (kind == "file").then(|| format!("{mode} {size} {hash}"))
        };
        Ok(now == *self || content(&now).is_some_and(|now| Some(now) == content(self)))
    }
}

fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(path: &Path, meta: &Metadata) -> std::io::Result<String> {
    if meta.size() > LARGEST_HASHED {
        return Ok("-".to_owned());
    }
    let mut text = Vec::new();
    let read = fs_err::File::open(path).and_then(|mut file| file.read_to_end(&mut text));
    match read {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok("-".to_owned()),
        Err(error) => Err(error),
        Ok(_) => Ok(hex(&Sha256::digest(&text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_content_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let there = |mark: &ContentMark| mark.is_at(&path).unwrap();
        let none = ContentMark::of(&path).unwrap();
        assert!(there(&none));
        fs_err::write(&path, "one").unwrap();
        assert!(!there(&none));
        let one = ContentMark::of(&path).unwrap();
        // Written anew, as tools do with lock files.
        fs_err::remove_file(&path).unwrap();
        fs_err::write(&path, "one").unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.into_file().set_modified(old).unwrap();
        assert!(there(&one));
        fs_err::write(&path, "two").unwrap();
        assert!(!there(&one));
        fs_err::remove_file(&path).unwrap();
        fs_err::os::unix::fs::symlink("target", &path).unwrap();
        assert!(!there(&one));
        let link = ContentMark::of(&path).unwrap();
        assert!(there(&link));
        fs_err::remove_file(&path).unwrap();
        fs_err::os::unix::fs::symlink("other", &path).unwrap();
        assert!(!there(&link));
    }
}
