//! The waves and tasks of a task loop, as people see them.

use jiff::Timestamp;
use serde::Serialize;

use super::Life;
use crate::tone::{Cell, Tone};
use crate::words;
use descartes_kernel::state::{LoopState, Phase};
use descartes_kernel::tasks::{BlockedEntry, Landing, MarkedEntry, TaskEntry, TasksState};
use descartes_plans::graph::{TaskId, TaskStatus};
use descartes_text::units::{plural, show_duration};

/// One wave; its label and its bar come from the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaveRow {
    /// The wave, from 1.
    pub wave: u32,
    /// Tasks that are done.
    pub done: usize,
    /// All its tasks.
    pub total: usize,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<TaskId>,
    /// Whether any of it was begun.
    begun: bool,
    /// Whether any of it can still be done.
    open: bool,
}

impl WaveRow {
    /// `Complete (3 tasks)`, `In Progress (2/4 tasks)`, `Pending (3 tasks)`.
    pub fn label(&self) -> Cell {
        let (done, tasks) = (self.done, plural(self.total as u64, "task"));
        match (self.open, self.begun) {
            (false, _) if done == self.total => {
                Cell::new(Tone::Good, format!("Complete ({tasks})"))
            }
            (false, _) => Cell::new(Tone::Bad, format!("Blocked ({done}/{tasks})")),
            (true, false) => Cell::new(Tone::Dim, format!("Pending ({tasks})")),
            (true, true) => Cell::new(Tone::Strong, format!("In Progress ({done}/{tasks})")),
        }
    }

    /// How full its bar is, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        match self.total {
            0 => 0.0,
            total => self.done as f64 / total as f64,
        }
    }
}

/// All waves, first one first.
pub fn waves(tasks: &TasksState) -> Vec<WaveRow> {
    let mut waves: Vec<Vec<TaskId>> = vec![Vec::new(); tasks.waves as usize];
    for id in &tasks.order {
        let wave = tasks.tasks.get(id).map_or(0, |task| task.wave as usize);
        let wave = wave.checked_sub(1).and_then(|at| waves.get_mut(at));
        wave.into_iter().for_each(|wave| wave.push(id.clone()));
    }
    let rows = waves.into_iter().zip(1..);
    rows.map(|(ids, wave)| row(tasks, wave, ids)).collect()
}

fn row(tasks: &TasksState, wave: u32, ids: Vec<TaskId>) -> WaveRow {
    let entries: Vec<&TaskEntry> = ids.iter().filter_map(|id| tasks.tasks.get(id)).collect();
    let is_open =
        |entry: &&TaskEntry| matches!(entry.status, TaskStatus::Pending | TaskStatus::InProgress);
    let done = entries.iter().filter(|entry| entry.is_done()).count();
    WaveRow {
        wave,
        done,
        total: entries.len(),
        begun: done > 0 || entries.iter().any(|entry| entry.attempts > 0),
        open: entries.iter().any(is_open),
        tasks: ids,
    }
}

/// One task, in whichever list it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    pub id: TaskId,
    pub title: String,
    pub wave: u32,
    pub status: Cell,
    pub attempts: u32,
    /// What this list has to say of it.
    pub note: String,
}

impl TaskRow {
    /// `1.2 Parser`.
    pub fn name(&self) -> String {
        format!("{} {}", self.id, self.title)
    }

    fn of(tasks: &TasksState, id: &TaskId, note: String) -> Option<Self> {
        let entry = tasks.tasks.get(id)?;
        Some(Self {
            id: id.clone(),
            title: entry.title.clone(),
            wave: entry.wave,
            status: match entry.is_done() && entry.unproven {
                true => Cell::new(Tone::Warn, "done, unproven"),
                false => Cell::new(task_tone(entry.status), entry.status.to_string()),
            },
            attempts: entry.attempts,
            note,
        })
    }
}

pub fn task_tone(status: TaskStatus) -> Tone {
    match status {
        TaskStatus::Done => Tone::Good,
        TaskStatus::InProgress => Tone::Strong,
        TaskStatus::Blocked | TaskStatus::Failed => Tone::Bad,
        TaskStatus::Review => Tone::Warn,
        TaskStatus::Pending => Tone::Normal,
        TaskStatus::Deferred | TaskStatus::Cancelled | TaskStatus::Expanded => Tone::Dim,
    }
}

/// All tasks, in the order of the plan, each with the worker on another machine that had it last.
pub fn task_rows(tasks: &TasksState) -> Vec<TaskRow> {
    let row = |id| {
        let worker = tasks.workers.get(id);
        let note = worker.map_or_else(String::new, |worker| format!("on {worker}"));
        TaskRow::of(tasks, id, note)
    };
    tasks.order.iter().filter_map(row).collect()
}

