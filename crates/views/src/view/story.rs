//! What happened in a loop: its iterations, and beside them waits, notes of the person and
//! warnings. A fold that forgets the oldest, so that a loop of any length can be told.

use std::collections::VecDeque;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::{History, HistoryRow};
use crate::tone::{Cell, Tone};
use crate::words;
use descartes_kernel::control::{Command, CommandId};
use descartes_kernel::event::{Event, Record, WaitEnd};
use descartes_kernel::sandbox::{Denial, PlantedInGit};
use descartes_kernel::state::{LoopState, Phase, Wait};
use descartes_kernel::steering::Sender;
use descartes_text::units::plural;

/// A wait for a provider, or after failures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitRow {
    pub since: Timestamp,
    /// Until when, as it was meant.
    pub until: Timestamp,
    pub why: String,
    /// When and by what it ended; `None` while it lasts.
    pub ended: Option<(Timestamp, WaitEnd)>,
}

/// A note of the person.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoteRow {
    /// The command that brought it.
    pub id: CommandId,
    /// When it was said; `None` where only the note itself is left.
    pub at: Option<Timestamp>,
    pub text: String,
    /// The iteration that was told, once one was; 0 for a task loop, which tells its tasks.
    pub given_to: Option<u32>,
    /// Whether the loop ended before anybody was told.
    pub missed: bool,
}

impl From<&Wait> for WaitRow {
    fn from(wait: &Wait) -> Self {
        Self {
            since: wait.since,
            until: wait.until,
            why: wait.why(),
            ended: None,
        }
    }
}

impl WaitRow {
    /// Why, and for how long or until when.
    pub fn cell(&self, now: Timestamp, zone: &TimeZone) -> Cell {
        let (tone, end) = match &self.ended {
            None => {
                let until = words::clock(self.until, now, zone);
                (Tone::Warn, format!("until {until}"))
            }
            Some((at, by)) => {
                let lasted = words::seconds(words::between(self.since, *at));
                let how = match by {
                    WaitEnd::Elapsed => "",
                    WaitEnd::Retry => ", ended by you",
                    WaitEnd::Stop => ", ended by a stop",
                };
                (Tone::Normal, format!("for {lasted}{how}"))
            }
        };
        Cell::new(tone, format!("{} ({end})", self.why))
    }
}

impl NoteRow {
    /// What it says, and who was told.
    pub fn cell(&self) -> Cell {
        let (tone, given) = match self.given_to {
            None if self.missed => (
                Tone::Warn,
                "not delivered: the loop ended before the next prompt".to_owned(),
            ),
            None => (Tone::Warn, "waiting for the next prompt".to_owned()),
            Some(0) => (Tone::Normal, "given to the tasks".to_owned()),
            Some(iteration) => (Tone::Normal, format!("given to iteration {iteration}")),
        };
        Cell::new(tone, format!("{} ({given})", self.text))
    }
}

/// Something else that a person should know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remark {
    pub at: Timestamp,
    pub text: String,
}

/// What happened, newest last. Give it records in order.
#[derive(Clone, Debug, Default)]
pub struct Story {
    keep: usize,
    history: History,
    rows: VecDeque<HistoryRow>,
    waits: VecDeque<WaitRow>,
    notes: VecDeque<NoteRow>,
    remarks: VecDeque<Remark>,
    is_over: bool,
}

impl Story {
    /// An empty one that remembers the last `keep` of each kind.
    pub fn new(keep: usize) -> Self {
        Self {
            keep,
            ..Self::default()
        }
    }

    /// Takes what the state still knows of the time before the first record given.
    pub fn take_state(&mut self, state: &LoopState) {
        let missing =
            |note: &&descartes_kernel::state::Note| self.notes.iter().all(|row| row.id != note.id);
        let given = |id| {
            let run = state.run().filter(|run| run.notes.contains(&id));
            run.map(|run| run.iteration)
        };
        let notes: Vec<NoteRow> = state
            .next_prompt
            .notes
            .iter()
            .filter(missing)
            .map(|note| NoteRow {
                id: note.id,
                at: None,
                text: note.text.clone(),
                given_to: given(note.id).or(note.given_to),
                missed: matches!(state.phase, Phase::Finished { .. }),
            })
            .collect();
        for note in notes.into_iter().rev() {
            self.notes.push_front(note);
        }
        if let Some(wait) = state.wait().filter(|_| self.waits.is_empty()) {
            self.waits.push_back(wait.into());
        }
    }

