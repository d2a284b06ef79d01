//! Gates for tasks that somebody else marked done: on the merged tree, as it is now.

use super::integration::Proof;
use super::{Done, Trees};
use crate::tasks::place::{GateFailure, Gates};

impl Trees {
    /// Runs the gates in the integration worktree, on what was merged so far and the commits that
    /// the user made since.
    pub(super) fn gate_integration(&self, gates: Gates<'_>) -> Done<Result<(), GateFailure>> {
        let _one = self.integrating();
        let merged = self.caught_up()?;
        let place = self.integration()?;
        Ok(match self.prove(&place, &merged, gates, &[], None)? {
            Proof::Green => Ok(()),
            Proof::Red(tail) => Err(GateFailure::Red(tail)),
            Proof::Stopped => Err(GateFailure::Stopped),
        })
    }
}
