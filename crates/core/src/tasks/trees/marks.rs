//! Gates for tasks that somebody else marked done: on the merged tree, as it is now.

use super::{Done, Trees};
use crate::tasks::place::Gates;

impl Trees {
    /// Runs the gates in the integration worktree, on what was merged so far and the commits that
    /// the user made since.
    pub(super) fn gate_integration(&self, gates: Gates<'_>) -> Done<Result<(), String>> {
        let merged = self.caught_up()?;
        let mut fresh = false;
        let repo = self.worktree("merged", &mut fresh)?;
        if fresh {
            self.furnish(&repo)?;
        }
        self.set_to(&repo, &merged)?;
        Ok(gates(&repo.dir.join(&self.prefix)))
    }
}
