//! In which work tree an attempt at a task is made.

use serde::{Deserialize, Serialize};

/// Whether an attempt is made where its loop worked before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttemptTree {
    /// In the same worktree, or one that was made of its branch.
    #[default]
    Own,
    /// In what an offer brought: whatever the loop proved before is not there.
    Other,
}
