//! What descartes makes of what agents say: limits, errors, silence, cost. The agents are
//! recordings of the real ones, played by the scripted agent.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod bad_streams;
mod command;
mod ended;
mod fallback;
mod limits;
mod misbehaviour;
mod money;
mod secrets;
mod shown;
mod stage;
