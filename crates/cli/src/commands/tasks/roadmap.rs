//! `descartes roadmap …`.

use std::path::{Path, PathBuf};

use descartes_kernel::config::ConfigChange;
use descartes_kernel::edits::Accept;
use descartes_kernel::finding::Severity;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::path_text::encode;
use descartes_kernel::roadmap::{self, Mark, Roadmap};
use descartes_kernel::state::IterativeLoopState;
use descartes_kernel::tasks::{RoadmapDefaults, TaskFile};
use descartes_kernel::units::plural;
use descartes_store::layout::PROJECT_FOLDER;
use descartes_store::lock::holder_of;
use descartes_store::state_file::{self, StateFile};
use serde_json::{Value, json};

use crate::args::start::{GitArgs, ScudArgs, StartArgs, TaskArgs};
use crate::args::tasks::{RoadmapFileArgs, RoadmapRunArgs, RoadmapVerb};
use crate::commands::loops::task_plan;
use crate::error::CliError;
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::session::order::{Job, Order, Over};
use crate::session::{background, foreground};
use crate::settings::prompt::read_text;
use crate::settings::start::resolve_for;
use crate::settings::surroundings::{ProjectConfig, Surroundings};
use crate::trust::{self, Asking, ScudGates};
use crate::within;

/// Runs a verb and gives its exit code.
pub fn run(verb: RoadmapVerb, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    match verb {
        RoadmapVerb::Run(args) => start(&args, around, printer),
        RoadmapVerb::Status(args) => status(&args, around, printer),
        RoadmapVerb::Reset(args) => reset(&args, around, printer),
        RoadmapVerb::Check(args) => check(&args, around, printer),
    }
}

/// Where the run of a roadmap keeps its state, unless told otherwise.
fn state_path(file: &Path, dir: &Path) -> PathBuf {
    let stem = file
        .file_stem()
        .map_or_else(|| "tasks".into(), |stem| stem.to_string_lossy());
    dir.join(PROJECT_FOLDER)
        .join(format!("roadmap-{stem}.json"))
}

/// A roadmap that grows without end is nobody's plan.
const MOST_GROWTH: u32 = 50;

fn start(args: &RoadmapRunArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let file = around.absolute(&args.file);
    read_text("the roadmap", &file)?;
    if args.growth > MOST_GROWTH {
        return Err(CliError::usage(
            format!("--growth {} is more than {MOST_GROWTH}", args.growth),
            "growth is for a few tasks more; look at them before the next",
        ));
    }
    if args.ralph_default_iterations == 0 {
        return Err(CliError::usage(
            "--ralph-default-iterations 0 would do nothing",
            "give a number from 1",
        ));
    }
    let source = TaskFile::Roadmap {
        file: file.clone(),
        defaults: RoadmapDefaults {
            growth: args.growth,
            iterations: args.ralph_default_iterations,
            promise: args.ralph_default_promise.clone(),
            ..RoadmapDefaults::default()
        },
    };
    let mut agent = args.agent.clone();
    agent.backend = agent.backend.or_else(|| args.cli.clone());
    let mut place = args.place.clone();
    let dir = match &place.working_dir {
        Some(dir) => around.absolute(dir),
        None => around.here.clone(),
    };
    let state_file = match &place.state_file {
        Some(file) => around.absolute(file),
        None => state_path(&file, &dir),
    };
    place.state_file = Some(state_file.clone());
    let retry_blocked = args.retry_blocked;
    let args = StartArgs {
        task: TaskArgs {
            command: args.command.clone(),
            ..TaskArgs::default()
        },
        git: GitArgs {
            branch: args.branch,
            branch_template: args.branch_template.clone(),
            ..GitArgs::default()
        },
        done: args.done.clone(),
        limits: args.limits.clone(),
        agent,
        scud: ScudArgs {
            scud_tag: None,
            tasks: args.tasks.clone(),
        },
        place,
        show: args.show,
        ..StartArgs::default()
    };
    let around = &around_for(&args, &dir, around, printer)?;
    let start = resolve_for(&args, Some(source), around)?;
    for warning in &start.warnings {
        printer.warning(warning);
    }
    if args.show.dry_run {
        return task_plan::run(&start.config, &start.dir, printer);
    }
    within::refuse_start(args.place.nested, &state_file, around)?;
    let environment = start.config.backend.environment.clone().into_values();
    let job = match state_file::load(&state_file) {
        // A run that was cut short goes on.
        Ok(loaded) if !args.place.force && goes_on(&loaded.state, retry_blocked) => {
            printer.note(match loaded.state.completed {
                true => "going on with the run that ended with blocked tasks",
                false => "going on with the run that was interrupted (--force starts anew)",
            });
            let trust = args.scud.tasks.trust_marks;
            Job::Resume {
                here: None,
                state_file,
                loop_id: None,
                change: Box::new(ConfigChange {
                    trust_marks: trust.then_some(true),
                    ..ConfigChange::default()
                }),
                retry_blocked,
                accept: Accept::Harmless,
            }
        }
        _ => Job::Start {
            config: Box::new(start.config),
            name: start.name,
            over: Over::SetAside,
        },
    };
    let order = Order {
        environment,
        dir: start.dir,
        job,
    };
    let format = Format::asked(args.show);
    if args.show.detach {
        return background::start(&order, format, around, printer);
    }
    foreground::run(order, format, around, printer)
}

