//! The scheduler of task loops, as a table: what happens, and what follows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;
mod limits;
mod marks;
mod others;
mod proof;
mod recovery;
mod remote;
mod rules;
mod trains;
mod waves;
