//! What an agent left where it would change what the user's next git command does.

use serde::{Deserialize, Serialize};

/// One thing of that kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlantedInGit {
    /// The file, from the top of the work tree.
    pub file: String,
    /// What stands in it, and what git makes of it.
    pub what: String,
    /// What undoes it, to be typed at the top of the work tree.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub undo: String,
}

impl PlantedInGit {
    /// One line for people.
    pub fn describe(&self) -> String {
        let Self { file, what, undo } = self;
        match undo.is_empty() {
            true => format!("the agent left {file}: {what}"),
            false => format!("the agent left {file}: {what}; before you use git there: {undo}"),
        }
    }
}

/// More than this is not kept.
const KEPT: usize = 200;

/// Adds what is new; gives it.
pub fn merge_planted(known: &mut Vec<PlantedInGit>, new: &[PlantedInGit]) {
    for planted in new {
        if !known.contains(planted) && known.len() < KEPT {
            known.push(planted.clone());
        }
    }
}
