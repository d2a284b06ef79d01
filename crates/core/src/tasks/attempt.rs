//! One attempt at a task: its own loop, lent for one iteration, on a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::edits::Accept;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::sandbox::denied_since;
use descartes_kernel::sched::AttemptEnd;
use descartes_kernel::state::Spent;
use descartes_kernel::tasks::{attempt_change, attempt_end, ends_all_tasks, is_unheard_proof};
use descartes_store::catalog::{Lies, lies};
use descartes_store::debug_log::variant;
use descartes_store::lock::LockError;
use descartes_store::state_file;
use tracing::{debug, info, info_span};

use super::attempt_control::Control;
use super::event::{AttemptNews, RunNews, TaskEvent};
use super::git_error::{GitError, GitErrorKind};
use super::order::AttemptOrder;
use super::place::{Finished, Proven, Ready, Workplace};
use crate::host::message::HostMessage;
use crate::host::task_loop::no_tasks;
use crate::host::{
    AttemptTree, Host, HostError, HostSettings, NewLoop, OnExistingState, Purpose, Resume, Resumed,
    Retry, create_within, resume_for,
};

/// The guard of a dead host's agent may still be sweeping.
const SWEEPING: Duration = Duration::from_secs(20);

/// An attempt to be made here.
pub(super) struct Job {
    pub(super) order: AttemptOrder,
    pub(super) settings: HostSettings,
    pub(super) place: Arc<dyn Workplace>,
    pub(super) control: Control,
    pub(super) tx: Sender<HostMessage>,
}

impl Job {
    /// Starts the attempt.
    pub(super) fn spawn(self) -> Result<(), HostError> {
        let thread = std::thread::Builder::new().name(format!("task {}", self.order.work.id));
        let span = info_span!("task", id = self.order.work.id, slot = self.order.slot);
        let run = move || {
            let _span = span.entered();
            let (tx, began) = (self.tx.clone(), Instant::now());
            let news = self.make();
            let ms = began.elapsed().as_millis() as u64;
            let committed = news.no_commit.is_none();
            info!(end = %variant(&news.end), committed, ms, "attempt ended");
            // A task loop that is gone has given up already.
            drop(
                tx.send(HostMessage::Task(Box::new(TaskEvent::Attempt(Box::new(
                    news,
                ))))),
            );
        };
        match thread.spawn(run) {
            Ok(_) => Ok(()),
            Err(error) => Err(HostError::Internal(format!(
                "cannot start a thread: {error}"
            ))),
        }
    }

    /// Makes the attempt, and tells how it ended.
    pub(super) fn make(self) -> AttemptNews {
        let mut news = AttemptNews::interrupted(&self.order);
        let began = Instant::now();
        let ready = match self.place.prepare(self.order.slot, &self.order.work) {
            Ok(ready) => {
                let ms = began.elapsed().as_millis() as u64;
                info!(dir = %ready.dir.display(), ms, "place to work prepared");
                ready
            }
            // The worktree is made ready by the next host.
            Err(error) if self.was_stopped(&error) => return news,
            Err(error) => {
                error.log("preparing a place to work");
                let hint = error.hint();
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                news.trouble = Some(format!(
                    "cannot set up a place to work on task {}: {error}{hint}",
                    self.order.work.id
                ));
                return news;
            }
        };
        match self.attempt(&ready, &mut news) {
            Ok(()) => {}
            Err(error) => {
                let hint = error
                    .hint()
                    .map_or_else(String::new, |hint| format!("; {hint}"));
                news.trouble = Some(format!("{error}{hint}"));
            }
        }
        let proven = match news.end {
            AttemptEnd::Green { .. } => Proven::Green,
            _ => Proven::No,
        };
        self.control.finish(began);
        // Whoever watches the time has to look at it again.
        drop(
            self.tx
                .send(HostMessage::Task(Box::new(TaskEvent::LockNotice))),
        );
        match (
            self.place.finish(self.order.slot, &self.order.work, proven),
            proven,
        ) {
            (Ok(Finished::Safe), Proven::Green) => self.hold_to_scope(&mut news),
            (Ok(Finished::Uncarried(tail)), Proven::Green) => {
                news.end = AttemptEnd::Uncarried { tail };
            }
            (Ok(_), Proven::No) => {}
            (Err(error), Proven::Green) if self.was_stopped(&error) => unheard_of(&mut news),
            (Err(error), _) => {
                error.log("committing an attempt");
                news.no_commit = Some(error.to_string());
            }
        }
        news
    }

