//! Which changes in a slot are the work of its agent. What `worktree_copy` and `worktree_setup` brought, and what
//! gates leave, lies beside them and is in no commit of ours.

/// What lay at a path before the agent began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeAgent {
    /// What its commit has there, or nothing.
    AsCommitted,
    /// Something that no commit has.
    Brought,
    /// A tracked file that the setup had changed.
    ChangedBySetup,
}

/// Whose a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkShare {
    /// The agent's: it is committed.
    Work,
    /// Nobody's work.
    NoWork,
    /// The same, though the agent had its hands in it: a person has to know.
    NoWorkToldOf,
}

impl BeforeAgent {
    /// Whose what lies there now is, by whether the agent left another content there than it found.
    pub fn share(self, changed_by_agent: bool) -> WorkShare {
        match (self, changed_by_agent) {
            (Self::AsCommitted | Self::ChangedBySetup, true) => WorkShare::Work,
            (Self::AsCommitted | Self::ChangedBySetup | Self::Brought, false) => WorkShare::NoWork,
            (Self::Brought, true) => WorkShare::NoWorkToldOf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BeforeAgent::{AsCommitted, Brought, ChangedBySetup};
    use WorkShare::{NoWork, NoWorkToldOf, Work};

    #[test]
    fn only_what_the_agent_changed_and_git_can_have_of_it_is_work() {
        let table = [
            (AsCommitted, true, Work),
            // A gate left it.
            (AsCommitted, false, NoWork),
            (ChangedBySetup, true, Work),
            (ChangedBySetup, false, NoWork),
            (Brought, false, NoWork),
            (Brought, true, NoWorkToldOf),
        ];
        for (before, changed, share) in table {
            assert_eq!(before.share(changed), share, "{before:?} {changed}");
        }
    }
}
