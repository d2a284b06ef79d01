//! Reading a log as one stream, with what was dropped said in its place.

use super::gaps::{Piece, read_piece};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What a reader gets where bytes were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapMarks {
    /// A line `[… N bytes dropped …]`.
    Shown,
    /// Nothing: only bytes that were really printed.
    Hidden,
}

/// Opens a log to read it from its first byte. One that was never begun reads as empty.
pub fn read_log(path: &Path, marks: GapMarks) -> io::Result<LogReader> {
    let file = open(path)?;
    Ok(LogReader {
        path: path.to_owned(),
        file,
        offset: 0,
        marks,
        words: VecDeque::new(),
    })
}

/// A log as one stream; see [`read_log`].
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    marks: GapMarks,
    /// Words about a gap that are still to be given out.
    words: VecDeque<u8>,
}

pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
    match crate::safe_open::open_read(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn words_for(dropped: u64) -> String {
    format!("\n[… {dropped} bytes dropped …]\n")
}

impl Read for LogReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.words.is_empty() {
                return self.words.read(buffer);
            }
            let Some(file) = &self.file else { return Ok(0) };
            match read_piece(&self.path, file, self.offset, buffer)? {
                Piece::End => return Ok(0),
                Piece::Data(read) => {
                    self.offset += read as u64;
                    return Ok(read);
                }
                Piece::Gap { until, bytes } => {
                    self.offset = until;
                    if self.marks == GapMarks::Shown {
                        self.words.extend(words_for(bytes).as_bytes());
                    }
                }
            }
        }
    }
}
