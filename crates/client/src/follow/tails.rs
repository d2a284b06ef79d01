//! Both logs of one run, as they grow.

use std::path::PathBuf;

use descartes_agents::reader::Source;
use descartes_store::layout::RunDir;
use descartes_store::logs::LogTail;

use super::{LoopUpdate, Output};

/// So much of each stream is taken in one look.
const ONE_LOOK: usize = 256 << 10;
/// A view that is further behind than this skips ahead.
const FAR_BEHIND: u64 = 1 << 20;
/// So much of the end is shown after a skip.
const LANDING: u64 = 64 << 10;

/// Whether a look took all there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    All,
    More,
}

#[derive(Debug)]
pub(super) struct Tails {
    dir: RunDir,
    run: u64,
    iteration: u32,
    tails: [(Source, LogTail); 2],
}

impl Tails {
    pub(super) fn new(dir: RunDir, run: u64, iteration: u32) -> Self {
        let tails = [
            (Source::Stdout, LogTail::from(&dir.stdout(), 0)),
            (Source::Stderr, LogTail::from(&dir.stderr(), 0)),
        ];
        Self {
            dir,
            run,
            iteration,
            tails,
        }
    }

    pub(super) fn read(&mut self, output: Output, news: &mut Vec<LoopUpdate>) -> Read {
        match output {
            Output::No | Output::All => {}
            Output::Newest => self.catch_up(FAR_BEHIND, LANDING, news),
            Output::Growth => {
                self.catch_up(0, 0, news);
                return Read::All;
            }
        }
        let mut left = Read::All;
        for (source, tail) in &mut self.tails {
            let mut bytes = Vec::new();
            // A log that cannot be read, or is gone, is a log that is not shown.
            let read = tail.read_new(&mut bytes, ONE_LOOK).unwrap_or(0);
            if read >= ONE_LOOK {
                left = Read::More;
            }
            if read > 0 {
                news.push(LoopUpdate::Output {
                    run: self.run,
                    iteration: self.iteration,
                    source: *source,
                    bytes,
                });
            }
        }
        left
    }

    /// Skips what is more than `far` behind, up to the last `landing` bytes.
    fn catch_up(&mut self, far: u64, landing: u64, news: &mut Vec<LoopUpdate>) {
        for at in 0..self.tails.len() {
            let (source, tail) = &self.tails[at];
            let (source, path) = (*source, self.path(*source));
            let length = descartes_store::safe_open::metadata(&path).map_or(0, |meta| meta.len());
            if length.saturating_sub(tail.offset()) > far {
                let landing = length - landing;
                news.push(LoopUpdate::Skipped {
                    run: self.run,
                    iteration: self.iteration,
                    source,
                    bytes: landing - tail.offset(),
                });
                self.tails[at] = (source, LogTail::from(&path, landing));
            }
        }
    }

    fn path(&self, source: Source) -> PathBuf {
        match source {
            Source::Stdout => self.dir.stdout(),
            Source::Stderr => self.dir.stderr(),
        }
    }
}
