//! A log file that is bounded: when it is half as large as allowed it becomes the older half, in the
//! place of the one before.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::LIMIT_BYTES;
use crate::ops;
use crate::safe_open::{self, Options};

/// Lines that are kept until it is known where they go.
const WAITING_BYTES: usize = 64 << 10;

/// A file and its older half.
#[derive(Debug, Default)]
pub(super) struct BoundedFile {
    path: PathBuf,
    file: Option<File>,
    /// What was logged before it had a place.
    waiting: Vec<u8>,
}

impl BoundedFile {
    /// Writes to this file from now on.
    pub(super) fn place(&mut self, path: &Path) {
        self.path = path.to_owned();
        let waiting = std::mem::take(&mut self.waiting);
        self.write(&waiting);
    }

    /// Adds a line. Where that fails it is lost, and the next one tries again.
    pub(super) fn write(&mut self, line: &[u8]) {
        if self.path.as_os_str().is_empty() {
            if self.waiting.len() + line.len() <= WAITING_BYTES {
                self.waiting.extend(line);
            }
        } else if let Err(_dropped) = self.try_write(line) {
            self.file = None;
        }
    }

    fn try_write(&mut self, line: &[u8]) -> io::Result<()> {
        let half = LIMIT_BYTES / 2;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        let meta = file.metadata()?;
        // Agents delete files and make links: a file with no name, or with two, is opened anew, and
        // a second name is refused there.
        if meta.nlink() != 1 {
            file = open(&self.path)?;
        } else if meta.len() + line.len() as u64 > half {
            safe_open::rename(&self.path, &ops::beside(&self.path, ".1"))?;
            file = open(&self.path)?;
        }
        file.write_all(line)?;
        self.file = Some(file);
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = safe_open::open(Options::new().append().create(), path)?;
    // Another version may have left more than this one keeps.
    if file.metadata()?.len() > LIMIT_BYTES / 2 {
        file.set_len(0)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(path: &Path) -> (u64, u64) {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        (size(path), size(&ops::beside(path, ".1")))
    }

    fn log_at(path: &Path) -> BoundedFile {
        let mut log = BoundedFile::default();
        log.place(path);
        log
    }

    #[test]
    fn both_halves_together_stay_below_the_limit_and_the_end_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.log");
        let mut log = log_at(&path);
        for number in 0..60_000 {
            log.write(format!("line {number} {}\n", "x".repeat(40)).as_bytes());
            if number % 5_000 == 0 {
                let (new, old) = sizes(&path);
                assert!(new + old <= LIMIT_BYTES, "{new} + {old}");
            }
        }
        let (new, old) = sizes(&path);
        assert!(
            new + old <= LIMIT_BYTES && old > LIMIT_BYTES / 3,
            "{new} + {old}"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("line 59999 "));
    }

    #[test]
    fn a_deleted_file_is_made_anew_and_a_planted_link_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.log");
        let mut log = log_at(&path);
        log.write(b"one\n");
        std::fs::remove_file(&path).unwrap();
        log.write(b"two\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        let other = folder.path().join("other");
        std::fs::write(&other, "theirs\n").unwrap();
        for plant in [
            |old: &Path, new: &Path| std::fs::hard_link(old, new),
            |old: &Path, new: &Path| std::os::unix::fs::symlink(old, new),
        ] {
            std::fs::remove_file(&path).unwrap();
            plant(&other, &path).unwrap();
            log.write(b"three\n");
            log.write(b"four\n");
            assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs\n");
        }
        std::fs::remove_file(&path).unwrap();
        log.write(b"five\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "five\n");
    }

    #[test]
    fn what_was_there_before_is_kept_as_long_as_it_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.log");
        log_at(&path).write(b"before\n");
        let mut log = BoundedFile::default();
        log.write(b"early\n");
        log.place(&path);
        log.write(b"after\n");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "before\nearly\nafter\n");
    }
}
