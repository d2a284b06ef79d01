//! Attempts that workers on other machines make.
//!
//! The task loop is the coordinator: its journal stays the truth. `Fleet` offers attempts through an
//! engine ([`descartes_bridge::Engine`]), [`FleetWorker`] takes and makes them with the same child loops, in
//! worktrees of a clone of its own. Who holds a task, when a holder stands still and when a task is taken
//! back is decided by [`descartes_kernel::fleet`].

mod clone;
mod coordinator;
mod delivery;
mod ended_loop;
mod ending;
mod git_remote;
mod handover;
mod keeper;
mod left_offers;
mod messages;
mod mirror;
mod mirror_source;
mod offering;
mod relay;
mod remote_attempt;
mod results;
mod shared;
mod slot;
mod stored;
mod wip;
mod worker;

pub(super) use coordinator::Fleet;
pub use ended_loop::{StoppedWork, stop_remote_agents};
pub(super) use git_remote::try_remote;
pub use messages::{SlotFacts, WorkerFacts, why_untaken};
pub use worker::{DEFAULT_POOL, FleetWorker, WorkerNotice, WorkerOptions, WorkerTask};
