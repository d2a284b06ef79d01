//! The end of an iteration: evidence from the work tree, the commit, the tag.

use std::time::{Duration, Instant};

use descartes_kernel::event::{TreeFacts, Verdict};
use descartes_kernel::fact;
use descartes_kernel::gate_files::gate_file_names;
use descartes_kernel::prompt::fill_template;
use descartes_kernel::state::Phase;
use descartes_kernel::step::{ClosingFacts, Input};
use jiff::Timestamp;

use descartes_kernel::units::show_size;
use descartes_store::lock::LockError;
use descartes_store::logs::PrunedRun;
use tracing::{debug, warn};

use super::HostError;
use super::driver::Driver;
use super::gate_files::{changed, gate_files, is_named};
use crate::worktree::{Snapshot, TreeHash};

/// Where measuring takes longer, progress is unknown.
const MEASURE_BUDGET: Duration = Duration::from_secs(2);

impl Driver {
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

    /// Says once that the work tree cannot be measured, and what follows from it.
    pub(super) fn tell_measure(&mut self) -> Result<(), HostError> {
        let unknown = self.measured.as_ref();
        let unknown = unknown.and_then(|(facts, _)| facts.unknown.clone());
        let words =
            unknown.map(|why| format!("{why}: progress is unknown, stall detection is off"));
        let news = self.said.measure.news(words);
        news.map_or(Ok(()), |words| self.warn(words))
    }

    /// Measures, commits, and closes the iteration being judged.
    pub(super) fn close(&mut self) -> Result<(), HostError> {
        let judged = matches!(&self.state.phase, Phase::Judging { gates, .. } if !gates.is_empty());
        // The last gate's own measure is still true: nothing ran since.
        let mut after = if judged {
            self.last_measure()
        } else {
            self.measure()
        };
        self.tell_measure()?;
        let files = self.changed_since_start();
        let (mut commit, mut commit_ms) = (None, 0);
        if self.state.config.git.auto_commit {
            let began = Instant::now();
            commit = self.commit()?;
            commit_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
            if commit.is_some() {
                after = self.measure();
            }
        }
        self.input(&Input::Closed(ClosingFacts {
            after,
            files,
            commit,
            commit_ms,
        }))?;
        self.files.run_is_over(self.state.runs);
        self.mark();
        if self.state.config.git.tag_green && self.all_green() {
            self.tag_green()?;
        }
        let pruned = self.files.pruned();
        self.told_pruned(pruned)?;
        self.tell_dropped()?;
        self.save_or_warn()?;
        self.keep_locks()
    }

    /// Says once that snapshots had to go.
    fn tell_dropped(&mut self) -> Result<(), HostError> {
        let (Some(dropped), Some(limit)) =
            (self.files.dropped(), self.state.config.max_snapshot_bytes)
        else {
            return Ok(());
        };
        if std::mem::replace(&mut self.said.dropped, true) {
            return Ok(());
        }
        self.warn(format!(
            "snapshots exceeded {}: the oldest {} were dropped ({}), so `loop diff` and `loop \
             rewind` cannot go back to them; older ones are dropped from now on (--max-snapshots)",
            show_size(limit),
            dropped.snapshots,
            show_size(dropped.bytes)
        ))
    }

    /// Says which logs had to go at last.
    pub(super) fn settle_logs(&mut self) -> Result<(), HostError> {
        let pruned = self.files.pruned_at_last();
        self.told_pruned(pruned)
    }

    fn told_pruned(&mut self, pruned: Vec<PrunedRun>) -> Result<(), HostError> {
        for run in pruned {
            let size = show_size(run.bytes);
            self.warn(format!(
                "the log of run {} was removed to make room ({size})",
                run.run
            ))?;
        }
        Ok(())
    }

    /// The state file is a projection: where it cannot be written the loop goes on, and says so.
    pub(crate) fn save_or_warn(&mut self) -> Result<(), HostError> {
        let saved = self.save_state();
        self.told_save(saved)
    }

