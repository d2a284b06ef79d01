//! The history of a loop: its iterations as a fold of its records, and what views show of each.

use jiff::Timestamp;
use serde::Serialize;

use super::{Life, UNKNOWN, show_cost, show_tokens};
use crate::tone::{Cell, Tone};
use crate::words;
use descartes_kernel::event::{
    Cost, EndedBy, Event, ExitStatus, GateEnd, NearMissFacts, Progress, Record, Verdict,
};
use descartes_kernel::state::{GateSummary, IterationSummary, Spent};
use descartes_plans::graph::TaskId;
use descartes_text::display::one_line;
use descartes_text::units::plural;

/// One row of the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HistoryRow {
    /// The iteration, from 1.
    pub iteration: u32,
    /// Its run, which names its log.
    pub run: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// Agent and gates together.
    pub duration_ms: u64,
    /// The agent's exit, as a shell would show it.
    pub exit: Option<i32>,
    /// What ended the run.
    pub ended_by: Option<EndedBy>,
    /// Whether the promise was claimed.
    pub claimed: bool,
    /// Tags with the text of a promise that did not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_miss: Option<NearMissFacts>,
    /// What came of it; `None` while it is under way, or for a run that met a limit.
    pub verdict: Option<Verdict>,
    /// Gates, in order.
    pub gates: Vec<GateRow>,
    /// Evidence of progress.
    pub progress: Option<Progress>,
    /// Files that changed.
    pub files: Option<u32>,
    /// Tokens; unknown is unknown.
    pub tokens: Option<u64>,
    /// Cost; unknown is unknown.
    pub cost: Option<Cost>,
    /// An error that the agent told, or the limit that it met.
    pub error: Option<String>,
    /// Lines of its stream that could not be understood.
    pub trouble: u64,
    /// Files that the gates hang on and that were not as they were when the loop began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_gate_files: Vec<String>,
    /// The commit made of it.
    pub commit: Option<String>,
    /// First characters of what it said.
    pub preview: String,
    /// The work tree before and after, where it was measured.
    pub trees: (Option<String>, Option<String>),
    /// In a task loop: the task that it was for, and the loop that has its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<(TaskId, String)>,
    /// Whether it is not over, as far as records tell.
    #[serde(skip)]
    pub under_way: bool,
}

impl HistoryRow {
    /// A run that has just begun.
    pub fn begun(run: u64, iteration: u32, started_at: Timestamp) -> Self {
        Self {
            iteration,
            run,
            started_at,
            under_way: true,
            ..Self::default()
        }
    }

    /// A run of a task, as the task's own loop summed it up.
    fn of_task(summary: &IterationSummary, spent: &Spent, at: Timestamp) -> Self {
        let verdict = summary.verdict.clone();
        let claimed = matches!(verdict, Some(Verdict::Promise | Verdict::Refused));
        let error = match &verdict {
            Some(Verdict::Failed(why) | Verdict::Blocked(why)) => Some(why.clone()),
            _ => None,
        };
        let iteration = summary.iteration + 1;
        Self {
            duration_ms: spent.ms,
            exit: summary.exit_code,
            ended_by: summary.ended_by,
            claimed,
            near_miss: summary.near_miss.clone(),
            verdict,
            gates: summary.gates.iter().map(GateRow::from).collect(),
            files: summary.files,
            tokens: spent.tokens,
            cost: spent.cost(),
            error,
            preview: summary.output_preview.clone(),
            iteration,
            run: u64::from(iteration),
            started_at: summary.started_at.unwrap_or(at),
            ..Self::default()
        }
    }
}

/// What can be shown of an iteration. A view shows those that it has room for, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Iteration,
    Task,
    /// The iteration, behind its task where it has one.
    Number,
    Duration,
    Exit,
    Promise,
    Result,
    Gates,
    Files,
    Tokens,
    Cost,
    /// What it said, or what went wrong.
    Preview,
}

impl Column {
    pub fn title(self) -> &'static str {
        match self {
            Self::Iteration | Self::Number => "#",
            Self::Task => "task",
            Self::Duration => "duration",
            Self::Exit => "exit",
            Self::Promise => "promise",
            Self::Result => "result",
            Self::Gates => "gates",
            Self::Files => "files",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Preview => "preview",
        }
    }
}

impl HistoryRow {
    /// What stands in a column.
    pub fn cell(&self, column: Column, life: Life, now: Timestamp) -> Cell {
        let task = self.task.as_ref().map(|(task, _)| task.to_string());
        let text = match (column, task) {
            (Column::Task, task) => task.unwrap_or_default(),
            (Column::Number, Some(task)) => format!("{task}.{}", self.iteration),
            (Column::Iteration | Column::Number, _) => self.iteration.to_string(),
            (Column::Duration, _) => self.duration(life, now),
            (Column::Exit, _) => self
                .exit
                .map_or(UNKNOWN.to_owned(), |code| code.to_string()),
            (Column::Promise, _) => self.promise().to_owned(),
            (Column::Files, _) => self
                .files
                .map_or(UNKNOWN.to_owned(), |files| files.to_string()),
            (Column::Tokens, _) => show_tokens(self.tokens),
            (Column::Cost, _) => show_cost(self.cost),
            (Column::Result, _) => return self.result(life),
            (Column::Gates, _) => return self.gates(),
            (Column::Preview, _) => return self.summary(),
        };
        let tone = match (column, self.exit) {
            (Column::Exit, Some(1..)) => Tone::Bad,
            _ => Tone::Normal,
        };
        Cell { tone, text }
    }

