//! `descartes roadmap …`.

use std::path::Path;

use descartes_core::host::wait_for_leaving;
use descartes_kernel::config::{ConfigChange, IterativeLoopConfig};
use descartes_kernel::edits::Accept;
use descartes_kernel::outcome::IterativeExitReason;
use descartes_kernel::state::IterativeLoopState;
use descartes_kernel::tasks::{RoadmapDefaults, TaskFile, TasksConfig};
use descartes_plans::roadmap;
use descartes_store::config::IterationLimit;
use descartes_store::lock::holder_of;
use descartes_store::state_file::{self, StateFile};
use descartes_text::path_text::encode;
use serde_json::json;

use super::task_list::{state_path, task_file};
use super::{roadmap_check, roadmap_status};
use crate::args::start::{FlagGroup, GitArgs, ScudArgs, StartArgs, TaskArgs};
use crate::args::tasks::{ListArgs, RoadmapResetArgs, RoadmapRunArgs, RoadmapVerb};
use crate::commands::loops::resume::other_engine;
use crate::commands::loops::task_plan;
use crate::error::CliError;
use crate::session;
use crate::session::order::{Job, Order};
use crate::settings::command_context::CommandContext;
use crate::settings::prompt::read_text;
use crate::settings::start::resolve_for;
use crate::trust::{self, Asking, ScudGates};
use crate::within;

/// Runs a verb and gives its exit code.
pub fn run(verb: RoadmapVerb, ctx: &CommandContext) -> Result<i32, CliError> {
    match verb {
        RoadmapVerb::Run(args) => start(&args, ctx),
        RoadmapVerb::Status(args) => roadmap_status::run(&args, ctx),
        RoadmapVerb::Reset(args) => reset(&args, ctx),
        RoadmapVerb::Check(args) => roadmap_check::run(&args, ctx),
    }
}

/// A roadmap that grows without end is nobody's plan.
const MOST_GROWTH: u32 = 50;

fn start(args: &RoadmapRunArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let ctx = &settle_custom(args, ctx)?;
    let found = task_file(args.file.as_deref(), &args.list, ctx)?;
    if args.growth > MOST_GROWTH {
        return Err(CliError::usage(
            format!("--growth {} is more than {MOST_GROWTH}", args.growth),
            "growth is for a few more tasks; review them before asking for more",
        ));
    }
    if args.ralph_default_iterations == 0 {
        return Err(CliError::usage(
            "--ralph-default-iterations 0 would do nothing",
            "use 1 or more",
        ));
    }
    refuse_flags(args, &found)?;
    refuse_task_agents(args, &found)?;
    let mut agent = args.agent.clone();
    agent.backend = agent.backend.or_else(|| args.cli.clone());
    let mut place = args.place.clone();
    let dir = ctx.dir(place.working_dir.as_deref());
    let state_file = match &place.state_file {
        Some(file) => ctx.absolute(file),
        None => state_path(&found, &dir),
    };
    place.state_file = Some(state_file.clone());
    let retry_blocked = args.retry_blocked;
    let run = args;
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
        sandbox: args.sandbox.clone(),
        scud: ScudArgs {
            scud_tag: None,
            tasks: args.tasks.clone(),
        },
        place,
        show: args.show,
        ..StartArgs::default()
    };
    let ctx = &trust::settle_start(&dir, ScudGates::Unused, &args, ctx)?;
    let promise = run.ralph_default_promise.clone();
    let source = match found {
        TaskFile::Roadmap { file, .. } => TaskFile::Roadmap {
            file,
            defaults: RoadmapDefaults {
                growth: run.growth,
                no_task_agents: run.no_task_agents,
                iterations: run.ralph_default_iterations,
                promise: match promise.or_else(|| run.done.completion_promise.clone()) {
                    Some(promise) => promise,
                    None => default_promise(&dir, ctx)?,
                },
                ..RoadmapDefaults::default()
            },
        },
        list => list,
    };
    say_format(&source, ctx);
    let start = resolve_for(&args, Some(source), ctx)?;
    for warning in &start.warnings {
        ctx.printer.warning(warning);
    }
    if args.show.dry_run {
        let order = Order::new(
            Job::Start {
                config: Box::new(start.config.clone()),
                name: start.name.clone(),
                existing: args.place.existing(),
            },
            start.dir.clone(),
            start.config.backend.environment.clone().into_values(),
        );
        let settings = order.host_settings(ctx)?;
        return task_plan::run(&start.config, &start.dir, &settings, &ctx.printer);
    }
    within::refuse_start(args.place.nested, &state_file, ctx)?;
    let environment = start.config.backend.environment.clone().into_values();
    let job = match state_file::load(&state_file) {
        // A run that was cut short goes on.
        Ok(loaded) if !args.place.force && goes_on(&loaded.state, retry_blocked) => {
            ctx.printer.note(match loaded.state.completed {
                true => "continuing the run that ended with blocked tasks",
                false => "continuing the run that was interrupted (--force starts over)",
            });
            let trust = args.scud.tasks.trust_marks;
            let known = &loaded.state.config;
            let has_workers = known
                .tasks
                .as_ref()
                .is_some_and(|tasks| tasks.workers.is_some());
            if let Some(warning) = for_new_runs(run, has_workers) {
                ctx.printer.warning(&warning);
            }
            let now = start.config.tasks.as_ref();
            let workers = match now.and_then(|tasks| tasks.workers.as_deref()) {
                Some(now) if has_workers && run.tasks.given().contains(&WORKERS.to_owned()) => {
                    other_engine(now, Some(known), &start.dir, ctx)?
                }
                _ => None,
            };
            Job::Resume {
                here: None,
                state_file,
                loop_id: None,
                change: Box::new(ConfigChange {
                    trust_marks: trust.then_some(true),
                    workers,
                    worktree_setup: other_setup(&loaded.state.config, start.config.tasks),
                    ..changes(&args)
                }),
                retry_blocked,
                accept: Accept::Harmless,
            }
        }
        _ => Job::Start {
            config: Box::new(start.config),
            name: start.name,
            existing: args.place.existing(),
        },
    };
    let order = Order::new(job, start.dir, environment);
    session::run(order, args.show, ctx)
}

