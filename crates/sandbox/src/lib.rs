//! Confines agents and gates. The kernel decides what is writable, readable and hidden
//! ([`descartes_kernel::sandbox`]); here that is carried out:
//!
//! * `stage`: this binary, started with a hidden verb: outside, before `bwrap`, and once more inside, where
//!   it takes rights from itself (Landlock, seccomp) and becomes the program.
//! * `facts`: what the plan needs to know of machine and project.
//! * [`Machine`]: what this machine can do.
//! * [`Sandbox`]: a plan that was tried, as a prefix of command lines.

#![warn(missing_docs)]

mod facts;
mod filter;
mod groups;
mod machine;
mod network;
mod probe;
mod rights;
mod sandbox;
mod small_text;
mod stage;
mod syscalls;

pub use facts::{OWN_LOGS, OWN_OBJECTS, OWN_REFS, PlannedRun, SandboxProject, Surroundings, look};
pub use machine::{Bwrap, Machine};
pub use sandbox::{Sandbox, Unavailable};
pub use small_text::{file_text, small_text};
pub use stage::{STAGE_VERB, stage_main};
