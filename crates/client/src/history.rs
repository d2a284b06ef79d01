//! What became of each iteration, read from the journal as a stream.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use descartes_kernel::event::{Event, Record};
use descartes_kernel::tasks::RunningTask;
use descartes_store::journal::{JournalReader, find_last, last_records, seek};
use descartes_views::view::{History, HistoryRow};

use crate::{ClientError, LoopHandle};

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first run.
    First,
    /// At this run; what stands before is not read.
    Run(u64),
    /// So many runs before the last.
    Last(u64),
}

/// The work tree before and after an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationTrees {
    pub row: HistoryRow,
    /// Before it; `None` where it was not measured.
    pub before: Option<String>,
    /// After it; `None` where it was not measured, or the iteration is not over.
    pub after: Option<String>,
}

/// The number of the run that a record tells of; it never falls.
pub(crate) fn run_of(record: &Record) -> Option<u64> {
    match &record.event {
        Event::RunStarted { run, .. }
        | Event::AgentEnded { run, .. }
        | Event::IterationFinished { run, .. }
        | Event::RunDiscarded { run, .. }
        | Event::IterationInterrupted { run, .. } => Some(*run),
        _ => None,
    }
}

/// The iteration that a record tells of; it falls only where a person set it back.
fn iteration_of(record: &Record) -> Option<u64> {
    match &record.event {
        Event::RunStarted { iteration, .. }
        | Event::AgentEnded { iteration, .. }
        | Event::GateFinished { iteration, .. }
        | Event::IterationFinished { iteration, .. }
        | Event::RunDiscarded { iteration, .. }
        | Event::IterationInterrupted { iteration, .. } => Some(u64::from(*iteration)),
        _ => None,
    }
}

impl LoopHandle {
    /// Gives the rows of the history to `each`, oldest first, until it has enough. Returns the
    /// row of the iteration that is not over, if there is one and it was come to.
    pub fn history(
        &self,
        from: From,
        mut each: impl FnMut(HistoryRow) -> ControlFlow<()>,
    ) -> Result<Option<HistoryRow>, ClientError> {
        let journal = self.journal("it has no history")?;
        let mut newest = None;
        let from = match from {
            From::First => 0,
            From::Run(run) => run,
            From::Last(count) => {
                let last = find_last(&journal, |record| run_of(record).is_some())?;
                if last.is_none() {
                    // A task loop, whose runs are in the journals of its tasks.
                    newest = Some((count as usize, VecDeque::new()));
                }
                let last = last.as_ref().and_then(run_of).unwrap_or(0);
                (last + 1).saturating_sub(count)
            }
        };
        let mut reader = match from {
            0 => JournalReader::open(&journal)?,
            run => seek(&journal, run, run_of)?,
        };
        let mut history = History::default();
        reader.read_while(|record| {
            if run_of(&record).is_some_and(|run| run < from) {
                return ControlFlow::Continue(());
            }
            match (history.push(&record), &mut newest) {
                (Some(row), Some((count, kept))) => {
                    kept.push_back(row);
                    if kept.len() > *count {
                        kept.pop_front();
                    }
                    ControlFlow::Continue(())
                }
                (Some(row), None) => each(row),
                (None, _) => ControlFlow::Continue(()),
            }
        })?;
        let kept = newest.into_iter().flat_map(|(_, kept)| kept);
        for row in kept {
            if each(row).is_break() {
                break;
            }
        }
        Ok(history.current().cloned())
    }

    /// The attempts of a task loop that are not over.
    pub fn attempts_at_work(&self) -> Result<Vec<HistoryRow>, ClientError> {
        let state = self.state()?;
        let Some(tasks) = state.tasks else {
            return Ok(Vec::new());
        };
        let row = |(at, running): (usize, &RunningTask)| {
            let number = u32::try_from(state.runs).unwrap_or(u32::MAX);
            let number = number.saturating_add(at as u32 + 1);
            let mut row = HistoryRow::begun(u64::from(number), running.attempt, running.since);
            row.task = Some((running.task.clone(), String::new()));
            row
        };
        Ok(tasks.running.iter().enumerate().map(row).collect())
    }