    fn duration(&self, life: Life, now: Timestamp) -> String {
        match (self.duration_ms, life) {
            (0, Life::Alive) if self.under_way => {
                words::seconds(words::between(self.started_at, now))
            }
            (0, Life::Gone) if self.under_way => UNKNOWN.to_owned(),
            (ms, _) => words::millis(ms),
        }
    }

    fn promise(&self) -> &'static str {
        match (self.claimed, &self.near_miss) {
            (true, _) => "claimed",
            (false, Some(_)) => "near",
            (false, None) => UNKNOWN,
        }
    }

    /// What it came to, in one word.
    pub fn result(&self, life: Life) -> Cell {
        let (tone, text) = match (&self.verdict, life) {
            // A resume judges it.
            (_, Life::Gone) if self.under_way && self.ended_by.is_some() => {
                (Tone::Warn, "not judged")
            }
            (_, Life::Gone) if self.under_way => (Tone::Warn, "lost"),
            (_, Life::Alive) if self.under_way && self.ended_by.is_some() => {
                (Tone::Strong, "checking")
            }
            (_, Life::Alive) if self.under_way => (Tone::Strong, "running"),
            (Some(Verdict::Promise | Verdict::Gates | Verdict::Success), _) => (Tone::Good, "done"),
            (Some(Verdict::Refused), _) => (Tone::Warn, "refused"),
            (Some(Verdict::Blocked(_)), _) => (Tone::Bad, "blocked"),
            (Some(Verdict::Failed(_) | Verdict::Worked), _)
                if self.ended_by == Some(EndedBy::Timeout) =>
            {
                (Tone::Bad, "timed out")
            }
            (Some(Verdict::Failed(_) | Verdict::Worked), _)
                if self.ended_by == Some(EndedBy::Idle) =>
            {
                (Tone::Bad, "hung")
            }
            (Some(Verdict::Failed(_)), _) => (Tone::Bad, "failed"),
            (Some(Verdict::Worked), _) => (Tone::Normal, "worked"),
            (Some(Verdict::Stopped), _) if self.ended_by == Some(EndedBy::HostLost) => {
                (Tone::Warn, "lost")
            }
            (Some(Verdict::Stopped), _) => (Tone::Warn, "stopped"),
            // A run that met a limit counts for nothing.
            (None, _) => (Tone::Dim, "limit"),
        };
        Cell::new(tone, text)
    }

    /// The gate that failed: those behind it were not run.
    pub fn failed_gate(&self) -> Option<&GateRow> {
        self.gates.iter().find(|gate| gate.failed())
    }

    fn gates(&self) -> Cell {
        let failed = self.gates.iter().position(GateRow::failed);
        match (failed, self.gates.len()) {
            (None, 0) => Cell::new(Tone::Dim, UNKNOWN),
            (None, _) if !self.gates.iter().all(GateRow::passed) => {
                Cell::new(Tone::Warn, "cancelled")
            }
            (None, _) => Cell::new(Tone::Good, "green"),
            (Some(_), 1) => Cell::new(Tone::Bad, "red"),
            (Some(at), _) => Cell::new(Tone::Bad, format!("red #{}", at + 1)),
        }
    }

    /// What it said, or what went wrong, on one line.
    pub fn summary(&self) -> Cell {
        let near = self.near_miss.as_ref().map(NearMissFacts::describe);
        let (tone, why) = match &self.verdict {
            Some(Verdict::Failed(why) | Verdict::Blocked(why)) => (Tone::Bad, Some(why)),
            _ if self.error.is_some() => (Tone::Warn, None),
            Some(Verdict::Promise | Verdict::Gates | Verdict::Success) => (Tone::Good, None),
            Some(Verdict::Refused) => (Tone::Warn, None),
            _ => (Tone::Normal, None),
        };
        let said = near.as_ref().unwrap_or(&self.preview);
        let mut text = one_line(self.error.as_ref().or(why).unwrap_or(said));
        if self.trouble > 0 {
            text = format!("[{} not understood] {text}", plural(self.trouble, "line"));
        }
        if !self.changed_gate_files.is_empty() {
            let files = one_line(&self.changed_gate_files.join(", "));
            text = format!("[gate file changed: {files}] {text}");
        }
        Cell { tone, text }
    }

    /// The same for views without a column for the result: that stands for what nobody said.
    pub fn summary_or_result(&self, life: Life) -> Cell {
        let summary = self.summary();
        match self.under_way || summary.text.is_empty() {
            true => self.result(life),
            false => summary,
        }
    }
}

