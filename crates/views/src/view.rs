//! What a person sees of a loop: a fold of its events. Every view uses this one, so that
//! they never disagree.

mod head;
mod lanes;
mod story;
mod waves;

use jiff::Timestamp;
use serde::Serialize;

pub use self::head::Head;
pub use self::lanes::TaskLanes;
pub use self::story::{NoteRow, Remark, Story, WaitRow};
pub use self::waves::{WaveRow, WaveStands, waves};
use descartes_kernel::event::{
    Cost, EndedBy, Event, ExitStatus, GateEnd, NearMissFacts, Progress, Record, Verdict,
};
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::{IterationSummary, LoopState, Pause, Phase, Spent};
use descartes_kernel::tasks::{Landing, TasksState};
use descartes_plans::graph::TaskId;
use descartes_text::display::one_line;
use descartes_text::units::{plural, show_duration};

/// Whether the loop's process is alive, as found by its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// A host holds it.
    Alive,
    /// Nobody does.
    Gone,
}

/// Where a loop stands, in one word and its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Held, between two iterations.
    Ready,
    /// An agent is at work.
    Running,
    /// Gates are run or the work tree is measured.
    Judging,
    /// It waits for a provider or after failures.
    Waiting { until: Timestamp, why: String },
    /// A person holds it, or will after this iteration.
    Paused,
    /// No process holds it, and it has not ended.
    Interrupted,
    /// It is over.
    Ended { reason: IterativeExitReason },
}

impl Status {
    /// Reads it off the state.
    pub fn of(state: &LoopState, life: Life) -> Self {
        if let Phase::Finished { reason, .. } = &state.phase {
            return Self::Ended {
                reason: reason.clone(),
            };
        }
        if life == Life::Gone {
            return Self::Interrupted;
        }
        let busy = state
            .tasks
            .as_ref()
            .is_some_and(|tasks| !tasks.running.is_empty() || tasks.merging.is_some());
        match (&state.phase, state.wait()) {
            (Phase::Ready { .. }, _) if busy => Self::Running,
            (Phase::Running(_), _) => Self::Running,
            (Phase::Judging { .. }, _) => Self::Judging,
            (_, Some(wait)) => Self::Waiting {
                until: wait.until,
                why: wait.why(),
            },
            _ if state.requests.pause != Pause::No => Self::Paused,
            _ => Self::Ready,
        }
    }

    /// One label for lists, windows and status lines.
    pub fn label(&self) -> String {
        match self {
            Self::Ready => "Ready".to_owned(),
            Self::Running => "Running".to_owned(),
            Self::Judging => "Checking".to_owned(),
            Self::Waiting { .. } => "Waiting".to_owned(),
            Self::Paused => "Paused".to_owned(),
            Self::Interrupted => "Interrupted".to_owned(),
            Self::Ended { reason } => reason.label().to_owned(),
        }
    }
}

/// One row of the history.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
}

impl HistoryRow {
    /// A run that has just begun.
    pub fn begun(run: u64, iteration: u32, started_at: Timestamp) -> Self {
        Self {
            iteration,
            run,
            started_at,
            duration_ms: 0,
            exit: None,
            ended_by: None,
            claimed: false,
            near_miss: None,
            verdict: None,
            gates: Vec::new(),
            progress: None,
            files: None,
            tokens: None,
            cost: None,
            error: None,
            trouble: 0,
            changed_gate_files: Vec::new(),
            commit: None,
            preview: String::new(),
            trees: (None, None),
            task: None,
        }
    }