/// Those that are worked on, with their attempt, and those that are being merged.
/// Tasks that are at work, or were when the loop was left.
pub fn tasks_at_work(state: &LoopState, life: Life, now: Timestamp) -> Vec<TaskRow> {
    let Some(tasks) = state.tasks.as_deref() else {
        return Vec::new();
    };
    let is_over = matches!(state.phase, Phase::Finished { .. });
    if life == Life::Alive || is_over {
        return active_tasks(tasks, state.counts_to(now));
    }
    // Nobody works on it, and nobody knows since when.
    let left = tasks.running.iter().filter_map(|running| {
        let note = format!("attempt {}, interrupted", running.attempt);
        TaskRow::of(tasks, &running.task, note)
    });
    left.collect()
}

pub fn active_tasks(tasks: &TasksState, now: Timestamp) -> Vec<TaskRow> {
    let running = tasks.running.iter().filter_map(|running| {
        let since = show_duration(words::between(running.since, now));
        let complexity = match tasks.tasks.get(&running.task)?.complexity {
            0 => String::new(),
            complexity => format!(", complexity {complexity}"),
        };
        let worker = tasks.workers.get(&running.task);
        let worker = worker.map_or_else(String::new, |worker| format!(" on {worker}"));
        let note = format!(
            "attempt {}{worker}, for {since}{complexity}",
            running.attempt
        );
        TaskRow::of(tasks, &running.task, note)
    });
    let merged = tasks.being_merged();
    let note = match merged.len() {
        0 | 1 => "being merged".to_owned(),
        train => format!(
            "being merged together with {}",
            plural(train as u64 - 1, "other")
        ),
    };
    let merging = merged.iter();
    let merging = merging.filter_map(|id| TaskRow::of(tasks, id, note.clone()));
    running.chain(merging).collect()
}

/// How many tasks wait for an agent, are worked on, and are proven and wait for their merge or are in it.
pub fn queue_lengths(tasks: &TasksState) -> [(&'static str, usize); 3] {
    let count = |status| {
        tasks
            .tasks
            .values()
            .filter(|task| task.status == status)
            .count()
    };
    let working = tasks.running.len();
    let merging = count(TaskStatus::InProgress).saturating_sub(working);
    [
        ("agent", count(TaskStatus::Pending)),
        ("work", working),
        ("merge", merging),
    ]
}

/// Those that are given up, each with the reason.
pub fn blocked_tasks(tasks: &TasksState) -> Vec<TaskRow> {
    let row = |entry: &BlockedEntry| TaskRow {
        id: entry.task_id.clone(),
        title: entry.title.clone(),
        wave: 0,
        status: Cell::new(Tone::Bad, "blocked"),
        attempts: entry.attempts,
        note: entry.reason.clone(),
    };
    tasks.blocked.iter().map(row).collect()
}

/// Those of which nothing but the end of their agents says that they are done.
pub fn unproven_tasks(tasks: &TasksState) -> Vec<TaskRow> {
    let note = "no gate, and no promise was asked for";
    let rows = tasks.unproven();
    rows.filter_map(|id| TaskRow::of(tasks, id, note.to_owned()))
        .collect()
}

/// Those whose status others set: nobody has proven them.
pub fn marked_tasks(tasks: &TasksState) -> Vec<TaskRow> {
    let row = |entry: &MarkedEntry| TaskRow {
        id: entry.task_id.clone(),
        title: entry.title.clone(),
        wave: 0,
        status: Cell::new(Tone::Warn, entry.describe()),
        attempts: 0,
        note: "marked by others, not proven".to_owned(),
    };
    tasks.marked.iter().map(row).collect()
}

/// One commit of a task loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRow {
    /// Its wave, from 1; none for one that only marks tasks as done in their file.
    pub wave: Option<u32>,
    /// The beginning of its hash; none where there was nothing to commit.
    pub hash: Option<String>,
    /// The tasks that are done in it, or what else it is.
    pub what: String,
}

/// The commits of waves, and those that mark tasks as done on top of them, in the order of the branch.
pub fn commits(tasks: &TasksState) -> Vec<CommitRow> {
    let short = |hash: &str| hash.get(..12).unwrap_or(hash).to_owned();
    let mut rows: Vec<(usize, CommitRow)> = Vec::new();
    rows.extend(tasks.wave_commits.iter().enumerate().map(|(at, commit)| {
        let row = CommitRow {
            wave: Some(commit.wave),
            hash: commit.commit_hash.as_deref().map(short),
            what: commit.tasks_completed.join(", "),
        };
        (at + 1, row)
    }));
    rows.extend(tasks.mark_commits.iter().map(|commit| {
        let row = CommitRow {
            wave: None,
            hash: Some(short(&commit.commit_hash)),
            what: "marks tasks done in their file".to_owned(),
        };
        (commit.waves_below, row)
    }));
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Finished work that could not land: where it waits, why, and how to land it.
pub fn unlanded(tasks: &TasksState) -> Option<String> {
    let landing = tasks.landing.as_ref()?;
    let Landing::Ready { branch, why, .. } = landing else {
        return None;
    };
    let command = landing.command().unwrap_or_default();
    Some(format!(
        "waiting on {branch}: {why}; land it with: {command}"
    ))
}
