//! `descartes loop workers`: who makes the attempts of a task loop on other machines.

use std::time::Duration;

use descartes_core::tasks::fleet::{DEFAULT_POOL, SlotFacts, WorkerFacts, why_untaken};
use descartes_kernel::state::{LoopState, Phase};
use descartes_plans::graph::TaskId;
use descartes_text::display::one_line;
use descartes_text::units::{plural, show_duration};
use serde_json::{Value, json};

use super::which::find;
use crate::args::loops::LoopWorkersArgs;
use crate::error::CliError;
use crate::session::engines;
use crate::settings::command_context::CommandContext;

pub fn run(args: &LoopWorkersArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let found = find(&args.which, ctx)?;
    let state = found.state()?;
    let tasks = state.config.tasks.as_ref();
    let Some(address) = tasks.and_then(|tasks| tasks.workers.as_deref()) else {
        return Err(CliError::refused(
            format!("{} has no workers on other machines", found.name()),
            "start a task loop with them: descartes roadmap run ROADMAP.md --workers URL",
        ));
    };
    let connect = engines::coordinator(ctx, &found.meta().working_dir);
    let engine = connect(address)?;
    let announced = engine.workers().map_err(|error| {
        let message = format!("the engine {address} does not tell its workers: {error}");
        CliError::refused(message, "descartes engine status")
    })?;
    let announced = announced.iter();
    let workers = announced.filter_map(|(_, facts)| serde_json::from_slice(facts).ok());
    let workers: Vec<WorkerFacts> = workers.collect();
    let untaken = untaken(&state, address, &workers);
    if args.json {
        let rows: Vec<Value> = untaken
            .iter()
            .map(|(task, why)| json!({ "task": task, "why": why }))
            .collect();
        ctx.printer
            .json(&json!({ "engine": address, "workers": workers, "untaken": rows }));
        return Ok(0);
    }
    if workers.is_empty() {
        ctx.printer.line(&format!("no worker is there ({address})"));
        ctx.printer
            .hint("a key for one: descartes engine join-token worker-1");
    }
    for worker in &workers {
        ctx.printer.line(&head(worker));
        for slot in &worker.at_work {
            ctx.printer.line(&at_work(slot, &state));
        }
        if let Some(refused) = &worker.refused {
            let refused = one_line(refused);
            ctx.printer.line(&format!("  did not take: {refused}"));
        }
    }
    for (task, why) in &untaken {
        let line = format!("task {task} is offered, and nobody has taken it: {why}");
        ctx.printer.line(&one_line(&line));
    }
    Ok(0)
}

fn head(worker: &WorkerFacts) -> String {
    let busy = worker.at_work.len();
    let slots = plural(u64::from(worker.slots), "slot");
    let draining = if worker.draining { ", leaving" } else { "" };
    let login = match worker.login.is_empty() || worker.login == worker.host {
        true => String::new(),
        false => format!("login {}, ", worker.login),
    };
    let head = format!(
        "{} on {}: {login}pool {}, {busy} of {slots} busy{draining}, agents {}, descartes {}",
        worker.name,
        worker.host,
        worker.pool,
        worker.agents.join(", "),
        worker.version
    );
    one_line(&head)
}

fn at_work(slot: &SlotFacts, state: &LoopState) -> String {
    let of = match slot.loop_id == state.loop_id {
        true => String::new(),
        false => format!(" of loop {}", slot.loop_id),
    };
    let since = show_duration(Duration::from_secs(slot.seconds));
    let line = one_line(&format!("task {}{of}, for {since}", slot.task));
    format!("  {line}")
}

/// Tasks that are offered and that no worker is at, each with the reason.
fn untaken(state: &LoopState, address: &str, workers: &[WorkerFacts]) -> Vec<(String, String)> {
    let pool = address
        .split_once('#')
        .map_or(DEFAULT_POOL, |(_, pool)| pool);
    let agent = &state.config.backend.backend_type;
    let is_taken = |task: &str| {
        let mut slots = workers.iter().flat_map(|worker| &worker.at_work);
        slots.any(|slot| slot.loop_id == state.loop_id && slot.task == task)
    };
    // One that is about to be offered has no offer yet that is open.
    let open = state.tasks.iter().flat_map(|tasks| {
        let running = tasks.running.iter();
        let is_open = |task: &TaskId| tasks.open_offers().any(|(work, _)| work == task);
        running
            .map(|running| &running.task)
            .filter(move |task| is_open(task))
    });
    let is_over = matches!(state.phase, Phase::Finished { .. });
    open.filter(|_| !is_over)
        .map(|task| task.to_string())
        .filter(|task| !is_taken(task))
        .map(|task| (task, why_untaken(workers, pool, agent)))
        .collect()
}
