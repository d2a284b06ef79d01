//! The task file as a thing that may be away: editors and other tools replace it, move it, or are
//! in the middle of writing it. Work under way goes on and lands meanwhile; what is to be written
//! into the file is owed to it, in order, until it is back.

use std::time::{Duration, Instant};

use descartes_kernel::fact;
use descartes_kernel::sched::Input;
use descartes_plans::graph::{TaskId, TaskStatus};

use super::event::TaskEvent;
use super::runner::Runner;
use super::runner_state::Write;
use super::source::{Claim, SourceError};
use super::watch::FileWatch;
use crate::host::HostError;

/// A file that is still away after so long, with nothing at work any more, ends the loop.
const MISSING_FILE_LIMIT: Duration = Duration::from_secs(15 * 60);
impl Runner<'_> {
    /// Writes what became of a task, now or once the file can be written.
    pub(super) fn write(&mut self, task: &TaskId, write: Write) -> Result<(), HostError> {
        if self.file.away.is_none() {
            match self.write_now(task, &write) {
                Ok(()) => return Ok(()),
                Err(SourceError::NoTask { .. }) => return self.said_gone(task),
                Err(error) => self.file_is_away(&error)?,
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
                return Ok(());
            }
            Ok(Claim::Found(found)) => {
                // Others have written it, and that was not told yet: all of it is read before anything starts.
                self.news.push_back(TaskEvent::FileWritten);
                found
            }
            Err(error) => {
                self.file_is_away(&error)?;
                TaskStatus::Pending
            }
        };
        self.refused.insert(task.clone());
        self.inputs.push_back(Input::ClaimRefused { task, found });
        Ok(())
    }

    /// The file cannot be read or written: said once, and waited for.
    pub(super) fn file_is_away(&mut self, error: &SourceError) -> Result<(), HostError> {
        if self.file.away.is_some() {
            return Ok(());
        }
        self.file.away = Some(Instant::now());
        self.inputs.push_back(Input::FileAway);
        let what = format!(
            "waiting for the task file {}: {error}",
            self.config.source.path().display()
        );
        self.d.append(fact::busy(what))?;
        self.d.warn(format!(
            "the task file cannot be used at the moment; waiting for it while running work \
             continues: {error}"
        ))
    }

    /// Looks whether the file can be used again; writes what is owed to it, and reads it.
    pub(super) fn look_for_file(&mut self) -> Result<(), HostError> {
        let Some(since) = self.file.away else {
            return match self.file.missing {
                Some(_) => self.reload(),
                None => Ok(()),
            };
        };
        if let Err(error) = self.settle_debts() {
            let idle = self.live.is_empty() && self.merging.is_empty();
            if idle && since.elapsed() > MISSING_FILE_LIMIT {
                return Err(HostError::refused(
                    format!("the task file did not come back: {error}"),
                    "put it back, then continue with: descartes loop resume",
                ));
            }
            if idle {
                self.mind_time(since.elapsed());
            }
            return Ok(());
        }
        self.file.away = None;
        self.d.append(fact::not_busy())?;
        self.inputs.push_back(Input::FileBack);
        // The folder may be another one, which nobody watches yet.
        self.watch = FileWatch::begin(self.config.source.watched(), self.d.tx.clone());
        self.d.warn("the task file is back".to_owned())?;
        self.source.forget();
        self.reload()
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
