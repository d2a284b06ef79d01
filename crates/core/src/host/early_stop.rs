//! A stop that comes while a loop is being opened. There is no driver yet that could hear of it, but
//! there may be a git that hangs, or a program that is asked for tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use descartes_kernel::tasks::Hurry;
use descartes_proc::Ending;

use crate::tasks::lists::QuestionLine;
use crate::worktree::git::guards::Guards;

/// What a git that runs other programs may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Tells everything that opens a loop that it is not wanted any more.
#[derive(Clone, Default)]
pub struct EarlyStop(Arc<Mutex<OpeningState>>);

#[derive(Default)]
struct OpeningState {
    stopped: bool,
    /// The driver listens.
    opened: bool,
    guards: Vec<Weak<Guards>>,
    lines: Vec<Weak<QuestionLine>>,
}

impl EarlyStop {
    /// Ends the gits and questions that are under way and lets no other begin: opening the loop then fails.
    pub fn stop(&self) {
        let mut opening = self.lock();
        opening.stopped = !opening.opened;
        if opening.stopped {
            opening.each_guard(|guards| guards.refuse(Ending::Ask { grace: GRACE }));
            opening.each_line(|line| line.hurry(Hurry::Kill));
        }
    }

    /// Whether a stop came before the loop was open.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// The loop is open all the same: stops go to its driver, which may need git before it ends.
    pub fn hand_over(&self) {
        let mut opening = self.lock();
        if opening.stopped {
            opening.each_guard(Guards::accept_again);
            opening.each_line(QuestionLine::calm);
        }
        *opening = OpeningState {
            opened: true,
            ..OpeningState::default()
        };
    }

    /// Has these guards hear of a stop, one that came before as well.
    pub(super) fn reach(&self, guards: &Arc<Guards>) {
        let mut opening = self.lock();
        if opening.stopped {
            guards.refuse(Ending::Kill);
        }
        if !opening.opened {
            opening.guards.push(Arc::downgrade(guards));
        }
    }

    /// The same for questions to a program that keeps tasks.
    pub(crate) fn reach_line(&self, line: &Arc<QuestionLine>) {
        let mut opening = self.lock();
        if opening.stopped {
            line.hurry(Hurry::Kill);
        }
        if !opening.opened {
            opening.lines.push(Arc::downgrade(line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpeningState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpeningState {
    fn each_guard(&self, tell: impl Fn(&Guards)) {
        let guards = self.guards.iter().filter_map(Weak::upgrade);
        guards.for_each(|guards| tell(&guards));
    }

    fn each_line(&self, tell: impl Fn(&QuestionLine)) {
        let lines = self.lines.iter().filter_map(Weak::upgrade);
        lines.for_each(|line| tell(&line));
    }
}
