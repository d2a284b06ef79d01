//! Reading a journal from its end: what a status needs of a hundred thousand iterations
//! stands in the last few lines.

use super::JournalError;
use super::line::{self, BadLine, MAX_LINE};
use super::scan::unreadable;
use crate::ops;
use descartes_kernel::event::Record;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK: usize = 64 << 10;

/// The whole lines of a file, last one first. A last line that is not finished is passed over.
pub(super) struct BackLines<'a> {
    path: &'a Path,
    file: &'a File,
    /// Where `held` begins in the file.
    start: u64,
    /// Bytes not given out yet; once a line was given out, they end in a line end.
    held: Vec<u8>,
}

impl<'a> BackLines<'a> {
    /// Returns the lines and the byte behind the last whole one.
    pub fn new(path: &'a Path, file: &'a File) -> Result<(Self, u64), JournalError> {
        let len = file.metadata().map_err(ops::at("inspect", path))?.len();
        let mut lines = Self {
            path,
            file,
            start: len,
            held: Vec::new(),
        };
        while !lines.held.contains(&b'\n') && lines.start > 0 {
            lines.load()?;
        }
        let whole = lines
            .held
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        lines.held.truncate(whole);
        let end = lines.start + whole as u64;
        Ok((lines, end))
    }

    /// Puts the block before what is held in front of it; blocks grow, so that a long line
    /// is not copied again and again.
    fn load(&mut self) -> Result<(), JournalError> {
        if self.held.len() > MAX_LINE {
            return Err(endless(self.path, self.start));
        }
        let size = BLOCK.max(self.held.len()).min(self.start as usize);
        self.start -= size as u64;
        let mut block = vec![0; size];
        let read = self.file.read_exact_at(&mut block, self.start);
        read.map_err(ops::at("read", self.path))?;
        block.append(&mut self.held);
        self.held = block;
        Ok(())
    }

    /// Reads the line before the last one given out.
    pub fn previous(&mut self) -> Result<Option<Record>, JournalError> {
        let Some(end) = self.held.len().checked_sub(1) else {
            return match self.start {
                0 => Ok(None),
                _ => self.load().and_then(|()| self.previous()),
            };
        };
        match self.held[..end].iter().rposition(|byte| *byte == b'\n') {
            None if self.start > 0 => self.load().and_then(|()| self.previous()),
            before => {
                let begin = before.map_or(0, |before| before + 1);
                let byte = self.start + begin as u64;
                let record = read_line(self.path, byte, &self.held[begin..end], &mut Vec::new());
                self.held.truncate(begin);
                record.map(Some)
            }
        }
    }
}

/// More bytes without a line end than any event has.
pub(super) fn endless(path: &Path, byte: u64) -> JournalError {
    JournalError::Damaged {
        path: path.to_owned(),
        byte,
        why: format!("a line of more than {} MiB", MAX_LINE >> 20),
    }
}

/// Reads one line, and names the byte where it cannot.
pub(super) fn read_line(
    path: &Path,
    byte: u64,
    raw: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Record, JournalError> {
    match line::decode(raw, scratch) {
        Ok((_, record)) => Ok(record),
        Err(BadLine::Damaged(why)) => Err(JournalError::Damaged {
            path: path.to_owned(),
            byte,
            why,
        }),
        Err(BadLine::Unreadable { v, why }) => Err(unreadable(path, byte, v, why)),
    }
}

/// The last `count` records of a journal, oldest first, without reading what stands before.
pub fn last_records(path: &Path, count: usize) -> Result<Vec<Record>, JournalError> {
    let file = ops::open_read(path)?;
    let (mut lines, _) = BackLines::new(path, &file)?;
    let mut records = Vec::new();
    while records.len() < count {
        match lines.previous()? {
            Some(record) => records.push(record),
            None => break,
        }
    }
    records.reverse();
    Ok(records)
}

/// The end of a journal; see [`end_from`].
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEnd {
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// Where the journal ended: a [`JournalReader`](super::JournalReader) goes on from here.
    pub offset: u64,
}

/// The last record for which `wanted` holds, and all behind it; `None` where it does not
/// stand among the last `most`.
pub fn end_from(
    path: &Path,
    most: usize,
    mut wanted: impl FnMut(&Record) -> bool,
) -> Result<Option<JournalEnd>, JournalError> {
    let file = ops::open_read(path)?;
    let (mut lines, offset) = BackLines::new(path, &file)?;
    let mut records = Vec::new();
    while records.len() < most
        && let Some(record) = lines.previous()?
    {
        let found = wanted(&record);
        records.push(record);
        if found {
            records.reverse();
            return Ok(Some(JournalEnd { records, offset }));
        }
    }
    Ok(None)
}

/// The last record for which `wanted` holds, looking from the end.
pub fn find_last(
    path: &Path,
    mut wanted: impl FnMut(&Record) -> bool,
) -> Result<Option<Record>, JournalError> {
    let file = ops::open_read(path)?;
    let (mut lines, _) = BackLines::new(path, &file)?;
    while let Some(record) = lines.previous()? {
        if wanted(&record) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}
