//! The budget of all logs of a loop: the oldest runs' logs go first.

use crate::layout::LoopDir;
use crate::ops::{self, IoError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tracing::debug;

/// A run whose logs were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrunedRun {
    pub run: u64,
    /// Room that it took on the disk.
    pub bytes: u64,
}

/// The room that a loop's logs take. Measured once, then kept by adding: what a run costs
/// does not grow with their number.
#[derive(Debug)]
pub struct LoopLogs {
    dir: LoopDir,
    budget: u64,
    used: u64,
    oldest: u64,
}

impl LoopLogs {
    /// Looks at all runs of a loop.
    pub fn measure(dir: &LoopDir, budget: u64) -> Result<Self, IoError> {
        let runs = runs(dir)?;
        let oldest = runs.iter().copied().min().unwrap_or(1);
        let used = runs.iter().map(|run| disk_use(dir.run(*run).path())).sum();
        Ok(Self {
            dir: dir.clone(),
            budget,
            used,
            oldest,
        })
    }

    /// Room that the logs take on the disk.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Counts a run that has ended, and removes the oldest ones until all fit the budget.
    /// The newest always stays.
    pub fn add(&mut self, run: u64) -> Result<Vec<PrunedRun>, IoError> {
        self.used += disk_use(self.dir.run(run).path());
        let mut pruned = Vec::new();
        while self.used > self.budget && self.oldest < run {
            let folder = self.dir.run(self.oldest);
            let bytes = disk_use(folder.path());
            if bytes > 0 {
                ops::remove_tree(folder.path())?;
                debug!(run = self.oldest, bytes, "log of an old run removed");
                pruned.push(PrunedRun {
                    run: self.oldest,
                    bytes,
                });
            }
            self.used = self.used.saturating_sub(bytes);
            self.oldest += 1;
        }
        Ok(pruned)
    }
}

fn runs(dir: &LoopDir) -> Result<Vec<u64>, IoError> {
    let folder = dir.runs();
    let entries = match crate::safe_open::names_in(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IoError::new("list", &folder, error)),
    };
    let number = |name: std::ffi::OsString| name.to_str()?.parse().ok();
    Ok(entries.into_iter().filter_map(number).collect())
}

/// Room that a file or folder takes, holes aside. What cannot be looked at counts as nothing.
pub(crate) fn disk_use(path: &Path) -> u64 {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = meta.blocks() * 512;
    if !meta.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    own + entries.map(|entry| disk_use(&entry.path())).sum::<u64>()
}
