//! The bytes of a log that are gone.

use crate::ops::{self, IoError, Sync};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Ranges of offsets, in order, that cannot be read any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gaps {
    pub dropped: Vec<Range<u64>>,
}

/// What stands at an offset of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// So many bytes were read.
    Data(usize),
    /// Nothing until there; so many bytes were dropped.
    Gap { until: u64, bytes: u64 },
    /// Nothing (yet).
    End,
}

impl Gaps {
    pub fn path(log: &Path) -> PathBuf {
        ops::beside(log, ".cut")
    }

    /// What is known about a log; one without a `.cut` file is whole.
    pub fn load(log: &Path) -> Self {
        let text = crate::safe_open::read(&Self::path(log)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    pub fn store(&self, log: &Path) -> Result<(), IoError> {
        let path = Self::path(log);
        let text =
            serde_json::to_vec(self).map_err(|error| IoError::new("write", &path, error.into()))?;
        ops::replace(&path, &text, Sync::Lazy)
    }

    pub fn bytes(&self) -> u64 {
        self.dropped.iter().map(|gap| gap.end - gap.start).sum()
    }

    /// The first gap that touches `offset..end`.
    fn meets(&self, offset: u64, end: u64) -> Option<&Range<u64>> {
        self.dropped
            .iter()
            .find(|gap| gap.start < end && gap.end > offset)
    }
}

/// Reads at an offset. Bytes are taken before the gaps are looked up, and gaps are written down
/// before bytes go: zeros of a hole are never taken for output.
pub(super) fn read_piece(
    log: &Path,
    file: &File,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<Piece> {
    let read = file.read_at(buffer, offset)?;
    let end = offset + read.max(1) as u64;
    match Gaps::load(log).meets(offset, end) {
        Some(gap) if gap.start <= offset => Ok(Piece::Gap {
            until: gap.end,
            bytes: gap.end - gap.start,
        }),
        Some(gap) => Ok(Piece::Data((gap.start - offset) as usize)),
        None if read == 0 => Ok(Piece::End),
        None => Ok(Piece::Data(read)),
    }
}
