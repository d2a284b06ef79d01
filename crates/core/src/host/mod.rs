//! A host: the process that holds a loop and drives it.
//!
//! [`loops::create`](crate::loops::create) begins a loop, [`loops::resume`](crate::loops::resume)
//! takes one up; [`Host::run`] drives it to its end on the calling thread. Views attach to the journal and the logs in [`Host::dir`].

mod agent;
mod agent_loop;
mod alarm;
mod cancel;
mod close;
mod commit;
mod confined;
pub(crate) mod confined_hooks;
pub(crate) mod control;
pub(crate) mod driver;
mod early_stop;
mod end;
mod error;
mod existing;
mod gate;
pub(crate) mod gate_files;
mod gate_programs;
mod guard_program;
mod handle;
mod leftovers;
mod live_run;
mod loop_files;
mod measure;
pub(crate) mod message;
mod moved;
mod name;
mod open;
mod opening;
mod pass_env;
mod prompt;
mod prompt_files;
mod remote;
pub(crate) mod reply;
mod resume;
mod resume_order;
mod run;
pub(crate) mod sandbox;
mod sandbox_level;
mod settings;
mod sink;
pub(crate) mod slot_objects;
mod sources;
pub(crate) mod task_loop;
mod upkeep;
mod work_directory;

pub use driver::Listener;
pub use early_stop::EarlyStop;
pub use end::HostEnd;
pub use error::HostError;
pub(crate) use error::open_files_hint;
pub use existing::{OnExistingState, over_existing};
pub use gate_files::command_files;
pub use gate_programs::{missing_programs, program_of};
pub use guard_program::GuardProgram;
pub use handle::Host;
pub use leftovers::{is_guard_of_dead_host, sweep_loop, wait_for_leaving};
pub use open::{NewLoop, examine};
pub use opening::NESTED_IN;
pub use pass_env::PassEnv;
pub use prompt::first_prompt;
pub use remote::Remote;
pub use resume_order::{Resume, Resumed};
pub use sandbox::TrialSandbox;
pub use sandbox_level::foreseen_level;
pub use settings::{CONFINED_VARIABLE, ConnectEngine, HostSettings};
pub use task_loop::Retry;

pub(crate) use agent::resolve_all;
pub(crate) use open::create_within;
pub(crate) use opening::git_of;
pub(crate) use resume::{AttemptTree, Purpose, resume_for};
pub(crate) use sandbox_level::{ask_profiles, try_level};