/// Says whose list is run, where it is not ours.
fn say_format(source: &TaskFile, ctx: &CommandContext) {
    if let TaskFile::List { path, format, .. } = source {
        let what = format.describe();
        ctx.printer.note(&format!("{} is {what}", path.display()));
    }
    if let TaskFile::Tracker(tracker) = source {
        let what = tracker.format.describe();
        let label = tracker.label.as_ref();
        let label = label.map_or_else(String::new, |label| format!(" labelled `{label}`"));
        ctx.printer.note(&format!("the tasks are {what}{label}"));
    }
}

/// A source of the config is a command: also to look at its tasks, it must be trusted.
fn settle_custom(args: &RoadmapRunArgs, ctx: &CommandContext) -> Result<CommandContext, CliError> {
    if args.list.custom().is_none() {
        return Ok(ctx.clone());
    }
    let dir = ctx.dir(args.place.working_dir.as_deref());
    let asking = Asking {
        trust_config: args.place.trust_config,
        silent: args.show.json,
    };
    trust::settle(&dir, ScudGates::Unused, asking, ctx)
}

/// A run that was begun without that rule goes on without it: so it is looked at here, too.
fn refuse_task_agents(args: &RoadmapRunArgs, found: &TaskFile) -> Result<(), CliError> {
    let TaskFile::Roadmap { file, .. } = found else {
        return Ok(());
    };
    if !args.no_task_agents {
        return Ok(());
    }
    let text = read_text("the roadmap", file)?;
    match roadmap::parse(&text).own_agent() {
        None => Ok(()),
        Some(message) => Err(CliError::refused(
            format!("{}, {message}", file.display()),
            format!(
                "omit `agent` and `cli` there, or run it in a terminal: descartes roadmap run {}",
                descartes_text::shell::path(file)
            ),
        )),
    }
}

/// Flags that mean nothing to the list that is run.
fn refuse_flags(args: &RoadmapRunArgs, found: &TaskFile) -> Result<(), CliError> {
    if let TaskFile::List { .. } | TaskFile::Tracker(_) = found {
        return match args.growth {
            0 => Ok(()),
            _ => Err(CliError::usage(
                "--growth is for roadmaps: a new task cannot be written into another tool's list",
                "omit it",
            )),
        };
    }
    if let Some(flag) = args.list.given().first() {
        return Err(CliError::usage(
            format!("{flag} is for task lists of other tools, and this is a roadmap"),
            format!("omit {flag}"),
        ));
    }
    if args.done.no_promise {
        return Err(CliError::usage(
            "--no-promise does not apply to a roadmap: a task that loops (`ralph: true`) ends \
             with its promise, and other tasks need none",
            "omit it, or omit `ralph: true` from the tasks that gates alone decide",
        ));
    }
    if args.tasks.max_iterations_per_task.is_some() {
        return Err(CliError::usage(
            "--max-iterations-per-task does not apply to a roadmap: its tasks have \
             `max_iterations` or `retries`",
            "for looping tasks that do not set their own: --ralph-default-iterations N",
        ));
    }
    Ok(())
}

