//! `descartes roadmap status`: every task with where it stands and what it took.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use descartes_client::{Look, LoopHandle, Query};
use descartes_core::host::HostError;
use descartes_core::tasks::lists::{QuestionLine, read_list, read_tracker};
use descartes_kernel::state::{IterativeLoopState, LoopState, Spent};
use descartes_kernel::tasks::TaskFile;
use descartes_plans::graph::TaskId;
use descartes_plans::lists::{KnownTask, ListTask, TaskList};
use descartes_plans::roadmap::{self, CheckMark, RoadmapTask};
use descartes_store::lock::holder_of;
use descartes_store::state_file;
use descartes_text::units::{plural, show_duration};
use descartes_views::view::show_cost;
use serde_json::{Value, json};

use super::task_list::{state_path, task_file, typed};
use crate::args::tasks::RoadmapFileArgs;
use crate::commands::loops::which;
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::settings::prompt::read_text;

pub fn run(args: &RoadmapFileArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = task_file(args.file.as_deref(), &args.list, ctx)?;
    let shown = typed(args.file.as_deref(), &args.list);
    let path = state_path(&found, &ctx.here);
    let alive = holder_of(&ctx.root(&ctx.here), &path)?.is_some();
    let state = state_file::load(&path).ok().map(|loaded| loaded.state);
    let journal = state.as_ref().and_then(|_| look(&path, ctx));
    // A task without an id keeps that of the run, wherever it stands by now.
    let known = journal.as_ref().map(|(_, look)| look.state.known_tasks());
    let listed = listed(&found, &known.unwrap_or_default())?;
    let rows = StatusTable {
        state: state.as_ref(),
        journal,
        alive,
    };
    let rows: Vec<StatusRow> = listed.iter().map(|task| rows.row(task)).collect();
    if args.json {
        let reason = state.as_ref().map(|state| &state.exit_reason);
        let tasks: Vec<Value> = rows.iter().map(StatusRow::json).collect();
        ctx.printer
            .json(&json!({"running": alive, "exit_reason": reason, "tasks": tasks}));
        return Ok(0);
    }
    let done = rows.iter().filter(|row| row.status == "done").count();
    let now = match (&state, alive) {
        (_, true) => "running".to_owned(),
        (Some(state), _) if state.completed => state.exit_reason.sentence(),
        (Some(_), _) => format!("interrupted (continue with: descartes roadmap run {shown})"),
        (None, _) => "not run yet".to_owned(),
    };
    let iterations = state.as_ref().map_or(0, |state| state.iteration);
    ctx.printer.line(&format!(
        "{shown}: {done} of {} done, {}, {now}",
        plural(rows.len() as u64, "task"),
        plural(u64::from(iterations), "iteration")
    ));
    let width = rows.iter().map(|row| row.id.chars().count()).max();
    for row in &rows {
        ctx.printer.line(&row.line(width.unwrap_or(0)));
    }
    Ok(0)
}

/// A task as its list has it.
struct ListedTask {
    id: String,
    mark: CheckMark,
}

fn listed(found: &TaskFile, known: &[KnownTask]) -> Result<Vec<ListedTask>, CliError> {
    let (list, options) = match found {
        TaskFile::List {
            path,
            format,
            options,
            tag,
        } => {
            let read = read_list(path, *format, *options, tag.as_deref(), known);
            let read = read.map_err(|error| {
                CliError::refused(format!("cannot read {}: {error}", path.display()), "")
            })?;
            (read.list, *options)
        }
        TaskFile::Tracker(tracker) => {
            let read = read_tracker(
                tracker,
                &QuestionLine::default(),
                known,
                &BTreeSet::new(),
                &[],
                &[],
            );
            (read.map_err(HostError::from)?.list, tracker.options)
        }
        _ => {
            let text = read_text("the roadmap", found.path())?;
            let tasks = roadmap::parse(&text).tasks.into_iter();
            let task = |task: RoadmapTask| ListedTask {
                id: task.id,
                mark: task.mark,
            };
            return Ok(tasks.map(task).collect());
        }
    };
    let tasks = list.tasks.iter().filter(|task| !task.container);
    let mark = |task: &ListTask| match (task.is_done(), TaskList::passed_over(task, options)) {
        (true, _) => CheckMark::Done,
        (_, Some(_)) => CheckMark::LeftOut,
        _ if TaskList::held_reason(task).is_some() => CheckMark::Stopped,
        _ => CheckMark::Open,
    };
    let task = |task: &ListTask| ListedTask {
        id: task.id.clone(),
        mark: mark(task),
    };
    Ok(tasks.map(task).collect())
}

