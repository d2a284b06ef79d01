//! What a loop does right now.

use std::time::Duration;

use jiff::Timestamp;

use crate::tone::{Cell, Tone};
use crate::words;
use descartes_kernel::state::{LoopState, Pause, Phase};
use descartes_kernel::step::next_gate;
use descartes_text::display::one_line;

/// What a loop is at whose work is done.
const FINISHING: &str = "finishing";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    pub line: Cell,
    /// For how long, where that says something.
    pub elapsed: Option<Duration>,
}

/// Reads it off the state; `since` is the time of the last record.
pub fn activity(state: &LoopState, since: Timestamp, now: Timestamp) -> Activity {
    let (tone, text, since) = match &state.phase {
        Phase::Running(run) => {
            let agent = agent_name(state, run.agent);
            (
                Tone::Normal,
                format!("agent: {agent}"),
                Some(run.started_at),
            )
        }
        Phase::Judging { .. } => match next_gate(state) {
            Some((gate, command)) => {
                let which = words::gate_number(gate, state.config.verify.len());
                (Tone::Warn, format!("{which}: {command}"), Some(since))
            }
            None => (Tone::Normal, "finishing the iteration".to_owned(), None),
        },
        Phase::Finished { .. } => (Tone::Normal, FINISHING.to_owned(), None),
        Phase::Ready { .. } if state.requests.pause == Pause::Held => {
            let text = "paused, continue with: descartes loop unpause";
            (Tone::Warn, text.to_owned(), None)
        }
        Phase::Ready { .. } => match state.wait().filter(|wait| wait.until > now) {
            Some(wait) => {
                let left = words::left(now, wait.until);
                let text = format!("waiting {left}: {}", wait.reason.describe());
                (Tone::Warn, text, None)
            }
            None => tasks(state).map_or_else(
                || {
                    let counted = state.tasks.as_ref().map(|tasks| tasks.count());
                    let is_done = counted.is_some_and(|(done, all)| all > 0 && done == all);
                    let text = if is_done { FINISHING } else { "starting" };
                    (Tone::Normal, text.to_owned(), None)
                },
                |(text, since)| (Tone::Normal, text, since),
            ),
        },
    };
    Activity {
        line: Cell::new(tone, one_line(&text)),
        elapsed: since.map(|since| words::between(since, now)),
    }
}

/// The tasks that are worked on, or those that are merged.
fn tasks(state: &LoopState) -> Option<(String, Option<Timestamp>)> {
    let tasks = state.tasks.as_deref()?;
    let since = tasks.running.iter().map(|running| running.since).min();
    let name = |id| {
        format!(
            "{id} {}",
            tasks.tasks.get(id).map_or("", |task| &task.title)
        )
    };
    let names: Vec<String> = tasks.running.iter().map(|one| name(&one.task)).collect();
    let merging: Vec<&str> = tasks.being_merged().iter().map(|id| id.as_str()).collect();
    let text = match (names.as_slice(), merging.as_slice()) {
        // Everything is done: what is left is ours.
        ([], []) => {
            let (done, total) = tasks.count();
            return (total > 0 && done == total).then(|| ("finishing".to_owned(), None));
        }
        ([], [task]) => format!("merging {task}"),
        ([], train) => format!(
            "merging {} tasks together: {}",
            train.len(),
            train.join(", ")
        ),
        ([name], _) => format!("task {name}"),
        (names, _) => format!("{} tasks: {}", names.len(), names.join(", ")),
    };
    Some((text, since))
}

fn agent_name(state: &LoopState, agent: u32) -> String {
    match words::fallback(&state.config, agent) {
        Some(name) => name.to_owned(),
        None => words::command(&state.config),
    }
}
