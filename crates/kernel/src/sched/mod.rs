//! The scheduler of task loops: which task is attempted next, what its end means, when a wave is
//! committed, and when there is nothing more to do.
//!
//! It is policy and nothing else. Whatever happens outside comes in as one [`Input`];
//! [`Scheduler::advance`] answers with [`Effect`]s in the order in which they are to be carried
//! out. Inside, an input is judged (`judge`), the next thing to do is decided (`decide`), both
//! without changing anything; only [`Scheduler::apply`] changes the state, live and in recovery
//! alike. So a journal of [`Event`]s, folded over the same plan, is the scheduler again.
//!
//! What holds at any time, for any order of inputs:
//! * no task is attempted before everything it depends on is merged;
//! * no task is attempted twice at once, and no slot holds two attempts;
//! * a provider's limit costs no attempt, and waiting for it stops only that agent's tasks;
//! * a task that somebody else marks while the loop runs is not run and not called proven; marked
//!   done, it counts for others only once the gates were green or there are none;
//! * at the end every task is accounted for: done, left out, passed over, marked by others,
//!   blocked with its reason, held with what holds it, or open.

mod acts;
mod advance;
mod apply;
mod config;
mod decide;
mod event;
mod input;
mod judge;
mod outcome;
mod record;
mod replan;
mod state;
mod train;
mod view;

pub use config::{Barrier, Grouping, SchedConfig};
pub use event::{
    AttemptEnd, BlockReason, CommitEnd, Event, Evidence, EvidenceKind, IllegalEvent, MarkEnd,
    MergeEnd, Next, Outcome, Seen, StopKind, StopReason, TrainEnd,
};
pub use input::{Attempt, Effect, Input};
pub use outcome::{Account, BlockedTask, Ended, HeldTask, MarkedTask};
pub use record::{MarkCheck, TaskState};
pub use state::Scheduler;
pub use view::{WaveProgress, WaveState};
