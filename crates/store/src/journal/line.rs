//! One line of the journal: how it is written and how it is known to be whole.

use descartes_kernel::event::{FORMAT, Record};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// A line longer than this is damage, not an event.
pub(super) const MAX_LINE: usize = 64 << 20;
/// `,"crc":"` + eight digits + `"}`.
const TRAILER: usize = 18;

#[derive(Serialize)]
struct Written<'a, E> {
    v: u32,
    seq: u64,
    at: Timestamp,
    #[serde(flatten)]
    event: &'a E,
}

/// What every line of every format begins with.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct LineHead {
    pub v: u32,
    pub seq: u64,
}

/// Why a line is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadLine {
    /// The bytes are not those that were written.
    Damaged(String),
    /// They are, but there are no words for them here.
    Unreadable { v: u32, why: String },
}

/// Adds the line of `event` to `out`, with its line end.
pub(super) fn encode<E: Serialize>(
    out: &mut Vec<u8>,
    seq: u64,
    at: Timestamp,
    event: &E,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let result = serde_json::to_writer(
        &mut *out,
        &Written {
            v: FORMAT,
            seq,
            at,
            event,
        },
    );
    if let Err(error) = result {
        out.truncate(start);
        return Err(error);
    }
    seal(out, start);
    Ok(())
}

/// Turns the JSON object that begins at `start` into a finished line.
pub(super) fn seal(out: &mut Vec<u8>, start: usize) {
    out.pop(); // the closing brace, which comes back after the checksum
    let crc = crc32fast::hash(&out[start..]);
    // Writing to a Vec cannot fail.
    let _ = writeln!(out, ",\"crc\":\"{crc:08x}\"}}");
}

/// The bytes of a line (without line end) up to its checksum, if the checksum is right.
pub(super) fn checked(line: &[u8]) -> Result<&[u8], BadLine> {
    let split = line
        .len()
        .checked_sub(TRAILER)
        .ok_or_else(|| damaged("the line is too short"))?;
    let (body, trailer) = line.split_at(split);
    let crc = format!(",\"crc\":\"{:08x}\"}}", crc32fast::hash(body));
    if crc.as_bytes() == trailer {
        Ok(body)
    } else {
        Err(damaged("the checksum does not match the line"))
    }
}

/// Reads a line without its line end. `scratch` is memory to work in.
pub(super) fn decode(line: &[u8], scratch: &mut Vec<u8>) -> Result<(LineHead, Record), BadLine> {
    let body = checked(line)?;
    // The checksum is no part of the event: a reader that keeps unknown fields must not see it.
    scratch.clear();
    scratch.extend_from_slice(body);
    scratch.push(b'}');
    match serde_json::from_slice::<Record>(scratch) {
        Ok(record) => Ok((
            LineHead {
                v: record.v,
                seq: record.seq,
            },
            record,
        )),
        Err(error) => Err(match serde_json::from_slice::<LineHead>(scratch) {
            Ok(head) => BadLine::Unreadable {
                v: head.v,
                why: error.to_string(),
            },
            Err(_) => damaged(&error.to_string()),
        }),
    }
}

fn damaged(why: &str) -> BadLine {
    BadLine::Damaged(why.to_owned())
}