/// The promise of a looping task where neither it nor a flag names one.
fn default_promise(dir: &Path, ctx: &CommandContext) -> Result<String, CliError> {
    let promise = ctx.layers(dir)?.settings.completion_promise.value;
    Ok(promise.unwrap_or_else(|| RoadmapDefaults::default().promise))
}

/// The `worktree_setup` of the config, where the run knows another one.
fn other_setup(known: &IterativeLoopConfig, now: Option<Box<TasksConfig>>) -> Option<String> {
    let known = known.tasks.as_ref()?.worktree_setup.as_ref();
    now?.worktree_setup.filter(|now| known != Some(now))
}

/// What the flags change in a run that is taken up.
fn changes(args: &StartArgs) -> ConfigChange {
    let (limits, done) = (&args.limits, &args.done);
    ConfigChange {
        max_iterations: limits.max_iterations.map(|IterationLimit(limit)| limit),
        max_duration_secs: limits.max_duration,
        max_cost_usd: limits.max_cost,
        max_tokens: limits.max_tokens,
        iteration_timeout_secs: limits.timeout,
        idle_timeout_secs: limits.idle_timeout,
        max_failures: limits.max_failures,
        stall_after: limits.stall_after,
        verify: (!done.verify.is_empty()).then(|| done.verify.clone()),
        verify_timeout_secs: done.verify_timeout,
        model: args.agent.model.clone(),
        ..ConfigChange::default()
    }
}

/// Flags that hold for a run that is taken up, too.
const FOR_ANY_RUN: &str = "--env --idle-timeout --max-cost --max-duration --max-failures \
    --max-iterations --max-tokens --model --stall-after --timeout --trust-marks --verify \
    --verify-timeout";

/// Where workers are met: a run that has some may meet them at another engine.
const WORKERS: &str = "--workers";

/// Flags that hold only for a run that starts anew, where one is taken up.
fn for_new_runs(run: &RoadmapRunArgs, has_workers: bool) -> Option<String> {
    let given = [
        ("--cli", run.cli.is_some()),
        ("--command", run.command.is_some()),
        (
            "--ralph-default-promise",
            run.ralph_default_promise.is_some(),
        ),
        ("--growth", run.growth > 0),
    ];
    let given = given.into_iter().filter(|(_, given)| *given);
    let mut names: Vec<String> = given.map(|(flag, _)| flag.to_owned()).collect();
    let groups: [&dyn FlagGroup; 5] =
        [&run.done, &run.limits, &run.agent, &run.sandbox, &run.tasks];
    names.extend(groups.into_iter().flat_map(FlagGroup::given));
    names.extend(run.branch.then(|| "--branch".to_owned()));
    let template = run.branch_template.as_ref();
    names.extend(template.map(|_| "--branch-template".to_owned()));
    names.retain(|flag| FOR_ANY_RUN.split_whitespace().all(|any| any != flag));
    names.retain(|flag| !(has_workers && flag == WORKERS));
    (!names.is_empty()).then(|| {
        format!(
            "the run continues as it was started: {} would only apply to a new one (--force)",
            names.join(", ")
        )
    })
}

/// Whether an earlier run is taken up: one that was cut short, or one whose blocked tasks are to be
/// tried again.
fn goes_on(state: &IterativeLoopState, retry_blocked: bool) -> bool {
    let blocked = matches!(state.exit_reason, IterativeExitReason::TasksBlocked { .. });
    !state.completed || (blocked && retry_blocked)
}

fn reset(args: &RoadmapResetArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let list = ListArgs {
        source: args.source.clone(),
        label: args.label.clone(),
        ..ListArgs::default()
    };
    let found = task_file(args.file.as_deref(), &list, ctx)?;
    let path = state_path(&found, &ctx.here);
    let root = ctx.root(&ctx.here);
    wait_for_leaving(&root, &path)?;
    if let Some(held) = holder_of(&root, &path)? {
        return Err(CliError::refused(
            format!("the roadmap is being run: {held}"),
            format!(
                "end it first: descartes loop cancel --state-file {}",
                descartes_text::shell::path(&path)
            ),
        ));
    }
    if !path.exists() {
        match args.json {
            true => ctx.printer.json(&json!({"forgotten": false})),
            false => ctx
                .printer
                .line("there is nothing to forget: it has never run here"),
        }
        return Ok(0);
    }
    within::refuse_state_file(&path, ctx)?;
    let kept = StateFile::at(&path)?.set_aside(jiff::Timestamp::now())?;
    if args.json {
        ctx.printer
            .json(&json!({"forgotten": true, "kept": encode(&kept)}));
        return Ok(0);
    }
    ctx.printer.line(&format!(
        "forgotten; the old state is kept as {}",
        kept.display()
    ));
    Ok(0)
}
