//! Following a journal that somebody else writes.

use super::JournalError;
use super::back::{BackLines, endless, read_line};
use super::line::MAX_LINE;
use super::writer::same_file;
use crate::ops;
use descartes_kernel::event::Record;
use memchr::memchr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const CHUNK: usize = 256 << 10;

/// Reads a journal as it grows. Takes no lock and changes nothing.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    file: File,
    /// Where the first line not read yet begins.
    offset: u64,
    /// What was read of a line that has no end yet.
    held: Vec<u8>,
    /// That line was found to be too long for any event, and is not read again.
    endless: bool,
}

impl JournalReader {
    /// Opens a journal; the first [`read_new`](Self::read_new) begins with its first record.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_at(path, 0)
    }

    /// Opens a journal at a place that [`offset`](Self::offset) told earlier.
    pub fn open_at(path: &Path, offset: u64) -> Result<Self, JournalError> {
        let file = ops::open_read(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            offset,
            held: Vec::new(),
            endless: false,
        })
    }

    /// Opens a journal at its end and returns the last `count` records, oldest first.
    pub fn open_tail(path: &Path, count: usize) -> Result<(Self, Vec<Record>), JournalError> {
        let mut reader = Self::open(path)?;
        let (mut lines, end) = BackLines::new(path, &reader.file)?;
        let mut records = Vec::new();
        while records.len() < count {
            match lines.previous()? {
                Some(record) => records.push(record),
                None => break,
            }
        }
        records.reverse();
        reader.offset = end;
        Ok((reader, records))
    }

    /// Where the first line not read yet begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The journal that is read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that was added since the last call. A line that is still being written
    /// comes with a later call.
    pub fn read_new(&mut self) -> Result<Vec<Record>, JournalError> {
        let mut records = Vec::new();
        self.for_each_new(|record| records.push(record))?;
        Ok(records)
    }

    /// As [`read_new`](Self::read_new), for folds: nothing is collected.
    pub fn for_each_new(&mut self, mut each: impl FnMut(Record)) -> Result<(), JournalError> {
        self.read_while(|record| {
            each(record);
            ControlFlow::Continue(())
        })
    }

    /// As [`for_each_new`](Self::for_each_new), until `each` has enough. The record that it
    /// breaks at counts as read.
    pub fn read_while(
        &mut self,
        mut each: impl FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), JournalError> {
        self.reopen_if_made_anew()?;
        if self.endless {
            return Err(endless(&self.path, self.offset));
        }
        let mut held = std::mem::take(&mut self.held);
        // Bytes of a line that were read before are not looked through again.
        let (mut searched, mut earlier) = (held.len(), held.len());
        let mut scratch = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            let have = held.len();
            let read = self.file.read_at(&mut chunk, self.offset + have as u64);
            let read = read.map_err(ops::at("read", &self.path))?;
            held.extend_from_slice(&chunk[..read]);
            let mut begin = 0;
            while let Some(more) = memchr(b'\n', &held[searched..]) {
                let end = searched + more;
                let raw = &held[begin..end];
                let record = match read_line(&self.path, self.offset, raw, &mut scratch) {
                    // A writer takes out half a line that it could not finish, and writes another in
                    // its place.
                    Err(_) if earlier > 0 => return self.read_while(each),
                    other => other?,
                };
                earlier = 0;
                begin = end + 1;
                searched = begin;
                self.offset += raw.len() as u64 + 1;
                if each(record).is_break() {
                    return Ok(());
                }
            }
            held.drain(..begin);
            searched = held.len();
            if held.len() > MAX_LINE {
                self.endless = true;
                return Err(endless(&self.path, self.offset));
            }
            if read == 0 {
                self.held = held;
                return Ok(());
            }
        }
    }

    /// A journal made anew has the same bytes under the same name, in another file.
    fn reopen_if_made_anew(&mut self) -> Result<(), JournalError> {
        let ours = self
            .file
            .metadata()
            .map_err(ops::at("inspect", &self.path))?;
        let mut len = ours.len();
        if let Ok(there) = crate::safe_open::metadata(&self.path)
            && !same_file(&there, &ours)
        {
            self.file = ops::open_read(&self.path)?;
            len = there.len();
        }
        if len < self.offset + self.held.len() as u64 {
            self.held.clear();
        }
        if len <= self.offset + MAX_LINE as u64 {
            self.endless = false;
        }
        if len < self.offset {
            let what = format!("{len} bytes where {} were read before", self.offset);
            return Err(JournalError::Foreign {
                path: self.path.clone(),
                what,
            });
        }
        Ok(())
    }
}
