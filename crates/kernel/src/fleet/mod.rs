//! Attempts that other machines make: who holds a task, when a holder must stand still, and when its
//! coordinator may give the task to another.
//!
//! The engine that carries the messages decides nothing and may lose what it stored. It arbitrates by one
//! rule alone: a value replaces another only where its writer names the number of what is stored.
//! Every number of an attempt's epoch stands in the coordinator's journal before it is offered, so that
//! none is ever used twice.

mod announced;
mod claim;
mod engine_silence;
mod git_remote;
mod lease;
mod login;
mod mirror;
mod offer;
mod refusals;
mod remote_health;
mod watch;
mod worker_end;
mod worker_health;

pub use announced::Announced;
pub use claim::{BootMoment, ClaimState, StoredClaim, TaskClaim};
pub use engine_silence::{EngineSilence, SilenceNews};
pub use git_remote::{
    OfferRefs, RemoteFault, check_remote, loop_refs, probe_ref, refs_over, ssh_command,
};
pub use lease::{HandedIn, Lease, LeaseAct, LeaseEnd, LeaseTerms, WriteFailure, handed_in};
pub use login::{AgentLogin, LimitedLogin, add_limit, limit_of};
pub use mirror::{CopiedFile, JournalCopy, TAIL_BYTES, before_run_end, copied_file, journal_copy};
pub use offer::{
    EndedOffer, FoundOffer, KnownOffer, LeftOffer, OfferStep, OfferTime, begins_from_stored,
    ended_offer, left_offer, offer_step,
};
pub use refusals::OfferRefusals;
pub use remote_health::{RemoteHealth, RemoteStep, RemoteTerms};
pub use watch::{ClaimWatch, OwnLink, WatchAct, WatchTerms};
pub use worker_end::{EndOrder, WorkerEnd};
pub use worker_health::{FIRST_REST, WorkerHealth};
