//! `descartes serve`, asked over real HTTP and by a real browser, with real loops.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and says what it did not run"
)]

mod access;
mod api;
mod browser;
mod common;
mod everybody;
mod pages;
mod sessions;
mod start;
mod starting;
mod steering;
mod streams;
mod tasks;
