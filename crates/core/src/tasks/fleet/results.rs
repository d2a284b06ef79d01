//! What a worker has finished and no coordinator has taken yet. It is on the disk before it is handed in, so
//! that a worker which is started again hands it in once more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use descartes_bridge::{Engine, EngineError, subject};
use descartes_kernel::fleet::{HandedIn, TaskClaim, handed_in};
use descartes_kernel::state::Spent;
use descartes_store::layout::StateRoot;
use descartes_store::secret_file;
use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};

use super::clone::age;
use super::messages::child_name;
use super::mirror_source::MirrorSource;
use super::stored::{read_claim, write_claim};
use crate::host::HostSettings;
use crate::tasks::launch::file_name;

/// A finished attempt.
#[derive(Serialize, Deserialize)]
pub(super) struct FinishedAttempt {
    /// Where its task is claimed.
    pub(super) subject: String,
    pub(super) claim: String,
    pub(super) result: serde_json::Value,
    /// The object with its commits, and the file that it is made of.
    pub(super) object: Option<(String, PathBuf)>,
    /// The same of one whose commits are in the repository that its offer named: stored where the coordinator
    /// does not take it from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spare: Option<(String, PathBuf)>,
    #[serde(skip)]
    pub(super) spare_stored: bool,
    /// Why this machine could not make it as it should.
    #[serde(skip)]
    pub(super) machine_failure: Option<String>,
    /// Another attempt had damaged its clone.
    #[serde(skip)]
    pub(super) others_fault: bool,
    /// Its loop.
    pub(super) loop_id: Option<String>,
    /// Gives out the rest of its loop until the coordinator has it.
    #[serde(skip)]
    pub(super) mirror: Option<MirrorSource>,
}

/// All of them.
pub(super) struct Results {
    engine: Arc<dyn Engine>,
    worker: String,
    folder: PathBuf,
    /// What no coordinator has taken for so long is forgotten.
    limit: Duration,
    /// The same for what was pushed, which is then stored, too.
    spare_after: Duration,
    kept: Mutex<Vec<FinishedAttempt>>,
}

impl Results {
    /// Those that lie in a folder.
    pub(super) fn load(
        engine: Arc<dyn Engine>,
        worker: &str,
        settings: &HostSettings,
        folder: PathBuf,
        limit: Duration,
    ) -> Self {
        let results = Self {
            engine,
            worker: worker.to_owned(),
            folder,
            limit,
            spare_after: settings.remote_terms.spare_after,
            kept: Mutex::default(),
        };
        let entries = fs_err::read_dir(&results.folder).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            match results.read(&path, &settings.root) {
                Ok(Some(finished)) => results.kept().push(finished),
                Ok(None) => {}
                Err(error) => warn!(path = %path.display(), error, "a result cannot be read"),
            }
        }
        results
    }

    fn read(&self, path: &Path, root: &StateRoot) -> Result<Option<FinishedAttempt>, String> {
        let bytes = secret_file::read(path).map_err(|error| error.to_string())?;
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let mut finished: FinishedAttempt =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        info!(
            subject = finished.subject,
            "a result that was not taken yet"
        );
        if let Some((loop_id, task, epoch)) = subject::parse_task(&finished.subject) {
            let child = child_name(&task, epoch);
            let of = subject::journal(&loop_id, &self.worker, &child);
            let mirror = MirrorSource::start(&self.engine, &of, root);
            if let Some(loop_id) = &finished.loop_id {
                // What it used was heard of when it was opened.
                mirror.handle().opened(loop_id, Spent::default());
            }
            mirror.over();
            finished.mirror = Some(mirror);
        }
        Ok(Some(finished))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<FinishedAttempt>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a result is written down.
    pub(super) fn file(&self, subject: &str) -> PathBuf {
        self.folder.join(format!("{}.json", file_name(subject)))
    }

    /// Writes a result down before it is handed in.
    pub(super) fn write(&self, finished: &FinishedAttempt) {
        let written = serde_json::to_vec(finished).map_err(|error| error.to_string());
        let file = self.file(&finished.subject);
        let written = written.and_then(|bytes| {
            fs_err::create_dir_all(&self.folder).map_err(|error| error.to_string())?;
            secret_file::write(&file, &bytes).map_err(|error| error.to_string())
        });
        if let Err(error) = written {
            // It is handed in all the same, and lost with this process if that fails.
            warn!(error, "a result was not written down");
        }
    }

    /// It was handed in: kept until the coordinator has it.
    pub(super) fn keep(&self, finished: FinishedAttempt) {
        self.kept().push(finished);
    }

    /// Nobody wants it any more.
    pub(super) fn forget(&self, finished: &FinishedAttempt) {
        drop(fs_err::remove_file(self.file(&finished.subject)));
        for (_, file) in finished.object.iter().chain(&finished.spare) {
            drop(fs_err::remove_file(file));
        }
    }

    /// Files that are still needed.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let kept = self.kept();
        let files = kept
            .iter()
            .flat_map(|finished| finished.object.iter().chain(&finished.spare));
        files.map(|(_, file)| file.clone()).collect()
    }

    /// Forgets what was taken, and says again what the engine lost.
    pub(super) fn look_after(&self) {
        let kept = std::mem::take(&mut *self.kept());
        let mut kept = kept;
        kept.retain_mut(|finished| self.is_still_needed(finished));
        self.kept().extend(kept);
    }

    fn is_still_needed(&self, finished: &mut FinishedAttempt) -> bool {
        let age = age(&self.file(&finished.subject));
        if age.is_some_and(|age| age > self.limit) {
            info!(subject = finished.subject, "a result that nobody took");
            self.forget(finished);
            return false;
        }
        let Ok(stored) = read_claim(&self.engine, &finished.subject) else {
            return true;
        };
        match handed_in(&finished.claim, &stored) {
            HandedIn::Keep => {
                if age.is_some_and(|age| age > self.spare_after) && !finished.spare_stored {
                    finished.spare_stored = self.store_spare(finished);
                }
                true
            }
            HandedIn::Forget => {
                self.forget(finished);
                false
            }
            HandedIn::WriteAgain { expect } => {
                finished.spare_stored = false;
                if let Err(error) = self.say_again(finished, expect) {
                    debug!(%error, "a result could not be handed in again");
                }
                true
            }
        }
    }

    /// Whoever cannot fetch it from where it was pushed finds it in the engine.
    fn store_spare(&self, finished: &FinishedAttempt) -> bool {
        let Some((name, file)) = &finished.spare else {
            return true;
        };
        info!(
            subject = finished.subject,
            "a result that was pushed is stored"
        );
        let stored = self.engine.put_object(name, file);
        if let Err(error) = &stored {
            debug!(%error, "a result could not be stored");
        }
        stored.is_ok()
    }

    fn say_again(&self, finished: &FinishedAttempt, expect: u64) -> Result<(), EngineError> {
        if let Some((name, file)) = &finished.object {
            self.engine.put_object(name, file)?;
        }
        let claim = TaskClaim::Done {
            worker: self.worker.clone(),
            claim: finished.claim.clone(),
            result: Box::new(finished.result.clone()),
        };
        write_claim(&self.engine, &finished.subject, expect, None, &claim).map(drop)
    }
}
