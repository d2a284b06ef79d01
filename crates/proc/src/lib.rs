//! Process trees that cannot get away, and the pump of their output.
//!
//! A [`Supervisor`] starts one agent after the other. Whatever an agent starts (children in sessions
//! of their own, daemons that forked twice) belongs to its run and is gone when the run is over. Two
//! ways lead there:
//!
//! * [`Supervisor::guarded`]: a small process, the *guard*, stands between host and agent. It is a
//!   child subreaper, so every orphan of the tree becomes its child; it ends the tree when it is told
//!   to, and also when its host dies. Its body is [`guard_main`].
//! * [`Supervisor::direct`]: for hosts that cannot re-execute themselves. The agent has its own
//!   process group, and what left the group is found by a mark in its environment.
//!
//! Every run that was started tells its end in the same order: one [`TreeEvent::Exited`] or
//! [`TreeEvent::GuardLost`], then one [`TreeEvent::Swept`].
//!
//! Everything here is synchronous: threads, blocking calls, no runtime. Linux is the supported
//! platform.

#![warn(missing_docs)]

mod at_work;
mod boot_time;
mod direct;
mod events;
mod guard;
mod guarded;
mod handle;
mod identity;
mod launch;
mod lease;
mod leftovers;
mod lineage;
mod listener;
mod orphans;
mod piped_output;
mod procfs;
mod pump;
mod run_lifecycle;
mod signals;
mod supervisor;
mod suspend;
mod sys;
mod tcp_peer;
mod tree;
mod waiting;
mod wire;

pub use at_work::is_at_work;
#[cfg(feature = "faults")]
pub use boot_time::seem_to_sleep;
pub use boot_time::{BootTime, boot_clock};
pub use events::{Ending, Exit, Started, Survivor, TreeEvent};
pub use guard::guard_main;
pub use identity::{boot_id, pid_namespace, process_alive, start_time};
pub use launch::{Launch, StartError, Stdin, find_program};
pub use lease::{LeaseClock, TreeLease};
pub use leftovers::{
    Ended, Fate, GuardCall, LostSession, call_guards_holding, sweep_lost, sweep_marked,
};
pub use lineage::{
    Ancestor, GUARD_VERB, Peer, TrustedChild, is_trusted_child, own_lineage, trust_child,
};
pub use orphans::{OrphanSweep, become_subreaper, sweep_children};
pub use piped_output::files_behind_pipe;
pub use pump::{Channel, PumpReport, Sink, Stream};
pub use signals::{HostSignal, Signals};
pub use supervisor::Supervisor;
pub use suspend::{RunClock, stop_with_trees, time_stopped};
pub use sys::{
    close_all_on_exec, fit_into_address_space, hear_of_children, ignore_ending_signals,
    inherited_socket, landlock_abi, obey_ending_signals, receive_with_fds, send_with_fds,
};
pub use tcp_peer::{LineOfProcess, TcpPeer};
pub use waiting::{Waiting, wait_for_exit};

/// The variable that marks every process of a loop, in the environment of its agents.
pub const MARK: &str = "DESCARTES_LOOP_ID";
