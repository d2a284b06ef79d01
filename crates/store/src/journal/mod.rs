//! The journal: one line an event, appended and never rewritten. It is the truth about a loop;
//! everything else on disk can be rebuilt from it.
//!
//! A line is a JSON object that ends in the CRC-32 of all bytes before it:
//! `{"v":1,"seq":7,"at":"…","kind":"…",…,"crc":"89abcdef"}`. Numbers count from 0 without gaps.
//!
//! Only the holder of the loop's lock may open a [`Journal`]; a [`JournalReader`] needs nothing.

mod back;
mod line;
mod reader;
mod repair;
mod reserve;
mod scan;
mod seek;
mod writer;

pub use back::{JournalEnd, end_from, find_last, last_records};
pub use reader::JournalReader;
pub use repair::{Repaired, repair};
pub use seek::seek;
pub use writer::Journal;

use crate::ops::{self, IoError};
use descartes_kernel::event::FORMAT;
use std::path::PathBuf;

/// What opening a journal had to mend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The torn end that was cut off, if there was one.
    pub cut: Option<Cut>,
    /// The last line was whole but for its line end, which was added.
    pub line_end_added: bool,
}

/// A torn end of a journal: the last append did not get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Where the journal ends now.
    pub at_byte: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "removed {} bytes of an unfinished line at byte {}",
            self.bytes, self.at_byte
        )
    }
}

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// There is no room for another line; [`Journal::append_from_reserve`] still works.
    #[error("the disk is full: {0}")]
    Full(#[source] IoError),
    /// A line in the middle, or a finished last line, is not what was written.
    #[error("{} is damaged at byte {byte}: {why}", path.display())]
    Damaged {
        path: PathBuf,
        /// Where the first bad line begins.
        byte: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The line is whole, but this version has no words for it.
    #[error("{} has a line at byte {byte} that this version cannot read: {why}", path.display())]
    Unreadable {
        path: PathBuf,
        /// Where the line begins.
        byte: u64,
        /// What could not be understood.
        why: String,
    },
    /// A newer version wrote here; nothing was changed.
    #[error("{} was written by a newer version of descartes (format {found}, this one knows {FORMAT})", path.display())]
    Newer {
        path: PathBuf,
        /// The format that was found.
        found: u32,
    },
    /// Somebody else changed the file while we held it.
    #[error("{} was changed by another program: {what}", path.display())]
    Foreign {
        path: PathBuf,
        /// What was seen.
        what: String,
    },
    /// An earlier failure left the file in an unknown state; opening it again recovers.
    #[error("{} cannot be written after an earlier failure", path.display())]
    Poisoned { path: PathBuf },
    /// The event has no JSON form.
    #[error("cannot serialize an event: {0}")]
    Encode(#[source] serde_json::Error),
}

impl JournalError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Full(_) => "free some disk space, then resume the loop",
            Self::Damaged { .. } => {
                "descartes loop resume --repair drops the damaged line and keeps a copy of the file"
            }
            Self::Newer { .. } | Self::Unreadable { .. } => {
                "update descartes to the version that wrote it; nothing was changed"
            }
            Self::Foreign { .. } => "resume the loop: what the other program wrote is checked",
            Self::Poisoned { .. } => "resume the loop: its last line is checked and repaired",
            Self::Io(_) | Self::Encode(_) => return None,
        })
    }
}
