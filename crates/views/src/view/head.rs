//! The first lines of every view of a loop: how far it is, how long it has run, what it used.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::{Life, Status};
use crate::words;
use descartes_kernel::state::{LoopState, Phase, Spent};
use descartes_text::units::plural;

/// What stands at the top.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Head {
    /// The loop's name.
    pub title: String,
    /// Where it stands.
    pub status: Status,
    /// The iteration under way, or the last one that is over; 0 before the first.
    pub iteration: u32,
    /// How many there may be; `None` is unlimited.
    pub limit: Option<u32>,
    /// Tasks that are done, and all of them; `None` for a loop over one prompt.
    pub tasks: Option<(usize, usize)>,
    /// When it was first started.
    pub started_at: Timestamp,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
    /// What it used.
    pub spent: Spent,
}

impl Head {
    /// Reads it off the state.
    pub fn of(state: &LoopState, life: Life) -> Self {
        let iteration = state.run().map_or(state.iterations, |run| run.iteration);
        let ended_at = match &state.phase {
            Phase::Finished { at, .. } => Some(*at),
            _ => None,
        };
        Self {
            title: state.name.clone(),
            status: Status::of(state, life),
            iteration,
            // A limit that was lowered meanwhile is never overrun on the screen.
            limit: state
                .config
                .max_iterations
                .map(|limit| limit.max(iteration)),
            tasks: state.tasks.as_ref().map(|tasks| tasks.count()),
            started_at: state.started_at,
            ended_at,
            spent: state.spent,
        }
    }

    /// `iteration 9 of at most 20`, `iteration 9, no limit`, `3 of 7 tasks done`.
    pub fn progress(&self) -> String {
        match (self.tasks, self.limit) {
            (Some((done, total)), _) => {
                format!("{done} of {} done", plural(total as u64, "task"))
            }
            (None, Some(limit)) => format!("iteration {} of at most {limit}", self.iteration),
            (None, None) => format!("iteration {}, no limit", self.iteration),
        }
    }

    /// How full the bar is, from 0 to 1; `None` where there is nothing to fill.
    pub fn fraction(&self) -> Option<f64> {
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| (part / whole).clamp(0.0, 1.0));
        match (self.tasks, self.limit) {
            (Some((done, total)), _) => share(done as f64, total as f64),
            (None, Some(limit)) => share(f64::from(self.iteration), f64::from(limit)),
            (None, None) => None,
        }
    }

    /// From the start to the end, or to now.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        words::between(self.started_at, self.ended_at.unwrap_or(now))
    }

    /// How long it will wait yet, and why; `None` where it does not wait.
    pub fn waits(&self, now: Timestamp) -> Option<String> {
        let Status::Waiting { until, why } = &self.status else {
            return None;
        };
        let left = words::left(now, *until);
        Some(format!("waiting {left}: {why}"))
    }
}

/// Progress where there is little room: `9/20`, `9`, `3/7`; and what is counted, unless iterations.
pub fn short_progress(
    iterations: u32,
    limit: Option<u32>,
    tasks: Option<(usize, usize)>,
) -> (String, &'static str) {
    match (tasks, limit) {
        (Some((done, 1)), _) => (format!("{done}/1"), " task"),
        (Some((done, total)), _) => (format!("{done}/{total}"), " tasks"),
        (None, Some(limit)) => (format!("{iterations}/{}", limit.max(iterations)), ""),
        (None, None) => (iterations.to_string(), ""),
    }
}