/// What the run may use of the project's own config; a dry run only looks. The roadmap itself, with
/// its `check:`, was named by the person.
fn around_for(
    args: &StartArgs,
    dir: &Path,
    around: &Surroundings,
    printer: &Printer,
) -> Result<Surroundings, CliError> {
    if args.show.dry_run {
        if let Some(notice) = trust::notice(dir, around) {
            printer.note(&notice);
        }
        return Ok(around.with(ProjectConfig::AsWritten));
    }
    let asking = Asking {
        trust_config: args.place.trust_config,
        silent: args.show.json,
    };
    trust::settle(dir, ScudGates::Unused, asking, around, printer)
}

/// Whether an earlier run is taken up: one that was cut short, or one whose blocked tasks are to be
/// tried again.
fn goes_on(state: &IterativeLoopState, retry_blocked: bool) -> bool {
    let blocked = matches!(state.exit_reason, IterativeExitReason::TasksBlocked { .. });
    !state.completed || (blocked && retry_blocked)
}

fn check(
    args: &RoadmapFileArgs,
    around: &Surroundings,
    printer: &Printer,
) -> Result<i32, CliError> {
    let text = read_text("the roadmap", &around.absolute(&args.file))?;
    let findings = roadmap::check(&text);
    let bad = findings
        .iter()
        .any(|finding| finding.severity != Severity::Note);
    if args.json {
        printer.json(&json!({"file": encode(&args.file), "findings": findings}).to_string());
        return Ok(i32::from(bad));
    }
    for finding in &findings {
        printer.line(&format!("{}:{finding}", args.file.display()));
    }
    if findings.is_empty() {
        let tasks = roadmap::parse(&text).tasks.len();
        printer.line(&format!(
            "{}: {}, nothing to say",
            args.file.display(),
            plural(tasks as u64, "task")
        ));
    }
    Ok(i32::from(bad))
}

fn reset(
    args: &RoadmapFileArgs,
    around: &Surroundings,
    printer: &Printer,
) -> Result<i32, CliError> {
    let file = around.absolute(&args.file);
    read_text("the roadmap", &file)?;
    let path = state_path(&file, &around.here);
    let root = around.root(&around.here);
    if let Some(held) = holder_of(&root, &path)? {
        return Err(CliError::Background {
            message: format!("the roadmap is being run: {held}"),
            causes: Vec::new(),
            hints: vec![format!(
                "end it first: descartes loop cancel --state-file {}",
                path.display()
            )],
            code: descartes_kernel::outcome::exit::REFUSED,
        });
    }
    if !path.exists() {
        printer.line("there is nothing to forget: it was never run here");
        return Ok(0);
    }
    let kept = StateFile::at(&path)?.set_aside(jiff::Timestamp::now())?;
    printer.line(&format!(
        "forgotten; what was known is kept as {}",
        kept.display()
    ));
    Ok(0)
}