    /// The same where nothing can be said any more: the journal has the loop's end, and a state
    /// file that lacks it makes it no other.
    pub(crate) fn save_last(&mut self) {
        let saved = self.save_state();
        self.said.state_file.news(save_trouble(saved));
    }

    fn told_save(&mut self, saved: Result<(), HostError>) -> Result<(), HostError> {
        if let Err(error) = &saved {
            warn!(%error, "state file not saved");
        }
        let news = self.said.state_file.news(save_trouble(saved));
        if let Some(copy) = self.files.take_edited() {
            self.warn(format!(
                "the state file was changed by someone else while the loop is running; that \
                 change is ignored and kept as {}; to change a running loop: descartes loop set",
                copy.display()
            ))?;
        }
        news.map_or(Ok(()), |words| self.warn(words))
    }

    /// An agent may have deleted the lock beside the state file.
    pub(crate) fn keep_locks(&mut self) -> Result<(), HostError> {
        if self.work_directory.check().is_err()
            && self.work_directory.is_above(self.files.state_file())
        {
            return Ok(());
        }
        let kept = self.files.lock.keep();
        self.told_lock(kept)
    }

    /// The lock in the state root stands, which no agent can delete: where the other cannot be made
    /// anew the loop goes on, and says so. Unless somebody else holds it.
    fn told_lock(&mut self, kept: Result<(), LockError>) -> Result<(), HostError> {
        let words = match kept {
            Ok(()) => None,
            Err(LockError::Io(error)) => Some(format!(
                "the lock next to the state file cannot be kept: {error}"
            )),
            Err(error) => return Err(error.into()),
        };
        let news = self.said.lock.news(words);
        news.map_or(Ok(()), |words| self.warn(words))
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
        let done = matches!(self.state.verdict, Some(Verdict::Promise | Verdict::Gates));
        done && !self.state.config.verify.is_empty()
    }

    fn values(&self) -> [(&'static str, String); 3] {
        let iteration = self
            .state
            .run()
            .map_or(self.state.iterations, |run| run.iteration);
        [
            ("iteration", iteration.to_string()),
            (
                "timestamp",
                Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string(),
            ),
            ("name", self.state.name.clone()),
        ]
    }

    pub(super) fn fill(&self, template: &str) -> Result<String, String> {
        let values = self.values();
        let borrowed: Vec<(&str, &str)> = values.iter().map(|(k, v)| (*k, v.as_str())).collect();
        fill_template(template, &borrowed)
    }

    fn tag_green(&mut self) -> Result<(), HostError> {
        let name = format!("descartes/{}/{}", self.state.name, self.state.iterations);
        match self.tree.tag(&name) {
            Ok(()) => self.append(fact::tagged(name)),
            Err(error) => self.warn(format!("no tag was created: {error}")),
        }
    }

    /// Other gates hang on other files: those that they name for the first time are as they should
    /// be; of those that the loop began with, what was known of them stays.
    pub(super) fn gates_changed(&mut self) -> Result<(), HostError> {
        let gates = &self.state.config.verify;
        let mut files = gate_files(gates, &self.working_dir(), &self.settings.environment);
        let names = gate_file_names(gates);
        for (file, hash) in &self.state.gate_files {
            if is_named(file, &names) {
                files.insert(file.clone(), hash.clone());
            }
        }
        self.append_all(fact::gate_files(&self.state, files))
    }

    /// Files that the gates hang on and that are not as they were when the loop began.
    pub(super) fn report_changed_gate_files(&mut self) -> Result<(), HostError> {
        let changed = changed(
            &self.state.gate_files,
            &self.state.config.verify,
            &self.working_dir(),
            &self.settings.environment,
        );
        for (file, print) in changed {
            if self.reported_gate_files.insert((file.clone(), print)) {
                self.append(fact::gate_file_changed(file, None))?;
            }
        }
        Ok(())
    }
}

fn save_trouble(saved: Result<(), HostError>) -> Option<String> {
    let error = saved.err()?;
    Some(format!("the state file is not up to date: {error}"))
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