/// A gate in the history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateRow {
    /// What was run.
    pub command: String,
    /// How it ended.
    pub end: GateEnd,
    /// How long it took.
    pub duration_ms: u64,
    /// The last of its output.
    pub tail: String,
}

impl From<&GateSummary> for GateRow {
    fn from(gate: &GateSummary) -> Self {
        let end = match (gate.exit_code, gate.cancelled) {
            (Some(code), _) => GateEnd::Exit(ExitStatus::Code(code)),
            (None, true) => GateEnd::Cancelled,
            (None, false) => GateEnd::Timeout,
        };
        Self {
            command: gate.command.clone(),
            end,
            duration_ms: gate.duration_ms,
            tail: String::new(),
        }
    }
}

impl GateRow {
    /// Whether it was green.
    pub fn passed(&self) -> bool {
        matches!(self.end, GateEnd::Exit(ExitStatus::Code(0)))
    }

    /// Whether it was red: one that was stopped with its loop says nothing.
    fn failed(&self) -> bool {
        !self.passed() && self.end != GateEnd::Cancelled
    }

    /// `green`; `red, exit code 1`; `cancelled`.
    pub fn verdict(&self) -> Cell {
        let end = words::gate_end(self.end);
        match self.end {
            _ if self.passed() => Cell::new(Tone::Good, "green"),
            GateEnd::Cancelled => Cell::new(Tone::Warn, end),
            _ => Cell::new(Tone::Bad, format!("red, {end}")),
        }
    }
}

/// Folds records into rows. Give it every record, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    current: Option<HistoryRow>,
    /// Gate files that a task's attempt changed, until its run is told.
    of_tasks: Vec<(TaskId, String)>,
}

impl History {
    /// Takes a record; hands out a row once its iteration is over.
    pub fn push(&mut self, record: &Record) -> Option<HistoryRow> {
        let under_way = false;
        let row = self.fold(record)?;
        Some(HistoryRow { under_way, ..row })
    }

    fn fold(&mut self, record: &Record) -> Option<HistoryRow> {
        match &record.event {
            Event::RunStarted {
                run,
                iteration,
                before,
                ..
            } => {
                self.current = Some(HistoryRow {
                    trees: (before.tree.clone(), None),
                    ..HistoryRow::begun(*run, *iteration, record.at)
                });
                None
            }
            Event::AgentEnded { facts, .. } => {
                let row = self.current.as_mut()?;
                row.duration_ms = facts.duration_ms;
                row.exit = facts.exit.map(|exit| exit.shell_code());
                row.ended_by = Some(facts.ended_by);
                row.claimed = facts.claim.is_some();
                row.near_miss.clone_from(&facts.near_miss);
                row.tokens = facts.tokens.and_then(|tokens| tokens.total());
                row.cost = facts.cost;
                row.error.clone_from(&facts.error);
                row.trouble = facts.trouble;
                row.preview.clone_from(&facts.preview);
                None
            }
            Event::GateFinished { facts, .. } => {
                let row = self.current.as_mut()?;
                row.duration_ms += facts.duration_ms;
                row.gates.push(GateRow {
                    command: facts.command.clone(),
                    end: facts.end,
                    duration_ms: facts.duration_ms,
                    tail: facts.tail.clone(),
                });
                None
            }
            Event::IterationFinished {
                verdict,
                progress,
                after,
                files,
                commit,
                ..
            } => {
                let mut row = self.current.take()?;
                row.verdict = Some(verdict.clone());
                row.progress = Some(progress.clone());
                row.files = *files;
                row.commit.clone_from(commit);
                row.trees.1.clone_from(&after.tree);
                Some(row)
            }
            Event::RunDiscarded { limit, .. } => {
                let mut row = self.current.take()?;
                row.error = Some(limit.words.clone());
                Some(row)
            }
            Event::IterationInterrupted {
                spent_ms,
                tokens,
                cost,
                ..
            } => {
                let mut row = self.current.take()?;
                row.duration_ms = *spent_ms;
                row.ended_by = Some(EndedBy::HostLost);
                row.verdict = Some(Verdict::Stopped);
                row.tokens = tokens.and_then(|tokens| tokens.total());
                row.cost = *cost;
                Some(row)
            }
            Event::GateFileChanged {
                file,
                task: Some(task),
            } => {
                self.of_tasks.push((task.clone(), file.clone()));
                None
            }
            Event::GateFileChanged { file, task: None } => {
                let row = self.current.as_mut()?;
                row.changed_gate_files.push(file.clone());
                None
            }
            Event::TaskRun {
                task,
                loop_id,
                summary,
                spent,
                ..
            } => Some(HistoryRow {
                task: Some((task.clone(), loop_id.clone())),
                changed_gate_files: std::mem::take(&mut self.of_tasks)
                    .into_iter()
                    .map(|(_, file)| file)
                    .collect(),
                ..HistoryRow::of_task(summary, spent, record.at)
            }),
            _ => None,
        }
    }

    /// The iteration that is under way.
    pub fn current(&self) -> Option<&HistoryRow> {
        self.current.as_ref()
    }
}
