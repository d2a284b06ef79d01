//! The task file as a thing that may be away: editors and other tools replace it, move it, or are
//! in the middle of writing it. Work under way goes on and lands meanwhile; what is to be written
//! into the file is owed to it, in order, until it is back.

use std::time::Duration;

use descartes_kernel::fact;
use descartes_kernel::sched::Input;
use descartes_kernel::tasks::{Hurry, TaskKeeper, WorkPlace};
use descartes_plans::graph::{TaskId, TaskStatus};

use super::asking::{SourceAnswer, SourceRequest, Write};
use super::event::TaskEvent;
use super::runner::Runner;
use super::source::{Claim, Keeps, Loaded, SourceError};
use super::watch::FileWatch;
use crate::host::HostError;

/// A file that is still away after so long, with nothing at work any more, ends the loop.
const MISSING_FILE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A file that cannot be written when everything else is over is waited for so long.
const LAST_WAIT: Duration = Duration::from_secs(60);

/// What was tried with the task file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempted {
    Claim,
    Other,
}

impl Runner<'_> {
    /// Writes what became of a task, now or once the file can be written.
    pub(super) fn write(&mut self, task: &TaskId, write: Write) -> Result<(), HostError> {
        if self.file.is_usable() {
            return self.ask(SourceRequest::Write(task.clone(), write));
        }
        self.file.owed.push((task.clone(), write));
        Ok(())
    }

    /// Asks the source of the tasks; what it answers at once is dealt with at once.
    pub(super) fn ask(&mut self, request: SourceRequest) -> Result<(), HostError> {
        match self.source.ask(request) {
            Some(answer) => self.answered(answer),
            None => Ok(()),
        }
    }

    /// What the source of the tasks answered.
    pub(super) fn answered(&mut self, answer: SourceAnswer) -> Result<(), HostError> {
        match answer {
            SourceAnswer::Claimed(task, claim) => self.heard_claim(task, claim),
            SourceAnswer::Written(task, write, Ok(())) => {
                if matches!(write, Write::Status(TaskStatus::Done)) {
                    self.file.ticked.insert(task);
                }
                Ok(())
            }
            SourceAnswer::Written(task, write, Err(SourceError::NoTask { .. })) => {
                self.not_found(task, write)
            }
            SourceAnswer::Written(task, write, Err(error)) => {
                self.file_is_away(&error, Attempted::Other)?;
                self.file.owed.push((task, write));
                Ok(())
            }
            SourceAnswer::News(news) => self.heard_news(news),
            SourceAnswer::Settled { result, owed } => self.settled(result, owed),
        }
    }

    /// In the user's own tree an agent has the list in its hands: its mark for a task that was not proven is
    /// taken back.
    pub(super) fn take_back_mark(&mut self, task: &TaskId) -> Result<(), HostError> {
        let graph = self.loaded.plan.graph();
        let node = graph.find(task).map(|at| graph.node(at));
        let is_marked = node.is_some_and(|node| node.status == TaskStatus::Done);
        let is_in_place = self.config.place == WorkPlace::InPlace;
        if !is_in_place || !is_marked || self.source.keeps() != Keeps::Done {
            return Ok(());
        }
        self.write(task, Write::Reopen)?;
        self.d.warn(format!(
            "task {task} was marked done in the file without proof: the mark was taken back"
        ))
    }

    /// A task is not in the file, as far as that is written: it is owed until all of it was read again.
    fn not_found(&mut self, task: TaskId, write: Write) -> Result<(), HostError> {
        let is_known = self.loaded.plan.graph().find(&task).is_some();
        let is_file = self.config.source.keeper() == TaskKeeper::File;
        if is_file && is_known && self.doubt_file() {
            self.file.owed.push((task, write));
            return Ok(());
        }
        self.d.warn(format!(
            "task {task} is no longer in the task file: its status was not written"
        ))
    }

    /// A task was not found in the file: nothing is started, and nothing ends, before all of it was read
    /// again. Says whether that is worth it.
    fn doubt_file(&mut self) -> bool {
        if !self.file.doubt() {
            return false;
        }
        self.inputs.push_back(Input::FileAway);
        self.source.forget();
        self.news.push_back(TaskEvent::FileWritten);
        true
    }

    /// The file is as its writer wants it: what was owed to it meanwhile is written.
    pub(super) fn doubt_is_over(&mut self) -> Result<(), HostError> {
        self.inputs.push_back(Input::FileBack);
        for (task, write) in std::mem::take(&mut self.file.owed) {
            self.write(&task, write)?;
        }
        Ok(())
    }

    /// Claims a task for us; where the file is away, it is not started now.
    pub(super) fn claim(&mut self, task: TaskId) -> Result<(), HostError> {
        if self.claimed.contains(&task) {
            // Ours already: another tool put it back, and it is set right.
            return self.write(&task, Write::Status(TaskStatus::InProgress));
        }
        match self.questions.claims.insert(task.clone()) {
            true => self.ask(SourceRequest::Claim(task)),
            false => Ok(()),
        }
    }

    fn heard_claim(
        &mut self,
        task: TaskId,
        claim: Result<Claim, SourceError>,
    ) -> Result<(), HostError> {
        self.questions.claims.remove(&task);
        let found = match claim {
            Ok(Claim::Taken) => {
                self.claimed.insert(task);
                self.file.doubts = 0;
                self.file_works()?;
                return self.start_held();
            }
            Ok(Claim::Found(found)) => {
                // Others have written it, and that was not told yet: all of it is read before anything starts.
                self.news.push_back(TaskEvent::FileWritten);
                found
            }
            Ok(Claim::Missing) if self.doubt_file() => TaskStatus::Pending,
            Ok(Claim::Missing) => TaskStatus::Cancelled,
            // It was cut off, since the loop ends.
            Err(SourceError::Tracker { .. }) if self.is_ending() => TaskStatus::Pending,
            Err(error) => {
                self.file_is_away(&error, Attempted::Claim)?;
                TaskStatus::Pending
            }
        };
        self.refused.insert(task.clone());
        self.inputs.push_back(Input::ClaimRefused { task, found });
        self.start_held()
    }

    /// Whether a person has ended the loop, or everything is done.
    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some() || self.d.state.requests.stop.is_some()
    }

    /// The file cannot be read or written: said once, and waited for.
    pub(super) fn file_is_away(
        &mut self,
        error: &SourceError,
        attempted: Attempted,
    ) -> Result<(), HostError> {
        if self.file.away {
            return Ok(());
        }
        let (keeper, name) = (self.config.source.keeper(), self.config.source.shown());
        let by_claim = attempted == Attempted::Claim;
        let is_new = self.file.failed(keeper, by_claim, &error.to_string());
        self.give_up_waiting(error)?;
        self.file.away = true;
        self.file.doubt = None;
        self.inputs.push_back(Input::FileAway);
        let noun = keeper.noun();
        let what = format!("waiting for the {noun} {name}: {error}");
        self.d.append(fact::busy(what))?;
        match is_new {
            true => self.d.warn(format!(
                "the {noun} cannot be used at the moment; waiting for it while running work \
                 continues: {error}"
            )),
            false => Ok(()),
        }
    }

    /// Ends the loop where the file could not be used for long, and nothing is at work any more.
    fn give_up_waiting(&mut self, error: &SourceError) -> Result<(), HostError> {
        let Some(waited) = self.file.trouble.as_ref().map(|it| it.since.elapsed()) else {
            return Ok(());
        };
        if !self.live.is_empty() || !self.merging.is_empty() {
            return Ok(());
        }
        if waited > MISSING_FILE_LIMIT {
            let (noun, hint) = match self.config.source.keeper() {
                TaskKeeper::File => ("task file did not come back", "put it back"),
                TaskKeeper::Tracker => ("tracker did not come back", "see that it answers"),
            };
            return Err(HostError::refused(
                format!("the {noun}: {error}"),
                format!("{hint}, then continue with: descartes loop resume"),
            ));
        }
        self.mind_time(waited);
        Ok(())
    }

    /// Looks whether the file can be used again; writes what is owed to it, and reads it.
    pub(super) fn look_for_file(&mut self) -> Result<(), HostError> {
        if !self.file.away {
            return match self.file.doubt {
                Some(_) => self.reload(),
                None => Ok(()),
            };
        }
        if std::mem::replace(&mut self.questions.settling, true) {
            return Ok(());
        }
        let owed = std::mem::take(&mut self.file.owed);
        self.ask(SourceRequest::Settle(owed))
    }

    /// What was owed is written, or not.
    fn settled(
        &mut self,
        result: Result<Option<Box<Loaded>>, SourceError>,
        mut owed: Vec<(TaskId, Write)>,
    ) -> Result<(), HostError> {
        self.questions.settling = false;
        owed.append(&mut self.file.owed);
        self.file.owed = owed;
        let is_other = |loaded: &Loaded| {
            let graph = loaded.plan.graph();
            let mut known = self.loaded.plan.graph().nodes().iter();
            known.all(|node| graph.find(&node.id).is_none())
        };
        let is_file = self.config.source.keeper() == TaskKeeper::File;
        let result = match result {
            Ok(Some(loaded)) if is_file && is_other(&loaded) => Err(self.other_list()),
            result => result,
        };
        if let Err(error) = result {
            let keeper = self.config.source.keeper();
            self.file.failed(keeper, false, &error.to_string());
            return self.give_up_waiting(&error);
        }
        self.file.away = false;
        self.d.append(fact::not_busy())?;
        self.inputs.push_back(Input::FileBack);
        // The folder may be another one, which nobody watches yet.
        self.watch = FileWatch::begin(self.config.source.watched(), self.d.tx.clone());
        if self.file.trouble.as_ref().is_some_and(|it| !it.by_claim) {
            self.file_works()?;
        }
        // What came to be owed meanwhile.
        for (task, write) in std::mem::take(&mut self.file.owed) {
            self.write(&task, write)?;
        }
        self.source.forget();
        self.reload()
    }

    /// Everything is over: what is still to be written gets a moment, and what could not be is said.
    pub(super) fn settle_source(&mut self) -> Result<(), HostError> {
        let since = self.d.mono();
        self.source.hurry(Hurry::Over);
        loop {
            let waited = self.d.mono().saturating_sub(since);
            let owes = !self.file.is_usable() && !self.file.owed.is_empty();
            let waits = owes && self.d.state.requests.stop.is_none() && waited < LAST_WAIT;
            if !self.source.is_busy() && !waits {
                break;
            }
            self.d.save_or_warn()?;
            self.wait()?;
            self.apply_user_requests()?;
            self.advance()?;
        }
        let owed: Vec<&str> = self.file.owed.iter().map(|(task, _)| &**task).collect();
        if owed.is_empty() {
            return Ok(());
        }
        let (tasks, noun) = (owed.join(", "), self.config.source.keeper().noun());
        self.d.warn(format!(
            "the {noun} could not be used to the end, and does not say what became of: {tasks}"
        ))
    }

    /// What was wrong with the file is over.
    fn file_works(&mut self) -> Result<(), HostError> {
        match self.file.trouble.take() {
            Some(_) => {
                let noun = self.config.source.keeper().noun();
                self.d.warn(format!("the {noun} is back"))
            }
            None => Ok(()),
        }
    }

    /// Time in which nothing is at work, since the file is away, counts for `--max-duration`.
    fn mind_time(&mut self, waited: Duration) {
        if let Some(reached) = self.is_time_up(waited) {
            self.inputs.push_back(reached.into());
        }
    }
}
