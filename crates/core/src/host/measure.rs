//! The work tree, measured beside the driver: it may take a minute, and people, signals and budgets are heard
//! meanwhile.

use std::time::{Duration, Instant};

use descartes_kernel::event::TreeFacts;
use descartes_kernel::fact;
use descartes_kernel::step::{LeftChanges, LeftTrees, left_trees};
use tracing::debug;

use super::HostError;
use super::agent_loop::AgentLoop;
use super::message::HostMessage;
use crate::worktree::deadline::{Deadline, StopFlag};
use crate::worktree::pipes::pipe_in;
use crate::worktree::{ChangeStatus, Changed, Snapshot, Tree, TreeHash};

/// Where measuring takes longer, progress is unknown.
const LIMIT: Duration = Duration::from_secs(60);
/// A measure that was late is taken once more after the run, and has so much time: what the iteration changed
/// is to be seen and put back, on slow machines too.
const LIMIT_AFTER_RUN: Duration = Duration::from_secs(600);
/// A measure that takes longer is told of.
const SLOW: Duration = Duration::from_secs(2);
/// A measure under way has so long once its end is wanted.
const LEFT_WHEN_STOPPED: Duration = Duration::from_secs(1);

/// What is done with what is said to the loop meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    /// It is heard at once.
    Hear,
    /// It is heard later: the loop is being taken up.
    Keep,
}

impl AgentLoop {
    /// The work tree as it is now.
    pub(super) fn measure(&mut self) -> Result<TreeFacts, HostError> {
        self.measure_within(LIMIT, Meanwhile::Hear)
    }

    /// The same after a measure that was late.
    pub(super) fn measure_at_leisure(&mut self) -> Result<TreeFacts, HostError> {
        self.measure_within(LIMIT_AFTER_RUN, Meanwhile::Hear)
    }

    fn measure_within(
        &mut self,
        limit: Duration,
        meanwhile: Meanwhile,
    ) -> Result<TreeFacts, HostError> {
        let began = Instant::now();
        let snapshot = self.snapshot_beside(limit, meanwhile)?;
        let facts = facts_of(&snapshot);
        debug!(
            ms = began.elapsed().as_millis() as u64,
            changed = snapshot.changed,
            unknown = facts.unknown,
            "work tree measured"
        );
        self.measured = Some((facts.clone(), snapshot));
        Ok(facts)
    }

    fn snapshot_beside(
        &mut self,
        limit: Duration,
        meanwhile: Meanwhile,
    ) -> Result<Snapshot, HostError> {
        let mut tree = self.tree.take().ok_or_else(in_use)?;
        let stop = StopFlag::default();
        let deadline = Deadline::after(limit).or_at(stop.clone());
        let (tx, top) = (self.d.tx.clone(), tree.top().to_owned());
        let measuring = move || {
            let snapshot = tree.snapshot_until(deadline);
            drop(tx.send(HostMessage::Measured(Box::new((tree, snapshot)))));
        };
        let thread = std::thread::Builder::new().name("measure".to_owned());
        let begun = thread.spawn(measuring);
        begun.map_err(|error| HostError::Internal(format!("cannot start a thread: {error}")))?;
        let mut notice_at = Some(self.d.mono() + SLOW);
        let mut stop_at = None;
        let mut was_told = false;
        let mut kept = Vec::new();
        let snapshot = loop {
            let deadline = [notice_at, stop_at].into_iter().flatten().min();
            match self.d.next(deadline)? {
                Some(HostMessage::Measured(measured)) => {
                    let (tree, snapshot) = *measured;
                    self.tree = Some(tree);
                    if was_told {
                        self.d.append(fact::not_busy())?;
                    }
                    break snapshot;
                }
                Some(message) if meanwhile == Meanwhile::Keep => {
                    if matches!(message, HostMessage::Stop(_) | HostMessage::Kill(_)) {
                        stop_at = stop_at.or(Some(self.d.mono() + LEFT_WHEN_STOPPED));
                    }
                    kept.push(message);
                }
                Some(message) => {
                    if self.handle_control(message)?.is_some() {
                        stop_at = stop_at.or(Some(self.d.mono() + LEFT_WHEN_STOPPED));
                    }
                }
                None if notice_at.is_some_and(|at| self.d.mono() >= at) => {
                    notice_at = None;
                    // Git would wait for it until the limit.
                    if pipe_in(&top).is_some() {
                        stop.raise();
                    }
                    was_told = self.tell_slow()?;
                }
                None => {
                    stop_at = None;
                    stop.raise();
                }
            }
        };
        for message in kept {
            drop(self.d.tx.send(message));
        }
        Ok(snapshot)
    }

