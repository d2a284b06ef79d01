//! Stops attempts from the task loop's own thread, wherever they are made.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use descartes_kernel::control::Command;
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::Budget;
use descartes_kernel::steering::Sender;

use crate::host::Remote;

/// Stops an attempt that is under way.
pub(super) trait StopAttempt: Send {
    /// Ends its run, which is judged: a budget of the whole is used up.
    fn end_run(&self, budget: Budget);
    /// Ends it; its loop can be taken up again.
    fn stop(&self);
    /// The same, without the agent's grace.
    fn kill(&self);
    /// The time until which it may work is another than before.
    fn lease_renewed(&self) {}
    /// Passes on a person's command to its loop; the stream has the answers. `None` where nobody is there
    /// to take it.
    fn command(&self, command: Command, from: Sender) -> Option<UnixStream> {
        let _ = (command, from);
        None
    }
}

impl StopAttempt for Remote {
    fn end_run(&self, budget: Budget) {
        self.budget_gone(budget);
    }

    fn stop(&self) {
        Self::stop(self, StopBy::HangUp);
    }

    fn kill(&self) {
        Self::kill(self, StopBy::HangUp);
    }

    fn lease_renewed(&self) {
        Self::lease_renewed(self);
    }

    fn command(&self, command: Command, from: Sender) -> Option<UnixStream> {
        Self::command(self, command, from).ok()
    }
}

/// Stops an attempt from the task loop's own thread.
#[derive(Clone, Default)]
pub(super) struct Control(Arc<Mutex<Hold>>);

#[derive(Default)]
struct Hold {
    wish: AttemptWish,
    handle: Option<Box<dyn StopAttempt>>,
    /// When the attempt began whose work is being taken into safety.
    finishing: Option<Instant>,
}

/// What is to become of an attempt; it may become harder, never softer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum AttemptWish {
    #[default]
    GoOn,
    /// A budget of the whole is used up: the run is ended, and judged.
    EndRun(Budget),
    Stop,
    Kill,
}

impl Control {
    /// Ends the run of the attempt, which is then judged: a budget of the whole is used up.
    pub(super) fn end_run(&self, budget: Budget) {
        self.wish(AttemptWish::EndRun(budget));
    }

    /// Ends the attempt; its loop can be taken up again.
    pub(super) fn stop(&self) {
        self.wish(AttemptWish::Stop);
    }

    /// The same, without the agent's grace.
    pub(super) fn kill(&self) {
        self.wish(AttemptWish::Kill);
    }

    /// The time until which it may work is another than before.
    pub(super) fn lease_renewed(&self) {
        let hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = &hold.handle {
            handle.lease_renewed();
        }
    }

    /// Passes on a person's command to the loop of the attempt, while it is open.
    pub(super) fn command(&self, command: Command, from: Sender) -> Option<UnixStream> {
        let hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hold.handle.as_ref()?.command(command, from)
    }

    fn wish(&self, wish: AttemptWish) {
        let mut hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wish > hold.wish {
            hold.wish = wish;
            hold.tell();
        }
    }

    /// The agent is done; its work is taken into safety, which hooks may delay.
    pub(super) fn finish(&self, began: Instant) {
        let mut hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hold.finishing = Some(began);
    }

    /// How long ago the attempt began, once its agent is done.
    pub(super) fn finishing(&self) -> Option<Duration> {
        let hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hold.finishing.map(|began| began.elapsed())
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_ended(&self) -> bool {
        let hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hold.wish >= AttemptWish::Stop
    }

    /// What stops the attempt is known from now on; what was wished before is told at once.
    pub(super) fn connect(&self, handle: Box<dyn StopAttempt>) {
        let mut hold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hold.handle = Some(handle);
        hold.tell();
    }
}

impl Hold {
    fn tell(&self) {
        match (&self.handle, self.wish) {
            (None, _) | (_, AttemptWish::GoOn) => {}
            (Some(handle), AttemptWish::EndRun(budget)) => handle.end_run(budget),
            (Some(handle), AttemptWish::Stop) => handle.stop(),
            (Some(handle), AttemptWish::Kill) => handle.kill(),
        }
    }
}
