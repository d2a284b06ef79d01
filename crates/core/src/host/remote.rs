//! Stops a loop from another thread.

use std::sync::mpsc::Sender;

use descartes_kernel::event::StopBy;
use descartes_kernel::outcome::Budget;

use super::message::HostMessage;

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

    /// The lease in its settings was renewed: the guard of its agents has to know.
    pub(crate) fn lease_renewed(&self) {
        drop(self.0.send(HostMessage::LeaseRenewed));
    }

    /// The same, without the agent's grace.
    pub(crate) fn kill(&self, by: StopBy) {
        drop(self.0.send(HostMessage::Kill(by)));
    }
}
