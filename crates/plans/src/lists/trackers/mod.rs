//! Tasks that are kept behind a program: issue trackers. What the program prints is read as a list; what is
//! done is said to the program. Nothing is run here: which commands there are, and what their answers mean.

mod beads;
mod calls;
mod commands;
mod github;
mod gitlab;
mod issue_text;
mod open_json;
mod parts;

pub use beads::program as beads_program;
pub use calls::{LIST, Outward, TrackerCommands, TrackerRequest};
pub use commands::{custom_commands, instead, list_name, wanted, with_finished};
pub use issue_text::marked_as_foreign;

use std::collections::HashMap;

use super::ListContext;
use super::format::ListFormat;
use super::model::{ListFile, TaskList};

/// Reads the answers of a tracker.
pub(super) fn read(
    format: ListFormat,
    answers: &[ListFile],
    context: &ListContext<'_>,
) -> TaskList {
    let mut list = match format {
        ListFormat::Beads => beads::read(answers, context.claims),
        ListFormat::GitHub => github::read(answers),
        ListFormat::GitLab => gitlab::read(answers),
        _ => open_json::read(answers),
    };
    let places: HashMap<String, usize> = {
        let all = list.tasks.iter().enumerate();
        all.map(|(at, task)| (task.id.clone(), at)).collect()
    };
    for done in &context.ledger {
        let finished = places.get(done).map(|at| &mut list.tasks[*at]);
        if let Some(task) = finished.filter(|task| !task.is_done()) {
            task.status = crate::graph::TaskStatus::Done;
            list.note(
                0,
                format!("task `{done}` is done in a commit here that has not been pushed yet"),
            );
        }
    }
    list
}
