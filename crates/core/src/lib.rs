//! Run any command line agent in a loop until the job is proven done.
//!
//! [`IterativeLoop`] is one prompt, run through an agent again and again, each time in a
//! fresh context, until the completion promise appears **and** every gate is green. The
//! promise is a claim; the gate is the fact.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use descartes_core::{IterativeLoop, IterativeLoopConfig, LoopBackendConfig};
//!
//! let mut l = IterativeLoop::new(IterativeLoopConfig {
//!     command: "claude".into(),
//!     prompt: "Make the tests pass".into(),
//!     completion_promise: Some("COMPLETE".into()),
//!     verify: vec!["cargo test".into()],
//!     backend: LoopBackendConfig { backend_type: "claude".into(), ..Default::default() },
//!     ..Default::default()
//! })
//! .await?;
//! let cancel = l.cancellation_handle(); // set it from anywhere to cancel
//! let mut events = l.subscribe(); // the same events the views get
//! let result = l.execute().await?;
//! println!("{}", result.exit_reason.sentence());
//! # Ok(()) }
//! ```
//!
//! Where the host is not the `descartes` binary there is no guard process: the agent gets a
//! process group of its own, is killed when the loop is dropped, and leftovers are found by
//! the `DESCARTES_LOOP_ID` mark. Linux is the supported platform.

#![warn(missing_docs)]

pub mod host;
pub mod iterative_loop;
pub mod loops;
pub mod steering;
pub mod tasks;
pub mod worktree;

mod backend;
mod config;
mod iterative;
mod ralph;
mod state;
mod tail;

pub use iterative_loop::*;

/// The examples of the user's book compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Book;
