//! What a remote attempt came to: its commits, the rest of its loop, and the work of one that died.

use std::path::Path;
use std::time::{Duration, Instant};

use descartes_bridge::EngineError;
use descartes_kernel::fleet::{StoredClaim, TaskClaim};
use descartes_kernel::sched::AttemptEnd;
use tracing::{debug, warn};

use super::messages::DeliveredAttempt;
use super::remote_attempt::{REST, RemoteAttempt};
use super::stored::write_claim;
use super::wip::{fetch_stored, forget_stored};
use crate::tasks::event::{AttemptNews, TaskEvent};
use crate::tasks::launch::file_name;
use crate::tasks::place::WorkDelivery;

/// How long commits that were handed in are waited for: an engine that lost its disk gets them again.
const IMPORT_PATIENCE: Duration = Duration::from_secs(90);

impl RemoteAttempt {
    /// Nobody has the loop of the task any more, and all of it that there is was copied.
    pub(super) fn close_mirror(&mut self, is_done: bool) {
        if let Some((loop_id, unheard, worker)) = self.noted.take() {
            self.tell_opened(loop_id, unheard, worker);
        }
        let Some(mirror) = self.mirror.take().filter(|_| is_done) else {
            return;
        };
        if !mirror.finish() {
            let worker = self.worker.as_deref().unwrap_or("its worker");
            self.tell(TaskEvent::Notice(format!(
                "task {}: {worker} left before all of its journal and logs were copied",
                self.order.work.id
            )));
        }
    }

    /// Takes in what the attempt came to.
    pub(super) fn deliver(&mut self) -> AttemptNews {
        let task = self.order.work.id.clone();
        let StoredClaim::Value {
            claim: TaskClaim::Done { worker, result, .. },
            ..
        } = &self.last
        else {
            return self.interrupted(Some(format!("task {task}: its result is gone")));
        };
        let worker = worker.clone();
        let done: DeliveredAttempt = match serde_json::from_value((**result).clone()) {
            Ok(done) => done,
            Err(error) => {
                let message =
                    format!("task {task}: what {worker} handed in is unreadable: {error}");
                return self.interrupted(Some(message));
            }
        };
        let mut news = done.news;
        (news.slot, news.tasks) = (self.order.slot, self.order.tasks.clone());
        let imported = match &done.commit {
            None => Ok(()),
            Some((commit, built_on)) => self.import(commit, built_on, done.object.as_deref()),
        };
        if let Err(message) = imported {
            warn!(task, worker, message, "work could not be taken in");
            news.end = AttemptEnd::Interrupted;
            news.run = None;
            news.trouble = Some(format!(
                "task {task}: cannot take in the work of {worker}: {message}"
            ));
        }
        news
    }

    fn import(&self, commit: &str, built_on: &str, object: Option<&str>) -> Result<(), String> {
        let file = match object {
            None => None,
            Some(object) => {
                let file = self.shared.folder.join(file_name(object));
                fs_err::create_dir_all(&self.shared.folder).map_err(|error| error.to_string())?;
                self.fetch(object, &file)?;
                Some(file)
            }
        };
        let delivery = WorkDelivery {
            epoch: self.epoch,
            commit: commit.to_owned(),
            built_on: built_on.to_owned(),
            bundle: file.clone(),
        };
        let imported = self.shared.place.import(&self.order.work, &delivery);
        if let Some(file) = file {
            drop(fs_err::remove_file(file));
        }
        imported.map_err(|error| error.to_string())
    }

    /// The next attempt begins from what the worker stored while its agent was at work; true where there
    /// is something.
    pub(super) fn take_stored(&self) -> bool {
        if self.worker.is_none() {
            return false;
        }
        let shared = &self.shared;
        let stored = match fetch_stored(&shared.engine, &self.subject, &shared.folder) {
            Ok(Some(stored)) => stored,
            Ok(None) => return false,
            Err(message) => {
                warn!(message, "stored work could not be fetched");
                return false;
            }
        };
        let (work, bundle) = stored;
        let delivery = WorkDelivery {
            epoch: self.epoch,
            commit: work.commit,
            built_on: work.built_on,
            bundle: Some(bundle.clone()),
        };
        let imported = shared.place.import(&self.order.work, &delivery);
        drop(fs_err::remove_file(bundle));
        forget_stored(&shared.engine, &self.subject);
        imported
            .map_err(|error| warn!(%error, "stored work could not be taken in"))
            .is_ok()
    }

    fn fetch(&self, object: &str, file: &Path) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match self.shared.engine.get_object(object, file) {
                Ok(()) => return Ok(()),
                Err(error)
                    if (error.is_temporary() || matches!(error, EngineError::NoObject(_)))
                        && began.elapsed() < IMPORT_PATIENCE =>
                {
                    std::thread::sleep(REST);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The worker may forget its result once the journal has it.
    pub(super) fn accept(&mut self) {
        let engine = &self.shared.engine;
        let seq = self.last.seq();
        let accepted = write_claim(engine, &self.subject, seq, None, &TaskClaim::Accepted);
        if let Err(error) = accepted {
            debug!(%error, "a result was not confirmed");
        }
        let name = file_name(&self.subject);
        for object in [format!("{name}-order"), format!("{name}-result")] {
            drop(engine.delete_object(&object));
        }
        forget_stored(engine, &self.subject);
    }
}
