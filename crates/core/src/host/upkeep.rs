//! What every loop does besides its work: it saves its state file, keeps its lock, and says what
//! had to make room.

use descartes_kernel::fact;
use descartes_kernel::prompt::fill_template;
use descartes_store::lock::LockError;
use descartes_store::logs::PrunedRun;
use descartes_text::units::show_size;
use jiff::Timestamp;
use tracing::warn;

use super::driver::Driver;
use super::error::HostError;
use super::gate_files::{GateNames, gate_files, is_named};

impl Driver {
    /// Says once that snapshots had to go.
    pub(super) fn tell_dropped(&mut self) -> Result<(), HostError> {
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

    pub(super) fn told_pruned(&mut self, pruned: Vec<PrunedRun>) -> Result<(), HostError> {
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
        news.map_or(Ok(()), |message| self.warn(message))
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
        let message = match kept {
            Ok(()) => None,
            Err(LockError::Io(error)) => Some(format!(
                "the lock next to the state file cannot be kept: {error}"
            )),
            Err(error) => return Err(error.into()),
        };
        let news = self.said.lock.news(message);
        news.map_or(Ok(()), |message| self.warn(message))
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

    /// Other gates hang on other files: those that they name for the first time are as they should
    /// be; of those that the loop began with, what was known of them stays.
    pub(super) fn gates_changed(&mut self) -> Result<(), HostError> {
        let gates = &self.state.config.verify;
        let (dir, environment) = (self.working_dir(), &self.settings.environment);
        let mut files = gate_files(gates, &dir, environment);
        let names = GateNames::find(gates, &dir, environment).names;
        for (file, hash) in &self.state.gate_files {
            if is_named(file, &names) {
                files.insert(file.clone(), hash.clone());
            }
        }
        self.append_all(fact::gate_files(&self.state, files))
    }
}

fn save_trouble(saved: Result<(), HostError>) -> Option<String> {
    let error = saved.err()?;
    Some(format!("the state file is not up to date: {error}"))
}
