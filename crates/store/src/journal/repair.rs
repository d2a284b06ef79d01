//! Mending a damaged journal, on a person's request and with the damaged file kept.

use super::JournalError;
use super::line::{self, Head};
use crate::ops::{self, Sync};
use descartes_kernel::event::FORMAT;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Where the damaged file was kept.
    pub copy: PathBuf,
    /// Lines as they were.
    pub kept: u64,
    /// Lines in which one flipped bit was set right again, with the checksum as proof.
    pub corrected: u64,
    /// Numbers whose lines are lost; each is marked by a `line_lost` event in their place.
    pub lost: Vec<u64>,
}

/// Longer lines are not searched for a flipped bit: that takes the square of their length.
const CORRECTABLE: usize = 8 << 10;

#[derive(Deserialize)]
struct Place {
    #[serde(flatten)]
    head: Head,
    at: Timestamp,
}

#[derive(Serialize)]
struct LineLost {
    kind: &'static str,
}

/// Rewrites the journal with every line that is whole or can be proven, and keeps the damaged
/// file beside it. The caller holds the loop's lock.
pub fn repair(path: &Path) -> Result<Repaired, JournalError> {
    let raw = ops::read(path)?;
    let mut done = Repaired {
        copy: free_name(path),
        kept: 0,
        corrected: 0,
        lost: Vec::new(),
    };
    let (mut out, mut next, mut last_at) = (Vec::with_capacity(raw.len()), 0, None);
    for text in provable_lines(&raw, &mut done) {
        let Some(place) = place(&text) else { continue };
        if place.head.v > FORMAT {
            return Err(JournalError::Newer {
                path: path.to_owned(),
                found: place.head.v,
            });
        }
        if place.head.seq < next {
            continue; // a line twice: the first one counts
        }
        for seq in next..place.head.seq {
            let at = last_at.unwrap_or(place.at);
            let event = LineLost { kind: "line_lost" };
            line::encode(&mut out, seq, at, &event).map_err(JournalError::Encode)?;
            done.lost.push(seq);
        }
        out.extend_from_slice(&text);
        out.push(b'\n');
        (next, last_at) = (place.head.seq + 1, Some(place.at));
    }
    ops::replace(&done.copy, &raw, Sync::Durable)?;
    ops::replace(path, &out, Sync::Durable)?;
    Ok(done)
}

/// Whole lines as they are, and between them whatever one flipped bit can explain.
fn provable_lines<'a>(raw: &'a [u8], done: &mut Repaired) -> Vec<Cow<'a, [u8]>> {
    let mut lines = Vec::new();
    let mut bad: Option<Range<usize>> = None;
    let mut begin = 0;
    for text in raw.split(|byte| *byte == b'\n') {
        let end = begin + text.len();
        if place(text).is_some() {
            lines.extend(
                bad.take()
                    .into_iter()
                    .flat_map(|bad| correct(&raw[bad], done)),
            );
            lines.push(Cow::Borrowed(text));
            done.kept += 1;
        } else if !text.is_empty() {
            // A bit flipped in a line end joins two lines, one flipped into it parts one:
            // neighbours are looked at together.
            bad = Some(bad.map_or(begin, |bad| bad.start)..end);
        }
        begin = end + 1;
    }
    lines.extend(bad.into_iter().flat_map(|bad| correct(&raw[bad], done)));
    lines
}

fn correct(bad: &[u8], done: &mut Repaired) -> Vec<Cow<'static, [u8]>> {
    let together = unflip(bad);
    let lines = together.unwrap_or_else(|| {
        bad.split(|byte| *byte == b'\n')
            .filter_map(unflip)
            .flatten()
            .collect()
    });
    done.corrected += lines.len() as u64;
    lines.into_iter().map(Cow::Owned).collect()
}

/// The lines that `text` is but for one bit. A checksum of 32 bits tells every single flipped
/// bit of a line this short from any other.
fn unflip(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    if text.len() > CORRECTABLE {
        return None;
    }
    let mut text = text.to_vec();
    for bit in 0..text.len() * 8 {
        let mask = 1u8 << (bit % 8);
        text[bit / 8] ^= mask;
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        if lines.clone().all(|line| place(line).is_some()) {
            return Some(lines.map(<[u8]>::to_vec).collect());
        }
        text[bit / 8] ^= mask;
    }
    None
}

fn place(text: &[u8]) -> Option<Place> {
    let mut object = line::checked(text).ok()?.to_vec();
    object.push(b'}');
    serde_json::from_slice(&object).ok()
}

fn free_name(path: &Path) -> PathBuf {
    let first = ops::beside(path, ".damaged");
    let more = (2u32..).map(|count| ops::beside(path, &format!(".damaged-{count}")));
    std::iter::once(first)
        .chain(more)
        .find(|name| !crate::safe_open::is_there(name))
        .unwrap_or_default()
}
