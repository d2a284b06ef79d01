//! What a task loop at work keeps in mind: growth, the time of its agents, the task file.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use descartes_kernel::sched::Attempt;
use descartes_kernel::tasks::{MissingTasks, TaskKeeper};
use descartes_plans::graph::TaskId;

use super::asking::Write;

/// How far growth is.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Questions that were asked.
    pub(super) asked: u32,
    pub(super) standing: GrowthStanding,
}

/// What growth is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GrowthStanding {
    /// Another question may be asked.
    #[default]
    Open,
    /// One is being answered.
    UnderWay,
    /// An answer could not be used: an agent that fails once would be asked in vain for ever.
    Over,
}

/// What its loops are called: no task of a roadmap is called so.
pub(super) const GROWTH: &str = "=growth-";

impl Growth {
    pub(super) fn is_under_way(&self) -> bool {
        self.standing == GrowthStanding::UnderWay
    }

    /// What earlier hosts asked counts.
    pub(super) fn of(reported: &[TaskId]) -> Self {
        let asked = reported
            .iter()
            .filter(|task| task.starts_with(GROWTH))
            .count();
        Self {
            asked: asked as u32,
            standing: GrowthStanding::Open,
        }
    }
}

/// Time in which agents were at work: several at once count once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtWork {
    /// Counted, and in no record yet.
    pub(super) counted: Duration,
    /// Up to when.
    mark: Option<Duration>,
}

impl AtWork {
    /// Counts up to now; `busy` is whether agents were at work since the last count.
    pub(super) fn count(&mut self, now: Duration, busy: bool) {
        if let Some(mark) = self.mark.replace(now)
            && busy
        {
            self.counted += now.saturating_sub(mark);
        }
    }
}

/// An attempt whose tasks are still being claimed.
#[derive(Debug)]
pub(super) struct HeldStart {
    pub(super) slot: u32,
    pub(super) tasks: Vec<Attempt>,
    /// What the work before it has delivered is being looked up.
    pub(super) looks_up: bool,
    /// Somebody has ended it before it began.
    pub(super) stopped: bool,
}

/// What is being asked of the source of tasks.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Tasks that are being claimed.
    pub(super) claims: HashSet<TaskId>,
    /// Attempts that wait for that.
    pub(super) held: Vec<HeldStart>,
    /// The tasks are being read; those that were at work when that began.
    pub(super) news: Option<HashSet<TaskId>>,
    /// They are to be read once more: something was written since.
    pub(super) news_again: bool,
    /// What is owed is being written.
    pub(super) settling: bool,
}

impl Questions {
    /// Attempts that are not to begin any more, once their claims are answered.
    pub(super) fn stop_held(&mut self, which: impl Fn(&HeldStart) -> bool) {
        let held = self.held.iter_mut();
        held.filter(|held| which(held))
            .for_each(|held| held.stopped = true);
    }
}

/// Why the task file cannot be used, until that is known to be over.
#[derive(Debug)]
pub(super) struct FileTrouble {
    pub(super) since: Instant,
    /// How often it was tried in vain.
    tries: u32,
    next_try: Instant,
    /// It can be read, but no task can be claimed: only the next claim tells whether that is over.
    pub(super) by_claim: bool,
    /// What was said about it.
    said: String,
}

/// What is owed to the task file.
#[derive(Debug, Default)]
pub(super) struct FileState {
    /// It cannot be read or written.
    pub(super) away: bool,
    pub(super) trouble: Option<FileTrouble>,
    /// What is to be written into it, in order.
    pub(super) owed: Vec<(TaskId, Write)>,
    /// Tasks whose box this host ticked.
    pub(super) ticked: HashSet<TaskId>,
    /// Those of them of which it was said that somebody opened the box again.
    pub(super) said_opened: HashSet<TaskId>,
    /// Tasks are missing in it: nothing is decided before it was looked at again.
    pub(super) doubt: Option<FileDoubt>,
    /// How often it was doubted since a task could be claimed.
    pub(super) doubts: u32,
}

/// Tasks that are missing in the task file.
#[derive(Debug)]
pub(super) struct FileDoubt {
    /// Those that were missing when it was last read; none before it was read again.
    missing: Vec<TaskId>,
    /// Since when these.
    since: Instant,
    look_again: Instant,
}

/// A file that is doubted so often without a task being missing is believed.
const MOST_DOUBTS: u32 = 50;

impl FileState {
    /// A task was not found in it; whether that is a reason to look at all of it again.
    pub(super) fn doubt(&mut self) -> bool {
        let now = Instant::now();
        self.doubts += 1;
        if self.doubts > MOST_DOUBTS {
            return false;
        }
        self.doubt.get_or_insert(FileDoubt {
            missing: Vec::new(),
            since: now,
            look_again: now,
        });
        true
    }

    /// It was read, and does not have these of so many tasks.
    pub(super) fn misses(
        &mut self,
        keeper: TaskKeeper,
        known: usize,
        missing: Vec<TaskId>,
    ) -> MissingTasks {
        let now = Instant::now();
        let since = match self.doubt.take() {
            Some(doubt) if doubt.missing == missing => doubt.since,
            _ => now,
        };
        let found = keeper.believes(known, missing.len(), now.duration_since(since));
        if let MissingTasks::LookAgain(left) = found {
            self.doubt = Some(FileDoubt {
                missing,
                since,
                look_again: now + left,
            });
        }
        found
    }

    /// Whether it can be written now.
    pub(super) fn is_usable(&self) -> bool {
        !self.away && self.doubt.is_none()
    }

    /// It could not be used once more; whether people do not know of it yet.
    pub(super) fn failed(&mut self, keeper: TaskKeeper, by_claim: bool, message: &str) -> bool {
        let now = Instant::now();
        let known = self.trouble.take();
        let (since, tries, is_new) = match &known {
            Some(known) => (known.since, known.tries + 1, known.said != message),
            None => (now, 1, true),
        };
        self.trouble = Some(FileTrouble {
            since,
            tries,
            next_try: now + keeper.retry_after(tries),
            by_claim,
            said: message.to_owned(),
        });
        is_new
    }

    /// When the file is to be looked at again, whoever has written it.
    pub(super) fn look_again(&self) -> Option<Duration> {
        let next = match (&self.trouble, &self.doubt) {
            (Some(trouble), _) if self.away => Some(trouble.next_try),
            (_, doubt) => doubt.as_ref().map(|doubt| doubt.look_again),
        };
        next.map(|next| next.saturating_duration_since(Instant::now()))
    }
}
