//! The end of a log, and what is added to it.

use super::gaps::{Gaps, Piece, read_piece};
use super::reader::{open, words_for};
use crate::layout::RunDir;
use crate::safe_open;
use jiff::Timestamp;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a log that are read at once.
const AT_ONCE: usize = 256 << 10;

/// When a run last wrote anything, as far as its logs tell.
pub fn last_output(run: &RunDir) -> Option<Timestamp> {
    let logs = [run.stdout(), run.stderr()];
    let written = logs.iter().filter_map(|log| {
        let modified = safe_open::metadata(log).and_then(|meta| meta.modified());
        Timestamp::try_from(modified.ok()?).ok()
    });
    written.max()
}

/// The last `lines` lines of a log, or fewer where they would be more than `most` bytes.
/// The first one is then cut. Reads no more than that.
pub fn tail(path: &Path, lines: usize, most: usize) -> io::Result<Vec<u8>> {
    let Some(file) = open(path)? else {
        return Ok(Vec::new());
    };
    let gaps = Gaps::load(path);
    let end = file.metadata()?.len();
    let after_gap = gaps
        .dropped
        .iter()
        .map(|gap| gap.end)
        .filter(|gap| *gap < end)
        .max();
    let start = after_gap.unwrap_or(0).max(end.saturating_sub(most as u64));
    let mut bytes = vec![0; (end - start) as usize];
    file.read_exact_at(&mut bytes, start)?;
    // The line end of the last line ends no line before it.
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes).len();
    let cut = (0..body)
        .rev()
        .filter(|i| bytes[*i] == b'\n')
        .nth(lines.saturating_sub(1));
    match (lines, cut) {
        (0, _) => bytes.clear(),
        (_, Some(cut)) => drop(bytes.drain(..=cut)),
        (_, None) => {}
    }
    Ok(bytes)
}

/// Follows a log as it grows. Looks only when asked to.
#[derive(Debug, Clone)]
pub struct LogTail {
    path: PathBuf,
    offset: u64,
}

impl LogTail {
    /// Follows from a place in the log; 0 is its beginning. It need not be there yet.
    pub fn from(path: &Path, offset: u64) -> Self {
        Self {
            path: path.to_owned(),
            offset,
        }
    }

    /// Follows what is added from now on.
    pub fn from_end(path: &Path) -> Self {
        let len = crate::safe_open::metadata(path).map_or(0, |meta| meta.len());
        Self::from(path, len)
    }

    /// Where the next bytes are read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Adds what is new to `out`, at most about `most` bytes, and returns how much was added.
    /// Where bytes were dropped, it says so; a log that was begun anew is read anew.
    pub fn read_new(&mut self, out: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let Some(file) = open(&self.path)? else {
            return Ok(0);
        };
        let before = out.len();
        let ends = |gap: &std::ops::Range<u64>| gap.end;
        let known = Gaps::load(&self.path)
            .dropped
            .iter()
            .map(ends)
            .max()
            .unwrap_or(0);
        if self.offset > file.metadata()?.len().max(known) {
            self.offset = 0;
        }
        // Taken cleared, once: in a program made small, clearing bytes in place is as slow as reading them.
        let mut buffer = vec![0; most.min(AT_ONCE)];
        while out.len() - before < most {
            let room = (most - (out.len() - before)).min(buffer.len());
            let buffer = &mut buffer[..room];
            match read_piece(&self.path, &file, self.offset, buffer)? {
                Piece::End => break,
                Piece::Data(read) => {
                    out.extend_from_slice(&buffer[..read]);
                    self.offset += read as u64;
                }
                Piece::Gap { until, bytes } => {
                    self.offset = until;
                    out.extend_from_slice(words_for(bytes).as_bytes());
                }
            }
        }
        Ok(out.len() - before)
    }
}
