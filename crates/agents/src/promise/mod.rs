//! Streaming search for the completion promise.
//!
//! A [`Detector`] takes the bytes of one plain text stream in any portions and reports the
//! [`Claim`]s in it; [`find_in_text`] does the same for a message that is already whole.
//! The rules see complete lines only, so a split of the bytes can change nothing:
//!
//! * `detector` cuts the stream into lines and decides which of them are worth a look,
//! * `scan` finds those at the speed of memory, by a coarse search (`probe`) first,
//! * `ansi` takes the terminal sequences out of a line,
//! * `judge` decides whether a line is a claim, with `find`, `sentence`, `quote` and `chars` as its eyes,
//! * `verdict` sets the line among its neighbours: fences (`fence`), diffs (`diff`), tags over lines
//!   (`spread`), echoes of the prompt (`echo`, compared as `letters`), near misses (`near`),
//! * `lines` leads one line after the other through these,
//! * `lookback` and `long` bound what is kept of the stream and of one line.

mod ansi;
mod chars;
mod detector;
mod diff;
mod echo;
mod fence;
mod find;
mod judge;
mod letters;
mod lines;
mod long;
mod lookback;
mod near;
mod neighbours;
mod probe;
mod quote;
mod scan;
mod sentence;
mod spec;
mod spread;
mod verdict;

pub use detector::{Detector, find_in_text};
pub use echo::PIECE;
pub use near::{BarePromise, NearMiss, NearMisses};
pub use spec::{PromiseError, PromiseMatch, PromiseSpec};

/// What the agent claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimKind {
    /// The work is done.
    Done,
    /// The work cannot be done.
    Abort,
}

/// A promise found in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which of the two promises it is.
    pub kind: ClaimKind,
    /// The promise's text as it stood, trimmed, without the tag.
    pub text: String,
    /// Offset in the stream just behind it.
    pub offset: u64,
    /// What the agent said with it: the words of its line and of the lines before, at most 500 bytes.
    pub words: String,
}
