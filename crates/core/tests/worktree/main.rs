//! The work tree, with real git in a temporary world.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod commits;
mod diffs;
mod odd_files;
mod plain;
mod programs;
mod random;
mod repositories;
mod rewinding;
mod snapshots;
mod world;