    /// Says once that it takes long; gives whether it was now.
    fn tell_slow(&mut self) -> Result<bool, HostError> {
        if std::mem::replace(&mut self.d.said.slow_measure, true) {
            return Ok(false);
        }
        self.d.append(fact::busy("measuring the work tree"))?;
        Ok(true)
    }

    pub(super) fn last_measure(&mut self) -> Result<TreeFacts, HostError> {
        match &self.measured {
            Some((facts, _)) => Ok(facts.clone()),
            None => self.measure(),
        }
    }

    /// The work tree, which nobody measures at the moment.
    pub(super) fn work_tree(&self) -> Result<&Tree, HostError> {
        self.tree.as_ref().ok_or_else(in_use)
    }

    /// Whether the newest measure took too long.
    pub(super) fn measure_was_late(&self) -> bool {
        self.tree.as_ref().is_some_and(Tree::was_late)
    }

    /// The work tree of an iteration that a dead host left, and what is not as it was then.
    pub(super) fn look_at_left_work(
        &mut self,
    ) -> Result<(TreeFacts, Option<LeftChanges>), HostError> {
        let now = self.measure_within(LIMIT, Meanwhile::Keep)?;
        let left = left_trees(&self.d.state).zip(now.tree.as_deref());
        let tree = self.tree.as_ref();
        let changes = left.zip(tree);
        let changes = changes.and_then(|((left, now), tree)| left_changes(tree, &left, now));
        Ok((now, changes))
    }

    /// Says once that the work tree cannot be measured, and what follows from it.
    pub(super) fn tell_measure(&mut self) -> Result<(), HostError> {
        let unknown = self.measured.as_ref();
        let unknown = unknown.and_then(|(facts, _)| facts.unknown.clone());
        let message =
            unknown.map(|why| format!("{why}: progress is unknown, stall detection is off"));
        let news = self.d.said.measure.news(message);
        news.map_or(Ok(()), |message| self.d.warn(message))
    }
}

fn in_use() -> HostError {
    HostError::Internal("the work tree is being measured".to_owned())
}

/// `None` without git, or where the snapshots are gone.
fn left_changes(tree: &Tree, left: &LeftTrees<'_>, now: &str) -> Option<LeftChanges> {
    let between = |from: &str, to: &str| -> Option<Vec<Changed>> {
        let snapshot = |text: &str| Some(Snapshot::recorded(None, text.parse().ok()?));
        tree.changed_files(&snapshot(from)?, &snapshot(to)?).ok()
    };
    let paths = |files: Vec<Changed>| files.into_iter().map(|file| file.path);
    let meanwhile = between(left.last, now)?;
    let before = left.before.iter();
    let of_loop: Option<Vec<_>> = before.map(|before| between(before, left.agent)).collect();
    let of_loop = of_loop.unwrap_or_else(|| {
        // What the loop changed cannot be told any more: it may be whatever was there.
        let there = meanwhile
            .iter()
            .filter(|file| file.status != ChangeStatus::Added);
        vec![there.cloned().collect()]
    });
    Some(LeftChanges {
        of_loop: of_loop.into_iter().flat_map(paths).collect(),
        meanwhile: paths(meanwhile).collect(),
    })
}

fn facts_of(snapshot: &Snapshot) -> TreeFacts {
    let (tree, unknown) = match &snapshot.tree {
        TreeHash::Unknown { reason } => (None, Some(reason.clone())),
        known => (Some(known.to_string()), None),
    };
    TreeFacts {
        head: snapshot.head.clone(),
        tree,
        unknown,
        open_items: None,
    }
}
