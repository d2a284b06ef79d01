//! The bridge and the engine's commands, with a real nats-server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bridge_process;
mod contract;
mod keys;
mod lost_engine;
mod started_engine;
