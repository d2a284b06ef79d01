//! What a remote attempt came to: its commits, the rest of its loop, and the work of one that died.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use descartes_bridge::EngineError;
use descartes_kernel::fleet::{StoredClaim, TaskClaim};
use descartes_kernel::sched::AttemptEnd;
use descartes_kernel::tasks::AttemptTrouble;
use tracing::{debug, warn};

use super::git_remote::offer_refs;
use super::messages::{DeliveredAttempt, RemoteFailure};
use super::offering::RemoteAnswer;
use super::remote_attempt::{REST, RemoteAttempt};
use super::stored::{result_object, write_claim};
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
            return self.not_taken_in(format!("task {task}: its result is gone"));
        };
        let worker = worker.clone();
        let done: DeliveredAttempt = match serde_json::from_value((**result).clone()) {
            Ok(done) => done,
            Err(error) => {
                let message =
                    format!("task {task}: what {worker} handed in is unreadable: {error}");
                return self.not_taken_in(message);
            }
        };
        if let Some(failure) = done.remote_failure {
            self.tell_failed_worker(&worker, failure);
        }
        let mut news = done.news;
        (news.slot, news.serial) = (self.order.slot, self.order.serial);
        news.tasks.clone_from(&self.order.tasks);
        (news.remote_trouble, news.ends_all) = AttemptTrouble::of_worker(
            news.trouble.take(),
            news.ends_all.take(),
            news.run.is_some(),
        );
        if let Some(AttemptTrouble::Handover(message)) = &news.remote_trouble
            && done.others_fault
        {
            news.remote_trouble = Some(AttemptTrouble::Worker(message.clone()));
        }
        let imported = match &done.commit {
            None => Ok(()),
            Some((commit, built_on)) if done.pushed => self.import_pushed(commit, built_on),
            Some((commit, _)) => self.import(commit, done.object.as_deref()),
        };
        if let Err(message) = imported {
            warn!(task, worker, message, "work could not be taken in");
            news.end = AttemptEnd::Interrupted;
            news.run = None;
            news.remote_trouble = Some(AttemptTrouble::Handover(format!(
                "cannot take in the work of {worker}: {message}"
            )));
        }
        if let Some(trouble) = &news.remote_trouble {
            let again = match trouble {
                // Whether it is offered again depends on how often that was so.
                AttemptTrouble::Handover(_) => "",
                _ => " is offered again",
            };
            let message = format!("task {task}{again}: {worker}: {}", trouble.message());
            let is_stored = done.commit.is_none() && self.take_stored();
            news.warnings.push(match is_stored {
                true => format!("{message}; it begins from the work that {worker} had stored"),
                false => message,
            });
        }
        news
    }

    fn not_taken_in(&self, message: String) -> AttemptNews {
        let mut news = self.interrupted(None);
        news.warnings.push(message.clone());
        news.remote_trouble = Some(AttemptTrouble::Handover(message));
        news
    }

    /// What a worker could not do in a minute is left to the engine.
    fn tell_failed_worker(&self, worker: &str, failure: RemoteFailure) {
        if self.shared.health().failed_for_worker(self.shared.now()) {
            self.tell_left(&match failure {
                RemoteFailure::Fetch => format!("{worker} could not fetch from it"),
                RemoteFailure::Push => format!("{worker} could not push to it"),
            });
        }
    }

    fn import(&self, commit: &str, object: Option<&str>) -> Result<(), String> {
        let file = match object {
            None => None,
            Some(object) => {
                let file = self.shared.folder.join(file_name(object));
                fs_err::create_dir_all(&self.shared.folder).map_err(|error| error.to_string())?;
                self.fetch(object, &file)?;
                Some(file)
            }
        };
        self.take_bundle(commit, file)
    }

    /// Takes a commit into the repository; the bundle that holds it is removed.
    fn take_bundle(&self, commit: &str, bundle: Option<PathBuf>) -> Result<(), String> {
        let delivery = WorkDelivery {
            epoch: self.epoch,
            commit: commit.to_owned(),
            bundle,
        };
        let imported = self.shared.place.import(&self.order.work, &delivery);
        if let Some(bundle) = delivery.bundle {
            drop(fs_err::remove_file(bundle));
        }
        imported.map_err(|error| error.to_string())
    }

    /// The same for a commit in the repository by which work travels. Where it cannot be fetched from there,
    /// its worker stores it in the engine after a while.
    fn import_pushed(&mut self, commit: &str, built_on: &str) -> Result<(), String> {
        let name = offer_refs(&self.shared.loop_id, &self.subject).result();
        let object = result_object(&self.subject);
        let file = self.shared.folder.join(&object);
        let shared = self.shared.clone();
        let Some(remote) = &shared.remote else {
            return Err("no repository is known by which work travels".to_owned());
        };
        let (began, mut rest, mut told) = (Instant::now(), REST, false);
        loop {
            let Err(message) = remote.fetch(std::slice::from_ref(&name)) else {
                return self.take_fetched(&name, commit, built_on);
            };
            fs_err::create_dir_all(&shared.folder).map_err(|error| error.to_string())?;
            if shared.engine.get_object(&object, &file).is_ok() {
                return self.take_bundle(commit, Some(file));
            }
            let tried = began.elapsed();
            let is_gone = matches!(remote.list(&name), Ok(listed) if listed.is_empty());
            if (is_gone && tried > IMPORT_PATIENCE) || !shared.health().waits_for_result(tried) {
                return Err(message);
            }
            if !std::mem::replace(&mut told, true) {
                self.tell_remote(&message);
            }
            if !self.rest_between(&mut rest) {
                self.left_to_next = true;
                return Err("it was not fetched before the end".to_owned());
            }
        }
    }

    fn take_fetched(&self, name: &str, commit: &str, built_on: &str) -> Result<(), String> {
        let Some(remote) = &self.shared.remote else {
            return Err("no repository is known by which work travels".to_owned());
        };
        let file = format!("{}.bundle", file_name(&self.subject));
        let file = self.shared.folder.join(file);
        remote.bundle(name, built_on, &file)?;
        self.take_bundle(commit, Some(file))
    }

    /// The same for what a worker pushed while its agent was at work.
    fn take_pushed_work(&mut self) -> bool {
        let refs = offer_refs(&self.shared.loop_id, &self.subject);
        let fetched = self.ask_remote(|remote| {
            let listed = remote.list(&refs.work(""))?;
            let Some((commit, built_on)) = refs.stored_work(listed.iter()) else {
                return Ok(None);
            };
            let name = refs.work(built_on);
            remote.fetch(std::slice::from_ref(&name))?;
            Ok(Some((name, commit.to_owned(), built_on.to_owned())))
        });
        self.is_over = !matches!(fetched, RemoteAnswer::Ended);
        let RemoteAnswer::Answer(Some((name, commit, built_on))) = fetched else {
            return false;
        };
        self.take_fetched(&name, &commit, &built_on)
            .map_err(|message| warn!(message, "stored work could not be taken in"))
            .is_ok()
    }

    /// The next attempt begins from what the worker stored while its agent was at work; true where there
    /// is something.
    pub(super) fn take_stored(&mut self) -> bool {
        self.is_over = true;
        self.worker.is_some() && self.take_stored_work()
    }

    /// The same, whoever it was.
    pub(super) fn take_stored_work(&mut self) -> bool {
        let is_tried = self.shared.health().is_tried(self.shared.now());
        if self.shared.remote.is_some() && is_tried && self.take_pushed_work() {
            return true;
        }
        // Where that was left, work travels through the engine.
        if !self.is_over {
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
        let imported = self.take_bundle(&work.commit, Some(bundle));
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
        let order = format!("{}-order", file_name(&self.subject));
        for object in [order, result_object(&self.subject)] {
            drop(engine.delete_object(&object));
        }
        forget_stored(engine, &self.subject);
        self.is_over = true;
    }
}
