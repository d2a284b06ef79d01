//! Everything descartes keeps on disk: where it lies, the journal, the lock, the state file,
//! logs, the catalog of loops, and config files.
//!
//! Synchronous throughout. Nothing here reads the environment or the clock, save the functions
//! that say so ([`layout::EnvPaths::from_process`]).

pub mod catalog;
pub mod config;
pub mod debug_log;
pub mod fault;
pub mod host;
pub mod journal;
pub mod layout;
pub mod lock;
pub mod logs;
pub mod lost_end;
pub mod mirror;
mod ops;
pub mod prompts;
mod real_path;
pub mod safe_open;
pub mod secret_file;
pub mod state_file;
pub mod task_file;
pub mod trust;
pub mod watching;

pub use ops::{IoError, Sync};
