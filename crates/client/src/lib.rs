//! What a view of a loop needs: find it, see how it stands, follow it, read its logs, send it
//! a command. Synchronous; it reads journals and logs, asks locks, and talks to a loop's
//! control socket. It never depends on the engine, and never slows a loop down.
//!
//! ```no_run
//! use descartes_client::{Loops, Query};
//! use descartes_store::layout::EnvPaths;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let here = std::env::current_dir()?;
//! let loops = Loops::new(&EnvPaths::from_process(), &here);
//! let found = loops.find(&Query::Here(here))?;
//! let look = found.look()?;
//! println!("{} {:?} after {} iterations", found.name(), look.life, look.state.iterations);
//! # Ok(()) }
//! ```

pub mod answers;
mod control;
mod error;
mod family;
mod fleet;
mod follow;
mod handle;
mod history;
pub mod json;
mod known;
pub mod logs;
mod loops;
mod released;
mod state;

pub use control::{ControlEffect, Hold, Recorded, Sent, Ticket};
/// The places that the environment names: where loops are kept.
pub use descartes_store::layout::EnvPaths;
pub use error::ClientError;
pub use family::Children;
pub use fleet::{Brief, Fleet, LoopBrief};
pub use follow::{Follower, LoopUpdate, Output};
pub use handle::{Look, LoopHandle};
pub use history::{From, IterationTrees};
pub use known::Known;
pub use loops::{Loops, Query, Scope};
