//! The policy of a loop as a table: scripted agents, no process, no clock.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod budgets;
mod failures;
mod journal;
mod limits;
mod proof;
mod steering;
mod tasks;
mod unfinished;
mod world;