    /// Whether git or a setup command failed only because everything was told to stop. git may be
    /// ended a moment before this attempt is told.
    fn was_stopped(&self, error: &GitError) -> bool {
        error.kind() == GitErrorKind::Stopped || self.control.is_ended()
    }

    /// Green work that changed other files than the task may touch goes back to its agent.
    fn hold_to_scope(&self, news: &mut AttemptNews) {
        if self.order.files.is_empty() {
            return;
        }
        match self.place.outside(&self.order.work, &self.order.files) {
            Ok(outside) if outside.is_empty() => {}
            Ok(outside) => {
                let tail = outside.join("\n");
                news.end = AttemptEnd::OutOfScope { tail };
            }
            Err(error) if self.was_stopped(&error) => unheard_of(news),
            // Nobody knows whether it kept to its files, so it does not land.
            Err(error) => {
                news.no_commit = Some(format!("cannot determine which files it changed: {error}"));
            }
        }
    }

    fn attempt(&self, ready: &Ready, news: &mut AttemptNews) -> Result<(), HostError> {
        let Some(host) = self.open(ready, news)? else {
            return Ok(());
        };
        let (before, denied) = (host.state().spent, host.state().denied.clone());
        self.tell(TaskEvent::Opened {
            work: self.order.work.id.clone(),
            slot: self.order.slot,
            serial: self.order.serial,
            loop_id: host.state().loop_id.clone(),
            unheard: self.unheard(&before),
            worker: None,
        });
        let (serial, tx) = (self.order.serial, self.tx.clone());
        let tell_spending = Box::new(move |spent| {
            drop(tx.send(HostMessage::Task(Box::new(TaskEvent::Spent(serial, spent)))));
        });
        self.control.connect(Box::new(host.remote()));
        let (place, order) = (Arc::clone(&self.place), &self.order);
        let (slot, work) = (order.slot, order.work.clone());
        let agent_ended = Box::new(move || place.agent_ended(slot, &work));
        let (until, state) = host.attempt(tell_spending, agent_ended)?;
        news.end = attempt_end(&state, until);
        let changed = state.changed_gate_files.iter();
        news.gate_files = changed.map(|changed| changed.file.clone()).collect();
        news.denied = denied_since(&denied, &state.denied);
        news.planted.clone_from(&state.planted);
        news.ends_all = ends_all_tasks(&state, &self.order.own);
        let counted = state.iterations >= until;
        news.run = state
            .summaries
            .back()
            .filter(|_| counted)
            .map(|summary| RunNews {
                loop_id: state.loop_id.clone(),
                iterations: state.iterations,
                summary: summary.clone(),
                spent: state.spent.since(&before),
                had_prompt: true,
            });
        Ok(())
    }

    fn tell(&self, news: TaskEvent) {
        // A task loop that is gone has given up already.
        drop(self.tx.send(HostMessage::Task(Box::new(news))));
    }

    /// What the task's loop used without the task loop having heard of it.
    fn unheard(&self, now: &Spent) -> Spent {
        let reported = self.order.reported_spent.as_ref();
        reported.map_or_else(Spent::default, |reported| now.since(reported))
    }