    /// Takes a record.
    pub fn push(&mut self, record: &Record) {
        if let Some(row) = self.history.push(record) {
            add(&mut self.rows, row, self.keep);
        }
        match &record.event {
            Event::WaitStarted { until, reason } => {
                let wait = Wait {
                    until: *until,
                    reason: reason.clone(),
                    since: record.at,
                };
                add(&mut self.waits, (&wait).into(), self.keep);
            }
            Event::WaitEnded { by } => {
                if let Some(wait) = self.waits.back_mut() {
                    wait.ended = Some((record.at, *by));
                }
            }
            Event::CommandAccepted {
                id,
                command: Command::Say { text },
                ..
            } => {
                let note = NoteRow {
                    id: *id,
                    at: Some(record.at),
                    text: text.clone(),
                    given_to: None,
                    missed: self.is_over,
                };
                add(&mut self.notes, note, self.keep);
            }
            Event::RunStarted {
                iteration, notes, ..
            } => {
                let given = self.notes.iter_mut().filter(|row| notes.contains(&row.id));
                given.for_each(|row| row.given_to = Some(*iteration));
            }
            Event::LoopFinished { .. } => self.take_end(true),
            Event::LoopReopened => self.take_end(false),
            Event::CommandEffective { id } => {
                let told = |row: &&mut NoteRow| row.id == *id && row.given_to.is_none();
                if let Some(note) = self.notes.iter_mut().find(told) {
                    note.given_to = Some(0);
                }
            }
            _ => {}
        }
        if let Some(text) = remark(&record.event) {
            let at = record.at;
            add(&mut self.remarks, Remark { at, text }, self.keep);
        }
    }

    fn take_end(&mut self, is_over: bool) {
        self.is_over = is_over;
        for note in &mut self.notes {
            note.missed = is_over;
        }
    }

    /// The gates that tasks brought along: those that were run and are none of the loop's own.
    pub fn task_gates(&self, own: &[String]) -> Vec<&str> {
        let rows = self.rows.iter().filter(|row| row.task.is_some());
        let mut found = Vec::new();
        for gate in rows.flat_map(|row| &row.gates) {
            let command = gate.command.as_str();
            if !own.contains(&gate.command) && !found.contains(&command) {
                found.push(command);
            }
        }
        found
    }

    /// Iterations that are over (and runs that met a limit).
    pub fn rows(&self) -> &VecDeque<HistoryRow> {
        &self.rows
    }

    /// The iteration that is under way.
    pub fn current(&self) -> Option<&HistoryRow> {
        self.history.current()
    }

    pub fn waits(&self) -> &VecDeque<WaitRow> {
        &self.waits
    }

    /// Notes of the person.
    pub fn notes(&self) -> &VecDeque<NoteRow> {
        &self.notes
    }

    /// Warnings, changes, nudges.
    pub fn remarks(&self) -> &VecDeque<Remark> {
        &self.remarks
    }
}

fn add<T>(list: &mut VecDeque<T>, item: T, keep: usize) {
    if list.len() >= keep {
        list.pop_front();
    }
    list.push_back(item);
}

fn remark(event: &Event) -> Option<String> {
    Some(match event {
        Event::Warning { message, .. } | Event::EngineHeard { message, .. } => message.clone(),
        Event::GateFileChanged { file, task } => match task {
            Some(task) => {
                format!("gate file {file} has changed since the loop began (task {task})")
            }
            None => format!("gate file {file} has changed since the loop began"),
        },
        Event::Nudged { iterations } => {
            let still = plural(u64::from(*iterations), "iteration");
            format!("{still} without progress: the agent was told")
        }
        Event::ConfigChanged { change, by, from } => {
            let (what, who) = (
                change.names().join(", "),
                from.as_ref().map(Sender::describe),
            );
            let who = who.map_or_else(String::new, |who| format!(": {who}"));
            format!("settings were changed ({what}) by {by}{who}")
        }
        Event::StateEdited { .. } => "the state file was edited by hand".to_owned(),
        Event::Paused => "paused".to_owned(),
        Event::Unpaused => "unpaused".to_owned(),
        Event::Branched { name } => format!("on branch {name}"),
        Event::SandboxStarted { sandbox } => format!("sandbox: {}", sandbox.describe()),
        Event::SandboxDenied { denied, task, .. } => {
            let denied: Vec<String> = denied.iter().map(Denial::describe).collect();
            let of = task.as_ref().map(|task| format!("task {task}: "));
            of.unwrap_or_default() + &denied.join("; ")
        }
        Event::PlantedInGit { planted, task, .. } => {
            let planted: Vec<String> = planted.iter().map(PlantedInGit::describe).collect();
            let of = task.as_ref().map(|task| format!("task {task}: "));
            of.unwrap_or_default() + &planted.join("; ")
        }
        Event::Moved {
            working_directory, ..
        } => format!("works in {} from now on", working_directory.display()),
        Event::Tagged { name } => format!("tagged {name}"),
        Event::LoopReopened => "resumed".to_owned(),
        Event::Unknown => "something written by a newer version".to_owned(),
        _ => return None,
    })
}
