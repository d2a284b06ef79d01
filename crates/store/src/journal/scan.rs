//! Reading a journal from the first byte, and telling a torn end from damage.

use super::line::{self, BadLine, LineHead, MAX_LINE};
use super::{Cut, JournalError, Recovered};
use crate::ops;
use descartes_kernel::event::{FORMAT, Record};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// What was found between the first byte and the last.
pub(super) struct Scan {
    /// Where the last whole line ends; everything after it is to be cut off.
    pub good: u64,
    /// The number that the next line gets.
    pub next_seq: u64,
    pub recovered: Recovered,
}

/// Where the first line that could not be taken begins, and how the file goes on from there.
struct Bad {
    byte: u64,
    why: String,
    torn: Torn,
}

/// Whether a bad line can be the trace of an append that was cut short.
#[derive(PartialEq)]
enum Torn {
    /// The line has no end, or holds the zeros of blocks that never reached the disk.
    Yes,
    /// It was finished, and is not what was finished.
    No,
}

/// A flipped bit makes one zero byte, a block that was never written makes many.
const HOLE: [u8; 8] = [0; 8];

/// Gives each record to `each`, in order.
pub(super) fn scan(
    path: &Path,
    file: &File,
    mut each: impl FnMut(Record),
) -> Result<Scan, JournalError> {
    let mut input = BufReader::with_capacity(256 << 10, file);
    let (mut raw, mut scratch) = (Vec::new(), Vec::new());
    let mut scan = Scan {
        good: 0,
        next_seq: 0,
        recovered: Recovered::default(),
    };
    let (mut offset, mut bad) = (0u64, None::<Bad>);
    loop {
        raw.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = (&mut input).take(limit).read_until(b'\n', &mut raw);
        let read = read.map_err(ops::at("read", path))? as u64;
        if read == 0 {
            break;
        }
        match (take(&raw, &mut scratch), &mut bad) {
            (Ok(taken), None) => {
                check_head(path, offset, taken.head, scan.next_seq)?;
                scan.next_seq = taken.head.seq + 1;
                scan.good = offset + taken.used;
                scan.recovered.line_end_added = taken.used != read || raw.last() != Some(&b'\n');
                each(taken.record);
            }
            (Ok(_), Some(first)) => return Err(first.damaged(path)),
            (Err(BadLine::Unreadable { v, why }), None) => {
                return Err(unreadable(path, offset, v, why));
            }
            (Err(BadLine::Unreadable { .. }), Some(first)) => return Err(first.damaged(path)),
            (Err(BadLine::Damaged(why)), None) => {
                bad = Some(Bad {
                    byte: offset,
                    why,
                    torn: torn(&raw),
                });
            }
            (Err(BadLine::Damaged(_)), Some(first)) => {
                // Two bad lines in a row are only a torn end if zeros stand in it.
                if !has_hole(&raw) && first.torn == Torn::Yes && raw.last() == Some(&b'\n') {
                    first.torn = Torn::No;
                }
            }
        }
        offset += read;
    }
    if let Some(first) = bad {
        if first.torn == Torn::No {
            return Err(first.damaged(path));
        }
        scan.recovered.cut = Some(Cut {
            at_byte: scan.good,
            bytes: offset - scan.good,
        });
    }
    Ok(scan)
}

struct ScannedLine {
    head: LineHead,
    record: Record,
    /// Bytes of the line that belong to it, its own line end included where it has one.
    used: u64,
}

fn take(raw: &[u8], scratch: &mut Vec<u8>) -> Result<ScannedLine, BadLine> {
    if let Some(body) = raw.strip_suffix(b"\n") {
        let (head, record) = line::decode(body, scratch)?;
        return Ok(ScannedLine {
            head,
            record,
            used: raw.len() as u64,
        });
    }
    // Cut exactly before the line end, or with a line end that is not one any more: the event
    // itself is whole, and a whole event is never thrown away.
    let whole = line::decode(raw, scratch).map(|taken| (taken, raw.len()));
    let without_last = &raw[..raw.len().saturating_sub(1)];
    let ((head, record), used) = whole.or_else(|error| {
        let shorter = line::decode(without_last, scratch).map(|taken| (taken, without_last.len()));
        shorter.map_err(|_| error)
    })?;
    Ok(ScannedLine {
        head,
        record,
        used: used as u64,
    })
}

pub(super) fn check_head(
    path: &Path,
    byte: u64,
    head: LineHead,
    next_seq: u64,
) -> Result<(), JournalError> {
    if head.v > FORMAT {
        return Err(JournalError::Newer {
            path: path.to_owned(),
            found: head.v,
        });
    }
    if head.seq != next_seq {
        let why = format!(
            "found line number {} where {next_seq} was expected",
            head.seq
        );
        return Err(JournalError::Damaged {
            path: path.to_owned(),
            byte,
            why,
        });
    }
    Ok(())
}

pub(super) fn unreadable(path: &Path, byte: u64, v: u32, why: String) -> JournalError {
    let path = path.to_owned();
    match v {
        v if v > FORMAT => JournalError::Newer { path, found: v },
        _ => JournalError::Unreadable { path, byte, why },
    }
}

impl Bad {
    fn damaged(&self, path: &Path) -> JournalError {
        JournalError::Damaged {
            path: path.to_owned(),
            byte: self.byte,
            why: self.why.clone(),
        }
    }
}

fn torn(raw: &[u8]) -> Torn {
    match raw.last() == Some(&b'\n') && !has_hole(raw) {
        true => Torn::No,
        false => Torn::Yes,
    }
}

fn has_hole(raw: &[u8]) -> bool {
    raw.windows(HOLE.len()).any(|window| window == HOLE)
}
