//! Finding a place in a journal by halving: a hundred thousand iterations are opened in the
//! middle without reading what stands before.

use super::back::read_line;
use super::reader::JournalReader;
use super::{JournalError, ops};
use descartes_kernel::event::Record;
use memchr::memchr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Below this the rest is read line by line.
const NEAR: u64 = 64 << 10;
const BLOCK: usize = 16 << 10;

/// A reader at a place before which every record has a smaller key than `wanted`, and not far
/// before the first that has not. `key` tells a number that never falls from record to record;
/// records without one are passed over.
pub fn seek(
    path: &Path,
    wanted: u64,
    key: impl Fn(&Record) -> Option<u64>,
) -> Result<JournalReader, JournalError> {
    let file = ops::open_read(path)?;
    let mut high = file.metadata().map_err(ops::at("inspect", path))?.len();
    let mut low = 0;
    while high - low > NEAR {
        let middle = low + (high - low) / 2;
        match first_key(path, &file, middle, high, &key)? {
            Some((line, found)) if found < wanted => low = line,
            _ => high = middle,
        }
    }
    JournalReader::open_at(path, low)
}

/// The first line that begins behind `from` and before `until` and has a key.
fn first_key(
    path: &Path,
    file: &File,
    from: u64,
    until: u64,
    key: &impl Fn(&Record) -> Option<u64>,
) -> Result<Option<(u64, u64)>, JournalError> {
    let mut lines = WholeLines {
        path,
        file,
        start: from,
        held: Vec::new(),
    };
    // The line that `from` stands in began before it.
    lines.next()?;
    let mut scratch = Vec::new();
    loop {
        let at = lines.start;
        let Some(raw) = lines.next()?.filter(|_| at < until) else {
            return Ok(None);
        };
        let record = read_line(path, at, &raw, &mut scratch)?;
        if let Some(key) = key(&record) {
            return Ok(Some((at, key)));
        }
    }
}

/// Whole lines from some place on.
struct WholeLines<'a> {
    path: &'a Path,
    file: &'a File,
    /// Where `held` begins in the file.
    start: u64,
    held: Vec<u8>,
}

impl WholeLines<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>, JournalError> {
        let mut searched = 0;
        loop {
            let end = memchr(b'\n', &self.held[searched..]);
            if let Some(end) = end.map(|end| searched + end) {
                let mut line: Vec<u8> = self.held.drain(..=end).collect();
                line.pop();
                self.start += end as u64 + 1;
                return Ok(Some(line));
            }
            searched = self.held.len();
            self.held.resize(searched + BLOCK, 0);
            let place = self.start + searched as u64;
            let read = self.file.read_at(&mut self.held[searched..], place);
            let read = read.map_err(ops::at("read", self.path))?;
            self.held.truncate(searched + read);
            if read == 0 {
                return Ok(None);
            }
        }
    }
}