    /// Gives every record to `each`, oldest first. At the first that cannot be read it stops
    /// with the error: what stands before it was given.
    pub fn records(&self, each: impl FnMut(Record)) -> Result<(), ClientError> {
        let journal = self.journal("it has no history")?;
        Ok(JournalReader::open(&journal)?.for_each_new(each)?)
    }

    /// A reader of its journal that begins at, or not far before, the record with this number.
    pub fn records_from(&self, seq: u64) -> Result<JournalReader, ClientError> {
        let journal = self.journal("it has no history")?;
        Ok(seek(&journal, seq, |record| Some(record.seq))?)
    }

    /// The last records of its journal, oldest first.
    pub fn recent(&self, count: usize) -> Result<Vec<Record>, ClientError> {
        let journal = self.journal("it has no history")?;
        Ok(last_records(&journal, count)?)
    }

    /// The run of an iteration: the last one, where the first met a limit.
    pub(crate) fn run_started(&self, iteration: u32) -> Result<Record, ClientError> {
        let journal = self.journal("it has no output")?;
        let wanted = u64::from(iteration);
        let mut found = None;
        seek(&journal, wanted, iteration_of)?.read_while(|record| {
            match iteration_of(&record) {
                Some(number) if number > wanted => return ControlFlow::Break(()),
                Some(number) if number == wanted && is_start(&record) => found = Some(record),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        if found.is_none() {
            // Iterations that a person set back stand in no order.
            found = find_last(&journal, |record| {
                is_start(record) && iteration_of(record) == Some(wanted)
            })?;
        }
        found.ok_or_else(|| self.no_iteration(iteration))
    }

    /// The newest run.
    pub(crate) fn last_run_started(&self) -> Result<Record, ClientError> {
        let journal = self.journal("it has no output")?;
        let newest = find_last(&journal, is_start)?;
        newest.ok_or_else(|| {
            ClientError::NoIteration("the loop has not started its agent yet".to_owned())
        })
    }

    fn no_iteration(&self, iteration: u32) -> ClientError {
        let count = self
            .last_run_started()
            .ok()
            .and_then(|last| iteration_of(&last));
        ClientError::NoIteration(match count {
            None => format!("there is no iteration {iteration}: the agent has not run yet"),
            Some(1) => format!("there is no iteration {iteration}: there is only iteration 1"),
            Some(last) => {
                format!("there is no iteration {iteration}: there are iterations 1 to {last}")
            }
        })
    }

    /// What is known of the work tree before and after an iteration; `None`: the newest.
    pub fn trees(&self, iteration: Option<u32>) -> Result<IterationTrees, ClientError> {
        let started = match iteration {
            Some(iteration) => self.run_started(iteration)?,
            None => self.last_run_started()?,
        };
        let wanted = run_of(&started).unwrap_or(0);
        let (mut found, mut next_before) = (None, None);
        let current = self.history(From::Run(wanted), |row| {
            match &found {
                None => found = Some(row),
                Some(_) => {
                    next_before = row.trees.0;
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        let (row, next) = match (found, current) {
            (Some(row), current) => {
                let next = next_before.or_else(|| current.and_then(|row| row.trees.0));
                (row, next)
            }
            (None, Some(row)) => (row, None),
            (None, None) => return Err(self.no_iteration(iteration.unwrap_or(1))),
        };
        let (before, after) = row.trees.clone();
        // One that was cut off was not measured at its end, but before the next.
        let after = after.or(next);
        Ok(IterationTrees { row, before, after })
    }
}

fn is_start(record: &Record) -> bool {
    matches!(record.event, Event::RunStarted { .. })
}
