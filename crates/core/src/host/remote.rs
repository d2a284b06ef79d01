//! Stops a loop from another thread.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use descartes_kernel::control::Command;
use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::Budget;
use descartes_kernel::steering;

use super::message::HostMessage;
use super::reply::Reply;

/// Stops a loop from another thread.
#[derive(Clone, Debug)]
pub struct Remote(pub(super) Sender<HostMessage>);

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

    /// Sends a person's command that came another way than by its socket; its answers can be read from the
    /// stream, a line each, until its end.
    pub(crate) fn command(
        &self,
        command: Command,
        from: steering::Sender,
    ) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        let reply = Reply(Arc::new(theirs));
        let message = HostMessage::Command(command, Box::new(from), reply);
        match self.0.send(message) {
            Ok(()) => Ok(ours),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The lease in its settings was renewed: the guard of its agents has to know.
    pub(crate) fn lease_renewed(&self) {
        drop(self.0.send(HostMessage::LeaseRenewed));
    }

    /// The same, without the agent's grace.
    pub(crate) fn kill(&self, by: StopBy) {
        drop(self.0.send(HostMessage::Kill(by)));
    }
}
