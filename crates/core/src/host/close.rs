//! The end of an iteration: evidence from the work tree, the commit, the tag.

use std::time::Instant;

use descartes_kernel::event::Verdict;
use descartes_kernel::fact;
use descartes_kernel::step::{ClosingFacts, Input};

use super::HostError;
use super::agent_loop::AgentLoop;
use super::gate_files::changed;

impl AgentLoop {
    /// Measures, commits, and closes the iteration being judged.
    pub(super) fn close(&mut self) -> Result<(), HostError> {
        // The measure after the agent or the last gate is still true: nothing ran since.
        let mut after = self.last_measure()?;
        if self.measure_was_late() {
            after = self.measure_at_leisure()?;
        }
        self.tell_measure()?;
        let files = self.changed_since_start();
        let (mut commit, mut commit_ms) = (None, 0);
        if self.d.state.config.git.auto_commit {
            let began = Instant::now();
            commit = self.commit()?;
            commit_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
            if commit.is_some() {
                after = self.measure()?;
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
        if let Some(tree) = &mut self.tree {
            tree.mark();
        }
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
        let confined = match self.confined_git() {
            Ok(confined) => confined,
            Err(error) => {
                return self.d.warn(format!(
                    "no tag was created: git cannot be confined: {error}"
                ));
            }
        };
        match self.work_tree()?.tag_confined(&name, confined.as_ref()) {
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
