//! The end of an iteration: evidence from the work tree, the commit, the tag.

use std::time::{Duration, Instant};

use descartes_kernel::event::{TreeFacts, Verdict};
use descartes_kernel::fact;
use descartes_kernel::step::{ClosingFacts, Input, LeftChanges, LeftTrees, left_trees};
use tracing::debug;

use super::HostError;
use super::agent_loop::AgentLoop;
use super::gate_files::changed;
use crate::worktree::{ChangeStatus, Changed, Snapshot, Tree, TreeHash};

/// Where measuring takes longer, progress is unknown.
const MEASURE_BUDGET: Duration = Duration::from_secs(2);

impl AgentLoop {
    /// The work tree as it is now.
    pub(super) fn measure(&mut self) -> TreeFacts {
        let began = Instant::now();
        let snapshot = self.tree.snapshot_or_again(MEASURE_BUDGET);
        let facts = facts_of(&snapshot);
        debug!(
            ms = began.elapsed().as_millis() as u64,
            changed = snapshot.changed,
            unknown = facts.unknown,
            "work tree measured"
        );
        self.measured = Some((facts.clone(), snapshot));
        facts
    }

    pub(super) fn last_measure(&mut self) -> TreeFacts {
        match &self.measured {
            Some((facts, _)) => facts.clone(),
            None => self.measure(),
        }
    }

    /// The work tree of an iteration that a dead host left, and what is not as it was then.
    pub(super) fn look_at_left_work(&mut self) -> (TreeFacts, Option<LeftChanges>) {
        let now = self.measure();
        let left = left_trees(&self.d.state).zip(now.tree.as_deref());
        let changes = left.and_then(|(left, now)| left_changes(&self.tree, &left, now));
        (now, changes)
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

    /// Measures, commits, and closes the iteration being judged.
    pub(super) fn close(&mut self) -> Result<(), HostError> {
        // The measure after the agent or the last gate is still true: nothing ran since.
        let mut after = self.last_measure();
        self.tell_measure()?;
        let files = self.changed_since_start();
        let (mut commit, mut commit_ms) = (None, 0);
        if self.d.state.config.git.auto_commit {
            let began = Instant::now();
            commit = self.commit()?;
            commit_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
            if commit.is_some() {
                after = self.measure();
            }
        }
        self.d.input(&Input::Closed(ClosingFacts {
            after,
            files,
            commit,
            commit_ms,
        }))?;
        self.d.files.run_is_over(self.d.state.runs);
        self.mark();
        if self.d.state.config.git.tag_green && self.all_green() {
            self.tag_green()?;
        }
        let pruned = self.d.files.pruned();
        self.d.told_pruned(pruned)?;
        self.d.tell_dropped()?;
        self.d.save_or_warn()?;
        self.d.keep_locks()
    }

    /// Makes what is there now the point that the next iteration's changes are counted from.
    pub(super) fn mark(&mut self) {
        self.tree.mark();
    }

    fn changed_since_start(&self) -> Option<u32> {
        self.measured
            .as_ref()
            .and_then(|(_, snapshot)| snapshot.changed)
    }

    fn all_green(&self) -> bool {
        let done = matches!(
            self.d.state.verdict,
            Some(Verdict::Promise | Verdict::Gates)
        );
        done && !self.d.state.config.verify.is_empty()
    }

    fn tag_green(&mut self) -> Result<(), HostError> {
        let name = format!(
            "descartes/{}/{}",
            self.d.state.name, self.d.state.iterations
        );
        match self.tree.tag(&name) {
            Ok(()) => self.d.append(fact::tagged(name)),
            Err(error) => self.d.warn(format!("no tag was created: {error}")),
        }
    }

    /// Files that the gates hang on and that are not as they were when the loop began.
    pub(super) fn report_changed_gate_files(&mut self) -> Result<(), HostError> {
        let changed = changed(
            &self.d.state.gate_files,
            &self.d.state.config.verify,
            &self.d.working_dir(),
            &self.d.settings.environment,
        );
        for (file, print) in changed {
            if self.reported_gate_files.insert((file.clone(), print)) {
                self.d.append(fact::gate_file_changed(file, None))?;
            }
        }
        Ok(())
    }
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
