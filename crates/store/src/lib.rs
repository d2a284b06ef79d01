//! Everything descartes keeps on disk: where it lies, the journal, the lock, the state file,
//! logs, the catalog of loops, and config files.
//!
//! Synchronous throughout. Nothing here reads the environment or the clock, save the functions
//! that say so ([`layout::EnvPaths::from_process`]).

pub mod fault;
pub mod host;
pub mod journal;
pub mod layout;
pub mod lock;
mod ops;

pub use ops::{IoError, Sync};
