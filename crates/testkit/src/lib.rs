//! What descartes is tested with: one scripted agent for every test and benchmark, a hermetic
//! world for its runs, terminals and browsers without a person, and helpers that count processes.
//!
//! Development only. Nothing here is part of the product.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test kit reports trouble by failing the test"
)]

pub mod agent;
pub mod browser;
pub mod http;
pub mod model;
pub mod nats;
pub mod process;
pub mod pty;
pub mod real_clis;
pub mod stamp;
pub mod units;
pub mod wait;
pub mod world;

pub use pty::Pty;
pub use wait::{PATIENCE, eventually, eventually_some};
pub use world::World;
pub use world::bins::{descartes, lie_at, scripted_agent};
