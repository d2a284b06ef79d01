//! Writing a log, within its budget and without ever failing its caller.

use super::gaps::Gaps;
use crate::layout::RunDir;
use crate::ops::{self, IoError, Sync};
use crate::safe_open::Options;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Holes are made of whole blocks.
const BLOCK: u64 = 4096;

/// A log being written. The file is made with its first byte.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    budget: Option<u64>,
    file: Option<File>,
    offered: u64,
    stopped: Option<Stopped>,
    gaps: Gaps,
}

/// What became of the bytes of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    /// All that came.
    pub offered: u64,
    /// Those that are not in the log any more, or never were.
    pub dropped: u64,
    /// Why it ended early, if it did.
    pub stopped: Option<Stopped>,
}

/// A log that ended before its source did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The first byte that was not written.
    pub at: u64,
    /// What the system said.
    pub why: String,
}

/// Makes the folder of a run that is starting, with an empty log of its standard output: the first
/// bytes need not wait for that. What is there already stays.
pub fn expect_run(folder: &RunDir) -> Result<(), IoError> {
    ops::make_dir(folder.path(), Sync::Lazy)?;
    let path = folder.stdout();
    let made = ops::open(Options::new().write().create(), &path);
    made.map(drop).map_err(ops::at("create", &path))
}

impl LogFile {
    /// A log at `path`, of at most about `budget` bytes; `None` is unlimited.
    pub fn new(path: PathBuf, budget: Option<u64>) -> Self {
        Self {
            path,
            budget,
            file: None,
            offered: 0,
            stopped: None,
            gaps: Gaps::default(),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes came so far: the offset of the next one.
    pub fn offset(&self) -> u64 {
        self.offered
    }

    /// Takes the next bytes. Large chunks are best: each is one write.
    pub fn write(&mut self, chunk: &[u8]) {
        if chunk.is_empty() {
            return;
        }
        let start = self.offered;
        self.offered += chunk.len() as u64;
        if self.stopped.is_some() {
            return;
        }
        let result = self.put(chunk).and_then(|()| self.keep_within_budget());
        if let Err(error) = result {
            // Whatever part of the chunk got through is in the log.
            let len = self
                .file
                .as_ref()
                .and_then(|file| file.metadata().ok())
                .map(|meta| meta.len());
            let at = len.unwrap_or(start).clamp(start, self.offered);
            self.stopped = Some(Stopped {
                at,
                why: error.to_string(),
            });
        }
    }

    fn put(&mut self, chunk: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(make(&self.path)?),
        };
        ops::write_all(file, chunk)
    }

    fn keep_within_budget(&mut self) -> io::Result<()> {
        let (Some(budget), Some(file)) = (self.budget, &self.file) else {
            return Ok(());
        };
        if self.offered - self.gaps.bytes() <= budget {
            return Ok(());
        }
        // Some more than needed is dropped, so that it need not be done at every chunk.
        let head = budget / 2 / BLOCK * BLOCK;
        let tail = budget.saturating_sub(head) - budget / 8;
        let until = self.offered.saturating_sub(tail) / BLOCK * BLOCK;
        let from = self.gaps.dropped.last().map_or(head, |gap| gap.end);
        if until <= from {
            return Ok(());
        }
        let gaps = Gaps {
            dropped: std::iter::once(head..until).collect(),
        };
        gaps.store(&self.path).map_err(|error| error.source)?;
        let punched = ops::punch(file, from, until - from);
        // Where nothing is gone yet, take the note back; where that fails, the note counts.
        if punched.is_ok() || self.gaps.store(&self.path).is_err() {
            self.gaps = gaps;
        }
        punched
    }

    /// What became of the bytes so far.
    pub fn status(&self) -> LogStatus {
        let lost = self
            .stopped
            .as_ref()
            .map_or(0, |stopped| self.offered - stopped.at);
        LogStatus {
            offered: self.offered,
            dropped: self.gaps.bytes() + lost,
            stopped: self.stopped.clone(),
        }
    }

    /// Ends the log.
    pub fn finish(mut self) -> LogStatus {
        let status = self.status();
        if let Some(stopped) = &self.stopped
            && stopped.at < self.offered
        {
            self.gaps.dropped.push(stopped.at..self.offered);
            // On a full disk this may fail too; the status tells the same.
            let _ = self.gaps.store(&self.path);
        }
        status
    }
}

fn make(path: &Path) -> io::Result<File> {
    let create = || ops::open(Options::new().write().create().truncate(), path);
    let file = match create() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("."));
            ops::make_dir(folder, Sync::Lazy).map_err(|error| error.source)?;
            create()?
        }
        other => other?,
    };
    // What an earlier log of the same name had lost is not lost here.
    ops::remove_file(&Gaps::path(path)).map_err(|error| error.source)?;
    Ok(file)
}