    /// A run of a task, as the task's own loop summed it up.
    fn of_task(summary: &IterationSummary, spent: &Spent, at: Timestamp) -> Self {
        let gate = |gate: &descartes_kernel::state::GateSummary| GateRow {
            command: gate.command.clone(),
            end: match gate.exit_code {
                Some(code) => GateEnd::Exit(ExitStatus::Code(code)),
                None => GateEnd::Timeout,
            },
            duration_ms: gate.duration_ms,
            tail: String::new(),
        };
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
            gates: summary.gates.iter().map(gate).collect(),
            files: summary.files,
            tokens: spent.tokens,
            cost: spent.cost(),
            error,
            preview: summary.output_preview.clone(),
            ..Self::begun(
                u64::from(iteration),
                iteration,
                summary.started_at.unwrap_or(at),
            )
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

impl GateRow {
    /// Whether it was green.
    pub fn passed(&self) -> bool {
        matches!(self.end, GateEnd::Exit(ExitStatus::Code(0)))
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

/// Dollars for people: `$1.25`, `~$0.40` from a price table, `?` where nobody told.
pub fn show_cost(cost: Option<Cost>) -> String {
    match cost {
        None => "?".to_owned(),
        Some(Cost { micros, estimated }) => {
            let mark = if estimated { "~" } else { "" };
            let digits = if micros < 10_000 { 4 } else { 2 };
            format!("{mark}${:.digits$}", micros as f64 / 1e6)
        }
    }
}

/// Tokens for people: `1.2k`, `3.4M`, `?`.
pub fn show_tokens(tokens: Option<u64>) -> String {
    match tokens {
        None => "?".to_owned(),
        Some(n) if n < 1000 => n.to_string(),
        Some(n) if n < 1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        Some(n) => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// The block of `loop status`. Lines after the documented ones may be added.
pub fn status_block(state: &LoopState, life: Life, now: Timestamp) -> String {
    let status = Status::of(state, life);
    let config = &state.config;
    let exit = match &status {
        Status::Ended { reason } => reason_line(reason),
        Status::Interrupted => "Interrupted (resume with: descartes loop resume)".to_owned(),
        _ => "Running".to_owned(),
    };
    let completed = if matches!(status, Status::Ended { .. }) {
        "Yes"
    } else {
        "No"
    };
    let file = config
        .state_file
        .as_ref()
        .map_or_else(String::new, |f| f.display().to_string());
    let mut lines = vec![
        "Loop Status".to_owned(),
        "===========".to_owned(),
        format!("  State file: {file}"),
        format!("  Iteration: {}", state.iterations),
        format!("  Started: {}", whole_seconds(state.started_at)),
        format!("  Completed: {completed}"),
        format!("  Exit reason: {exit}"),
    ];
    lines.extend(live_lines(state, &status, now));
    lines.push(String::new());
    lines.push("Config:".to_owned());
    lines.push(format!("  Command: {}", config.command_line()));
    lines.push(format!("  Max iterations: {}", config.limit_label()));
    lines.push(match &config.completion_promise {
        Some(promise) => format!("  Completion promise: \"{promise}\""),
        None => "  Completion promise: none".to_owned(),
    });
    lines.extend(config.verify.iter().map(|gate| format!("  Gate: {gate}")));
    lines.join("\n") + "\n"
}

fn whole_seconds(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second())
        .unwrap_or(at)
        .to_string()
}

fn reason_line(reason: &IterativeExitReason) -> String {
    let label = reason.label();
    // An agent's words are a part of it.
    let sentence = one_line(&reason.sentence());
    if sentence.eq_ignore_ascii_case(label) {
        label.to_owned()
    } else {
        format!("{label} ({sentence})")
    }
}

/// Waves, the tasks at work, and the blocked ones.
fn task_lines(tasks: &TasksState, now: Timestamp) -> Vec<String> {
    let (done, total) = tasks.count();
    let mut lines = vec![format!(
        "  Tasks: {done} of {total} done (tag {})",
        tasks.tag
    )];
    if let Some(wave) = tasks.current_wave() {
        let (done, total) = tasks.wave_count(wave);
        lines.push(format!(
            "  Wave: {wave} of {} ({done}/{})",
            tasks.waves,
            plural(total as u64, "task")
        ));
    }
    for running in &tasks.running {
        let title = tasks.tasks.get(&running.task).map_or("", |t| &t.title);
        let since = std::time::Duration::try_from(now.duration_since(running.since));
        lines.push(format!(
            "  Task: {} {title} (attempt {}, for {})",
            running.task,
            running.attempt,
            show_duration(since.unwrap_or_default())
        ));
    }
    if let Some(task) = &tasks.merging {
        lines.push(format!("  Merging: {task}"));
    }
    for commit in &tasks.wave_commits {
        let hash = commit.commit_hash.as_deref().unwrap_or("nothing to commit");
        let ids: Vec<&str> = commit.tasks_completed.iter().map(|id| &**id).collect();
        lines.push(format!(
            "  Wave {}: {} ({})",
            commit.wave,
            hash.get(..12).unwrap_or(hash),
            ids.join(", ")
        ));
    }
    for blocked in &tasks.blocked {
        lines.push(format!(
            "  Blocked: {} {} after {}: {}",
            blocked.task_id,
            blocked.title,
            plural(u64::from(blocked.attempts), "attempt"),
            blocked.reason
        ));
    }
    for marked in &tasks.marked {
        lines.push(format!(
            "  Marked by others, not proven: {} {} ({})",
            marked.task_id,
            marked.title,
            marked.words()
        ));
    }
    if let Some(landing @ Landing::Ready { branch, why, .. }) = &tasks.landing {
        let command = landing.command().unwrap_or_default();
        lines.push(format!(
            "  Not landed: waiting on {branch} ({why}); land it with: {command}"
        ));
    }
    for tree in &tasks.kept {
        lines.push(format!(
            "  Kept worktree: {} ({})",
            tree.path.display(),
            tree.holds.join("; ")
        ));
    }
    lines
}

fn live_lines(state: &LoopState, status: &Status, now: Timestamp) -> Vec<String> {
    let mut lines = vec![format!("  Loop: {} ({})", state.name, state.loop_id)];
    let last = state.summaries.back();
    if let Some(at) = last.and_then(|summary| summary.completed_at) {
        lines.push(format!("  Last iteration: {}", whole_seconds(at)));
    }
    if let Some(tasks) = &state.tasks {
        lines.extend(task_lines(tasks, now));
    }
    if let Some(run) = state
        .run()
        .filter(|_| matches!(status, Status::Running | Status::Judging))
    {
        let since = std::time::Duration::try_from(now.duration_since(run.started_at));
        let since = show_duration(since.unwrap_or_default());
        lines.push(format!(
            "  Now: iteration {}, {} for {since}",
            run.iteration,
            status.label().to_lowercase()
        ));
    }
    let is_held = !matches!(status, Status::Interrupted | Status::Ended { .. });
    if let Some(what) = state.busy.as_ref().filter(|_| is_held) {
        lines.push(format!("  In progress: {what}"));
    }
    if let Some(why) = state.unmeasured().filter(|_| is_held) {
        lines.push(format!(
            "  Progress: unknown, stall detection is off ({why})"
        ));
    }
    if let Status::Waiting { until, why } = status {
        let left = std::time::Duration::try_from(until.duration_since(now)).unwrap_or_default();
        lines.push(format!(
            "  Waiting until: {} (in {}): {why}",
            whole_seconds(*until),
            show_duration(std::time::Duration::from_secs(left.as_secs()))
        ));
    }
    if *status == Status::Paused {
        lines.push("  Paused: continue with `descartes loop unpause`".to_owned());
    }
    if state.requests.pause == Pause::Asked && is_held && *status != Status::Paused {
        let when = match state.tasks {
            Some(_) => "once the running tasks are finished",
            None => "once this iteration ends",
        };
        lines.push(format!(
            "  Pause: requested, takes effect {when}; undo with `descartes loop unpause`"
        ));
    }
    let spent = &state.spent;
    lines.push(format!(
        "  Time used: {}",
        show_duration(std::time::Duration::from_millis(spent.ms))
    ));
    if spent.tokens.is_some() || spent.cost_micros.is_some() {
        let (tokens, cost) = (show_tokens(spent.tokens), show_cost(spent.cost()));
        lines.push(format!("  Tokens: {tokens}   Cost: {cost}"));
    }
    if let Some(summary) = state.summaries.back()
        && !summary.gates.is_empty()
    {
        let gates: Vec<String> = summary
            .gates
            .iter()
            .map(|gate| {
                let mark = if gate.exit_code == Some(0) {
                    "green"
                } else {
                    "red"
                };
                format!("{} ({mark})", gate.command)
            })
            .collect();
        lines.push(format!("  Last gates: {}", gates.join(", ")));
    }
    for changed in &state.changed_gate_files {
        lines.push(format!(
            "  Gate file changed since the loop began: {}",
            changed.words()
        ));
    }
    lines.extend(state.changes.iter().map(|change| {
        let at = whole_seconds(change.at);
        format!("  Changed while it ran: {at}: {}", change.words())
    }));
    if let Some(near) = state
        .summaries
        .back()
        .and_then(|row| row.near_miss.as_ref())
    {
        lines.push(format!("  Promise: {}", near.words()));
    }
    if let Some(failure) = &state.agents.last_failure {
        lines.push(format!(
            "  Last failure: {failure} ({} in a row)",
            state.agents.failures
        ));
    }
    lines
}
