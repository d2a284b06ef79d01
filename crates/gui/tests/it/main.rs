//! The window without a display: driven as a person would, and compared with the other views.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod agree;
mod common;
mod keyboard;
mod places;
mod pointer;
mod window;