    /// Opens the task's loop; `None` where its last attempt was proven and nobody has heard.
    fn open(&self, ready: &Ready, news: &mut AttemptNews) -> Result<Option<Host>, HostError> {
        let mut config = self.order.config.clone();
        let dir = match &self.order.cwd {
            Some(cwd) => ready.dir.join(cwd),
            None => ready.dir.clone(),
        };
        if let Some(note) = &ready.note {
            config.prompt = format!("{}\n\n{note}", config.prompt.trim_end());
        }
        config.working_directory = Some(dir.clone());
        let file = config.state_file.clone().unwrap_or_default();
        if !file.exists() {
            let (time, cost) = (&mut config.max_duration_secs, &mut config.max_cost_usd);
            self.order.own.tighten(time, cost);
            let new = NewLoop {
                config,
                name: Some(self.order.name.clone()),
                existing: OnExistingState::Error,
            };
            let (family, before) = (self.order.family.clone(), self.order.gate_files.clone());
            return create_within(self.settings.clone(), new, family, Some(before), no_tasks)
                .map(Some);
        }
        let began = Instant::now();
        let host = loop {
            match self.resume(&file, &config, dir.clone()) {
                Err(HostError::Lock(LockError::Held(_))) if began.elapsed() < SWEEPING => {
                    debug!("the task's loop is still held: trying again");
                    std::thread::sleep(Duration::from_millis(50));
                }
                Ok(Err(reason)) => {
                    let message = reason.sentence();
                    news.end = AttemptEnd::AtLimit { message };
                    return Ok(None);
                }
                Ok(Ok(host)) => break host,
                Err(error) => return Err(error),
            }
        };
        news.warnings.extend(host.notices().iter().cloned());
        let state = host.state();
        let is_own = self.order.tree == AttemptTree::Own;
        if is_own && is_unheard_proof(state, self.order.reported_iterations) {
            news.end = attempt_end(state, state.iterations);
            news.run = state.summaries.back().map(|summary| RunNews {
                loop_id: state.loop_id.clone(),
                iterations: state.iterations,
                summary: summary.clone(),
                spent: self.unheard(&state.spent),
                had_prompt: false,
            });
            return Ok(None);
        }
        Ok(Some(host))
    }

    /// Takes the task's loop up; the reason where a limit of the task's own is in the way.
    fn resume(
        &self,
        file: &Path,
        config: &IterativeLoopConfig,
        dir: PathBuf,
    ) -> Result<Result<Host, IterativeExitReason>, HostError> {
        let before = state_file::load(file).ok();
        // It lies in the folder of the task loop, which may have been moved as a whole.
        let elsewhere = before
            .as_ref()
            .is_some_and(|loaded| !matches!(lies(&self.settings.root, file, loaded), Lies::AtHome));
        let before = before.map(|loaded| loaded.state);
        let mut change = attempt_change(config, &self.order.own, before.as_ref());
        for unlimited in [false, true] {
            if unlimited {
                // Attempts that a dead host cut short used up numbers of their own.
                change.max_iterations = Some(None);
            }
            let resume = Resume {
                here: elsewhere.then(|| dir.clone()),
                state_file: file.to_owned(),
                loop_id: None,
                change: change.clone(),
                environment: config.backend.environment.clone().into_values(),
                accept: Accept::Harmless,
                retry: Retry::No,
                from: None,
            };
            let purpose = Purpose::Attempt {
                dir: dir.clone(),
                reported: self.order.reported_iterations,
                tree: self.order.tree,
            };
            match resume_for(
                self.settings.clone(),
                resume,
                purpose,
                no_tasks,
                &mut Vec::new(),
            )? {
                Resumed::Go(host) => return Ok(Ok(*host)),
                Resumed::AtLimit { reason, .. } if self.order.own.is_limit(&reason) => {
                    return Ok(Err(reason));
                }
                Resumed::AtLimit { .. } | Resumed::Done(_) => {}
            }
        }
        Err(HostError::Internal(format!(
            "the loop of task {} cannot continue",
            self.order.work.id
        )))
    }
}

/// Nobody has heard of it yet: the next host finds it proven, and begins here.
fn unheard_of(news: &mut AttemptNews) {
    news.end = AttemptEnd::Interrupted;
    news.run = None;
}