fn status(
    args: &RoadmapFileArgs,
    around: &Surroundings,
    printer: &Printer,
) -> Result<i32, CliError> {
    let file = around.absolute(&args.file);
    let text = read_text("the roadmap", &file)?;
    let roadmap = roadmap::parse(&text);
    let path = state_path(&file, &around.here);
    let alive = holder_of(&around.root(&around.here), &path)?.is_some();
    let state = state_file::load(&path).ok().map(|loaded| loaded.state);
    let rows = rows(&roadmap, state.as_ref(), alive);
    if args.json {
        let reason = state.as_ref().map(|state| &state.exit_reason);
        let tasks: Vec<Value> = rows
            .iter()
            .map(|row| json!({"id": row.0, "status": row.1, "note": row.2}))
            .collect();
        printer.json(&json!({"running": alive, "exit_reason": reason, "tasks": tasks}).to_string());
        return Ok(0);
    }
    let done = rows.iter().filter(|row| row.1 == "done").count();
    let now = match (&state, alive) {
        (_, true) => "running".to_owned(),
        (Some(state), _) if state.completed => state.exit_reason.sentence(),
        (Some(_), _) => "interrupted (go on with: descartes roadmap run)".to_owned(),
        (None, _) => "not run yet".to_owned(),
    };
    let iterations = state.as_ref().map_or(0, |state| state.iteration);
    printer.line(&format!(
        "{}: {done} of {} done, {}, {now}",
        args.file.display(),
        plural(rows.len() as u64, "task"),
        plural(u64::from(iterations), "iteration")
    ));
    for (id, status, note) in rows {
        let note = match note.is_empty() {
            true => String::new(),
            false => format!(": {note}"),
        };
        printer.line(&format!("  {status:<12}{id}{note}"));
    }
    Ok(0)
}

/// What is said of a task that somebody else marked while a loop ran.
const NOT_PROVEN: &str = "marked by others, not proven";

/// Every task with its status and what there is to say about it.
fn rows(
    roadmap: &Roadmap,
    state: Option<&IterativeLoopState>,
    alive: bool,
) -> Vec<(String, &'static str, String)> {
    let list = |key: &str| {
        let found = state.and_then(|state| state.extra.get(key));
        found.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (current, blocked) = (list("current_tasks"), list("blocked_tasks"));
    let marked = list("marked_tasks");
    let row = |task: &roadmap::RoadmapTask| {
        let is = |value: &Value| value.as_str() == Some(task.id.as_str());
        let why = blocked
            .iter()
            .find(|entry| entry.get("task_id").is_some_and(is));
        let is_marked = marked
            .iter()
            .any(|entry| entry.get("task_id").is_some_and(is));
        let (status, note) = match task.mark {
            Mark::Done if is_marked => ("done", NOT_PROVEN.to_owned()),
            Mark::LeftOut if is_marked => ("left out", NOT_PROVEN.to_owned()),
            Mark::Done => ("done", String::new()),
            Mark::LeftOut => ("left out", String::new()),
            Mark::Stopped => ("stopped", String::new()),
            Mark::Open if alive && current.iter().any(is) => ("running", String::new()),
            Mark::Open => match why {
                Some(entry) => {
                    let reason = entry.get("reason").and_then(Value::as_str).unwrap_or("");
                    ("blocked", reason.to_owned())
                }
                None => ("open", String::new()),
            },
        };
        (task.id.clone(), status, note)
    };
    roadmap.tasks.iter().map(row).collect()
}
