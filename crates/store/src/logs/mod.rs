//! Logs: the raw bytes of an agent or a gate, byte for byte as they came.
//!
//! A log has a budget. Past it the middle is dropped, the first half and the last stay: the
//! blocks between are given back to the disk (a hole in the file), so that every offset into
//! the log stays true. Which bytes are gone stands in a small file beside it (`.cut`), written
//! before they go. A full disk or a file system without holes ends a log early; whoever writes
//! it is never stopped.

mod gaps;
mod prune;
mod reader;
mod tail;
mod writer;

pub(crate) use prune::disk_use;
pub use prune::{LoopLogs, PrunedRun};
pub use reader::{GapMarks, LogReader, read_log};
pub use tail::{LogTail, last_output, tail};
pub use writer::{LogFile, LogStatus, Stopped, expect_run};
