//! The files that gates hang on, as they were when a task loop began: what a task changes and lands is
//! no baseline for the next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use descartes_kernel::fact;
use descartes_kernel::tasks::{WorkPlace, attempt_gates};

use super::runner::Runner;
use crate::host::gate_files::{GateNames, fingerprint_of, gate_files, gate_files_by};
use crate::host::{HostError, git_of};
use crate::worktree::deadline::Deadline;

/// Time for one question to git.
const GIT_QUERY_TIMEOUT: Duration = Duration::from_secs(30);

impl Runner<'_> {
    /// Writes down what the gates of the loop and of all its tasks hang on, once.
    pub(super) fn remember_gate_files(&mut self) -> Result<(), HostError> {
        if !self.d.state.gate_files.is_empty() {
            return Ok(());
        }
        let mut files = BTreeMap::new();
        let loops_own = (self.d.state.config.verify.clone(), None);
        let of_tasks = self.loaded.briefs.values().map(|brief| {
            let gates = attempt_gates(&self.d.state.config, std::slice::from_ref(brief));
            (gates, brief.cwd.clone())
        });
        let mut all: Vec<(Vec<String>, Option<String>)> = of_tasks.collect();
        all.push(loops_own);
        all.sort();
        all.dedup();
        for (gates, cwd) in all {
            let found = self.gate_files_now(&gates, cwd.as_deref());
            files.extend(
                found
                    .into_iter()
                    .map(|(name, print)| (key(cwd.as_deref(), &name), print)),
            );
        }
        let decided = fact::gate_files(&self.d.state, files);
        self.d.append_all(decided)
    }

    /// Where gates of a task run, in the user's own tree.
    fn gate_dir(&self, cwd: Option<&str>) -> PathBuf {
        let top = self.d.state.config.working_directory.clone();
        let top = top.unwrap_or_default();
        cwd.map_or_else(|| top.clone(), |cwd| top.join(cwd))
    }

    /// What gates hang on in what agents are given: the last commit, or the user's own tree.
    fn gate_files_now(&self, gates: &[String], cwd: Option<&str>) -> BTreeMap<String, String> {
        let dir = self.gate_dir(cwd);
        let environment = &self.d.settings.environment;
        if self.config.place == WorkPlace::InPlace {
            return gate_files(gates, &dir, environment);
        }
        let git = git_of(&self.d.settings);
        let executed = GateNames::find(gates, &dir, environment).executed;
        gate_files_by(gates, &dir, environment, |name| {
            if name.starts_with('/') || !(dir.join(name).is_file() || executed.contains(name)) {
                return None;
            }
            let blob = format!("HEAD:./{name}");
            let asked = git.read(&dir).args(["cat-file", "blob", &blob]);
            let bytes = asked.output(Deadline::after(GIT_QUERY_TIMEOUT)).ok()?;
            Some(fingerprint_of(name, &bytes))
        })
    }

    /// The same for one task, as it was when the loop began.
    pub(super) fn gate_files_before(
        &self,
        gates: &[String],
        cwd: Option<&str>,
    ) -> BTreeMap<String, String> {
        let known = &self.d.state.gate_files;
        let dir = self.gate_dir(cwd);
        let names = GateNames::find(gates, &dir, &self.d.settings.environment).names;
        let of_tree = names.iter().filter_map(|name| {
            let print = known.get(&key(cwd, name))?;
            Some((name.clone(), print.clone()))
        });
        let programs = known.iter().filter(|(file, _)| {
            let base = Path::new(file.as_str()).file_name();
            let base = base.map(|base| base.to_string_lossy().into_owned());
            file.starts_with('/') && base.is_some_and(|base| names.contains(&base))
        });
        let programs = programs.map(|(file, print)| (file.clone(), print.clone()));
        of_tree.chain(programs).collect()
    }
}

/// How a file is called in the journal of the task loop: from its own folder.
fn key(cwd: Option<&str>, name: &str) -> String {
    match cwd {
        Some(cwd) if !name.starts_with('/') => format!("{}/{name}", cwd.trim_end_matches('/')),
        _ => name.to_owned(),
    }
}
