//! Finding the loop that a person means.

use super::{LoopEntry, LoopMeta, list, read_entry};
use crate::layout::{StateRoot, state_file_path};
use crate::ops::IoError;
use std::path::Path;

/// Why it is not clear which loop is meant.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// None fits.
    #[error("there is no loop {0:?}")]
    None(String),
    /// Several fit.
    #[error("{query:?} matches {} loops:{}", candidates.len(), rows(candidates))]
    Ambiguous {
        /// What was asked for.
        query: String,
        /// The loops that fit, newest first.
        candidates: Vec<LoopMeta>,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

fn rows(candidates: &[LoopMeta]) -> String {
    let row = |meta: &LoopMeta| {
        let (id, name, at) = (&meta.id, &meta.name, meta.started_at);
        format!(
            "\n  {id}  {name}  started {at}  in {}",
            meta.working_dir.display()
        )
    };
    candidates.iter().map(row).collect()
}

/// Finds a loop by its id, a beginning of its id that no other has, its name, the task that it works on, or the
/// path of its state file (there the newest loop is meant).
pub fn find(root: &StateRoot, query: &str) -> Result<LoopEntry, FindError> {
    let exact = root.loop_dir(query).ok().and_then(read_entry);
    if let Some(entry) = exact {
        return Ok(entry);
    }
    let all = list(root)?;
    let fits = |entry: &&LoopEntry| {
        entry.meta.name == query || (!query.is_empty() && entry.meta.id.starts_with(query))
    };
    let mut found: Vec<_> = all.iter().filter(fits).cloned().collect();
    if found.is_empty() {
        // The loop of a task goes by that alone as well.
        let of_task = |entry: &&LoopEntry| entry.meta.task() == Some(query);
        found = all.iter().filter(of_task).cloned().collect();
    }
    match found.len() {
        0 => by_state_file(all, query),
        1 => Ok(found.remove(0)),
        _ => Err(FindError::Ambiguous {
            query: query.to_owned(),
            candidates: found.into_iter().map(|entry| entry.meta).collect(),
        }),
    }
}

fn by_state_file(all: Vec<LoopEntry>, query: &str) -> Result<LoopEntry, FindError> {
    let path = state_file_path(Path::new(query)).ok();
    let newest = all
        .into_iter()
        .find(|entry| Some(&entry.meta.state_file) == path.as_ref());
    newest.ok_or_else(|| FindError::None(query.to_owned()))
}
