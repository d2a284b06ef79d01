//! The task file as a thing that may be away: editors and other tools replace it, move it, or are
//! in the middle of writing it. Work under way goes on and lands meanwhile; what is to be written
//! into the file is owed to it, in order, until it is back.

use std::time::Duration;

use descartes_kernel::fact;
use descartes_kernel::sched::Input;
use descartes_kernel::tasks::TaskKeeper;
use descartes_plans::graph::{TaskId, TaskStatus};

use super::event::TaskEvent;
use super::runner::Runner;
use super::runner_state::Write;
use super::source::{Claim, SourceError};
use super::watch::FileWatch;
use crate::host::HostError;

/// A file that is still away after so long, with nothing at work any more, ends the loop.
const MISSING_FILE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What was tried with the task file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempted {
    Claim,
    Other,
}

impl Runner<'_> {
    /// Writes what became of a task, now or once the file can be written.
    pub(super) fn write(&mut self, task: &TaskId, write: Write) -> Result<(), HostError> {
        if !self.file.away {
            match self.write_now(task, &write) {
                Ok(()) => return Ok(()),
                Err(SourceError::NoTask { .. }) => return self.said_gone(task),
                Err(error) => self.file_is_away(&error, Attempted::Other)?,
            }
        }
        self.file.owed.push((task.clone(), write));
        Ok(())
    }

    fn write_now(&mut self, task: &TaskId, write: &Write) -> Result<(), SourceError> {
        match write {
            Write::Status(status) => self.source.set(task, *status),
            Write::Reopen => self.source.reopen(task),
        }
    }

    fn said_gone(&mut self, task: &TaskId) -> Result<(), HostError> {
        self.d.warn(format!(
            "task {task} is no longer in the task file: its status was not written"
        ))
    }

    /// Claims a task for us; where the file is away, it is not started now.
    pub(super) fn claim(&mut self, task: TaskId) -> Result<(), HostError> {
        if self.claimed.contains(&task) {
            // Ours already: another tool put it back, and it is set right.
            return self.write(&task, Write::Status(TaskStatus::InProgress));
        }
        let found = match self.source.claim(&task) {
            Ok(Claim::Taken) => {
                self.claimed.insert(task);
                return self.file_works();
            }
            Ok(Claim::Found(found)) => {
                // Others have written it, and that was not told yet: all of it is read before anything starts.
                self.news.push_back(TaskEvent::FileWritten);
                found
            }
            Err(error) => {
                self.file_is_away(&error, Attempted::Claim)?;
                TaskStatus::Pending
            }
        };
        self.refused.insert(task.clone());
        self.inputs.push_back(Input::ClaimRefused { task, found });
        Ok(())
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
            return match self.file.missing {
                Some(_) => self.reload(),
                None => Ok(()),
            };
        }
        if let Err(error) = self.settle_debts() {
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
        self.source.forget();
        self.reload()
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

    fn settle_debts(&mut self) -> Result<(), SourceError> {
        self.source.forget();
        self.source.news()?;
        while let Some((task, write)) = self.file.owed.first().cloned() {
            match self.write_now(&task, &write) {
                Ok(()) | Err(SourceError::NoTask { .. }) => drop(self.file.owed.remove(0)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
