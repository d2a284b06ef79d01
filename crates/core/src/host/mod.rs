//! A host: the process that holds a loop and drives it.
//!
//! [`create`] begins a loop, [`resume`] takes one up; [`Host::run`] drives it to its end on
//! the calling thread. Views attach to the journal and the logs in [`Host::dir`].

mod agent;
mod alarm;
mod cancel;
mod close;
mod commit;
pub(crate) mod control;
pub(crate) mod driver;
mod early_stop;
mod error;
mod existing;
mod gate;
pub(crate) mod gate_files;
mod guard_program;
mod leftovers;
mod loop_files;
pub(crate) mod message;
mod moved;
mod name;
mod open;
mod pass_env;
mod prompt;
pub(crate) mod reply;
mod resume;
mod run;
mod settings;
mod sink;
mod sources;
mod work_directory;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use descartes_kernel::event::{Record, StopBy};
use descartes_kernel::outcome::{Budget, IterativeExitReason, exit};
use descartes_kernel::state::{IterativeLoopState, LoopState};
use descartes_store::layout::LoopDir;

pub(crate) use agent::resolve_all;
pub use early_stop::EarlyStop;
pub use error::HostError;
pub use existing::{OnExistingState, over_existing};
pub use gate_files::command_files;
pub use guard_program::GuardProgram;
pub use leftovers::{is_guard_of_dead_host, sweep_loop, wait_for_leaving};
pub use open::{NESTED_IN, NewLoop, create, examine};
pub(crate) use open::{create_within, git_of};
pub use pass_env::PassEnv;
pub use prompt::first_prompt;
pub(crate) use resume::{Purpose, resume_for};
pub use resume::{Resume, Resumed, land, resume, resume_telling};
pub use settings::HostSettings;

use cancel::CancelWatch;
use driver::Driver;
use message::HostMessage;

use crate::tasks::Prepared;

/// Somebody who is told of every record; answers whether it wants to hear more.
pub type Listener = Box<dyn Fn(&Record) -> bool + Send>;

/// A loop that this process holds.
pub struct Host {
    driver: Driver,
    notices: Vec<String>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("loop_id", &self.driver.state.loop_id)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// The loop's id.
    pub fn loop_id(&self) -> &str {
        &self.driver.state.loop_id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.driver.state.name
    }

    /// Its state so far.
    pub fn state(&self) -> &LoopState {
        &self.driver.state
    }

    /// The same as its state file has it.
    pub(crate) fn state_so_far(&self) -> IterativeLoopState {
        self.driver.state.project(&self.driver.kept)
    }

    /// Its folder: journal and logs.
    pub fn dir(&self) -> &LoopDir {
        &self.driver.dir
    }

    /// Its state file.
    pub fn state_file(&self) -> &Path {
        self.driver.files.state_file()
    }

    /// What was found and mended on the way, to be said aloud.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// A handle to stop it from another thread.
    pub fn remote(&self) -> Remote {
        Remote(self.driver.tx.clone())
    }

    /// Tells `listener` of every record from now on.
    pub fn listen(&mut self, listener: Listener) {
        self.driver.listeners.push(listener);
    }

    /// Makes it a task loop.
    fn take_tasks(&mut self, tasks: Option<Prepared>) {
        let agents = tasks.as_ref().map(|tasks| tasks.agents.clone());
        self.driver.task_agents = agents.unwrap_or_default();
        self.driver.tasks = tasks.map(Box::new);
    }

    /// Tells `tell` what the run under way has spent, as often as its agent says so.
    pub(crate) fn tell_spending(&mut self, tell: driver::TellSpending) {
        self.driver.tell_spending = Some(tell);
    }

    /// Lends the loop for one attempt, and gives back what it knows afterwards.
    pub(crate) fn attempt(mut self) -> Result<(u32, LoopState), HostError> {
        let until = self.driver.state.iterations + 1;
        self.driver.attempt_limit = Some(until);
        self.driver.drive_here()?;
        Ok((until, self.driver.state))
    }

    /// Drives the loop until it is over or left.
    pub fn run(mut self) -> Result<HostEnd, HostError> {
        let flag = self.driver.settings.cancel.clone();
        if flag
            .as_ref()
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            // Before anything is started.
            self.driver
                .handle_control(HostMessage::Stop(StopBy::Handle))?;
            return self.driver.drive();
        }
        let remote = self.remote();
        let watch = flag.map(|flag| CancelWatch::begin(flag, remote));
        let _watch = watch.transpose()?;
        self.driver.drive()
    }

    /// The flag that cancels it.
    pub(crate) fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.driver.settings.cancel.clone().unwrap_or_default()
    }

    /// Says something aloud and writes it down.
    pub(crate) fn say(&mut self, notice: String) -> Result<(), HostError> {
        self.driver.warn(notice.clone())?;
        self.notices.push(notice);
        Ok(())
    }
}

/// Stops a loop from another thread.
#[derive(Clone, Debug)]
pub struct Remote(Sender<HostMessage>);

impl Remote {
    /// Asks the loop to stop; what that means is the policy's.
    pub fn stop(&self, by: StopBy) {
        // A loop that is over needs no stopping.
        drop(self.0.send(HostMessage::Stop(by)));
    }

    /// Ends the run under way, which is judged: a budget is used up.
    pub(crate) fn budget_gone(&self, budget: Budget) {
        drop(self.0.send(HostMessage::BudgetGone(budget)));
    }

    /// The same, without the agent's grace.
    pub(crate) fn kill(&self, by: StopBy) {
        drop(self.0.send(HostMessage::Kill(by)));
    }
}

/// How a host left its loop.
#[derive(Clone, Debug, PartialEq)]
pub struct HostEnd {
    /// Why the loop ended; `Running` if it was left to be resumed.
    pub reason: IterativeExitReason,
    /// Who asked for the stop, if anybody did.
    pub stop: Option<StopBy>,
    /// Iterations that are over.
    pub iterations: u32,
    /// The promise as it stood.
    pub completion: Option<String>,
    /// What is wrong with the state file, which the journal makes anew.
    pub trouble: Option<String>,
}

impl HostEnd {
    /// The process exit code.
    pub fn exit_code(&self) -> i32 {
        match (&self.reason, self.stop) {
            (IterativeExitReason::UserCancelled, Some(StopBy::Terminate)) => exit::TERMINATED,
            (IterativeExitReason::Running, Some(StopBy::HangUp)) => exit::HUNG_UP,
            (reason, _) => reason.exit_code(),
        }
    }
}
