//! Our own stamps.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Trouble;
use super::files::open_append;
use crate::stamp;

/// The files that get our stamps.
#[derive(Clone)]
pub(super) struct Stamps {
    files: Arc<Mutex<Vec<File>>>,
    iteration: u64,
}

impl Stamps {
    pub(super) fn new(iteration: u64) -> Self {
        Self {
            files: Arc::default(),
            iteration,
        }
    }

    pub(super) fn begin(&self, path: &Path, started: u64) -> Result<(), Trouble> {
        let mut file = open_append(path)?;
        self.line(&mut file, "start", started)
            .map_err(|error| Trouble::system(path.display().to_string(), error))?;
        self.locked().push(file);
        Ok(())
    }

    /// Stamps the end once, whoever comes first.
    pub(super) fn end(&self) {
        let files = std::mem::take(&mut *self.locked());
        let now = stamp::now_ns();
        for mut file in files {
            let _ = self.line(&mut file, "end", now);
        }
    }

    fn line(&self, file: &mut File, edge: &str, ns: u64) -> std::io::Result<()> {
        let pid = std::process::id();
        file.write_all(format!("{edge} {pid} {} {ns}\n", self.iteration).as_bytes())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
