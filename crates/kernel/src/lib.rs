//! The pure kernel of descartes: it decides, and touches nothing.
//!
//! No file, process, environment variable, clock or random number is reached from
//! here; they come in as values. `step` is the whole policy of a loop, `transition`
//! the only way its state changes, live and in recovery alike.

pub mod budget;
pub mod config;
pub mod control;
pub mod edits;
pub mod event;
pub mod fact;
mod field_change;
pub mod fleet;
pub mod gate_files;
pub mod limits;
pub mod lost_end;
pub mod notice;
pub mod outcome;
pub mod progress;
pub mod prompt;
pub mod prompt_files;
pub mod sandbox;
pub mod sched;
mod spent;
pub mod start_over;
pub mod state;
pub mod steering;
pub mod step;
pub mod tasks;
pub mod transition;
pub mod trust;