/// The run's journal, where it is on this machine.
fn look(path: &Path, ctx: &CommandContext) -> Option<(LoopHandle, Look)> {
    let loops = which::loops(ctx, &ctx.here).ok()?;
    let found = loops.find(&Query::StateFile(path.to_owned())).ok()?;
    let look = found.look().ok()?;
    Some((found, look))
}

/// What is said of a task that somebody else marked while a loop ran.
const NOT_PROVEN: &str = "marked by others, not proven";

/// What a task took.
struct Took {
    iterations: u32,
    spent: Spent,
}

impl Took {
    /// Iterations, time and cost: `3 iterations, 12m, $0.40`.
    fn describe(&self) -> String {
        let time = Duration::from_millis(self.spent.ms);
        // Fractions of a second matter to nobody who looks at a roadmap.
        let time = match time.as_secs() {
            0 => time,
            whole => Duration::from_secs(whole),
        };
        let iterations = plural(u64::from(self.iterations), "iteration");
        format!(
            "{iterations}, {}, {}",
            show_duration(time),
            show_cost(self.spent.cost())
        )
    }
}

struct StatusRow {
    id: String,
    status: &'static str,
    note: String,
    took: Option<Took>,
}

impl StatusRow {
    fn json(&self) -> Value {
        let took = self.took.as_ref();
        let spent = took.map(|took| took.spent);
        json!({
            "id": self.id,
            "status": self.status,
            "note": self.note,
            "iterations": took.map_or(0, |took| took.iterations),
            "seconds": spent.map_or(0.0, |spent| spent.ms as f64 / 1e3),
            "tokens": spent.and_then(|spent| spent.tokens),
            "cost_usd": spent.and_then(|spent| spent.cost_micros).map(|micros| micros as f64 / 1e6),
            "cost_estimated": spent.is_some_and(|spent| spent.estimated),
        })
    }

    fn line(&self, width: usize) -> String {
        let took = self.took.as_ref().map(Took::describe).unwrap_or_default();
        let id = match took.is_empty() && self.note.is_empty() {
            true => self.id.clone(),
            false => format!("{:<width$}", self.id),
        };
        let line = format!("  {:<12}{id}", self.status);
        let parts = [line, took, self.note.clone()].into_iter();
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("  ")
    }
}

/// What is known of the tasks.
struct StatusTable<'a> {
    state: Option<&'a IterativeLoopState>,
    journal: Option<(LoopHandle, Look)>,
    alive: bool,
}

impl StatusTable<'_> {
    fn list(&self, key: &str) -> Vec<Value> {
        let found = self.state.and_then(|state| state.extra.get(key));
        found.and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn row(&self, task: &ListedTask) -> StatusRow {
        let is = |value: &Value| value.as_str() == Some(task.id.as_str());
        let of = |entry: &&Value| entry.get("task_id").is_some_and(is);
        let (blocked, marked) = (self.list("blocked_tasks"), self.list("marked_tasks"));
        let why = blocked.iter().find(of);
        let is_marked = marked.iter().any(|entry| of(&entry));
        let (status, note) = match task.mark {
            CheckMark::Done if is_marked => ("done", NOT_PROVEN.to_owned()),
            CheckMark::LeftOut if is_marked => ("left out", NOT_PROVEN.to_owned()),
            CheckMark::Done if self.list("unproven_tasks").iter().any(is) => {
                ("done", "unproven".to_owned())
            }
            CheckMark::Done => ("done", String::new()),
            CheckMark::LeftOut => ("left out", String::new()),
            CheckMark::Stopped => ("stopped", String::new()),
            CheckMark::Open if self.alive && self.list("current_tasks").iter().any(is) => {
                ("running", String::new())
            }
            CheckMark::Open => match why {
                Some(entry) => {
                    let reason = entry.get("reason").and_then(Value::as_str).unwrap_or("");
                    ("blocked", reason.to_owned())
                }
                None => ("open", String::new()),
            },
        };
        StatusRow {
            id: task.id.clone(),
            status,
            note,
            took: self.took(&task.id),
        }
    }

    /// What a task took, as its own loop tells it; else as the task loop has heard.
    fn took(&self, id: &str) -> Option<Took> {
        let (found, look) = self.journal.as_ref()?;
        let tasks = look.state.tasks.as_ref()?;
        let id = TaskId::from(id);
        let own = tasks.loops.get(&id);
        let own: Option<LoopState> = own.and_then(|own| found.beside(own).ok()?.state().ok());
        match own {
            Some(own) => Some(Took {
                iterations: own.iterations + u32::from(self.alive && own.run().is_some()),
                spent: own.spent,
            }),
            None => Some(Took {
                iterations: tasks.reported_iterations.get(&id).copied()?,
                spent: tasks.spent.get(&id).copied().unwrap_or_default(),
            }),
        }
    }
}
