//! `descartes loop start`.

use std::path::PathBuf;

use descartes_core::host::{self, OnExistingState};
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE};

use super::dry_run;
use crate::args::start::StartArgs;
use crate::error::CliError;
use crate::session;
use crate::session::order::{Job, Order};
use crate::settings::command_context::CommandContext;
use crate::settings::start::{Start, resolve, working_dir};
use crate::settings::tasks;
use crate::trust::{self};
use crate::within;

pub fn run(args: &StartArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let dir = working_dir(args, ctx);
    let scud = tasks::uses_scud_gates(args, ctx, &dir)?;
    let ctx = &trust::settle_start(&dir, scud, args, ctx)?;
    let start = resolve(args, ctx)?;
    for warning in &start.warnings {
        ctx.printer.warning(warning);
    }
    let existing = args.place.existing();
    if args.show.dry_run {
        let settings = order(&start, existing).host_settings(ctx)?;
        dry_run::run(&start, existing, &settings, &ctx.printer)?;
        return Ok(host::examine(&settings, &start.config).map(|()| 0)?);
    }
    within::refuse_start(args.place.nested, &state_file(&start), ctx)?;
    session::run(order(&start, existing), args.show, ctx)
}

/// Where the loop will keep its state.
fn state_file(start: &Start) -> PathBuf {
    let given = start.config.state_file.clone();
    given.unwrap_or_else(|| start.dir.join(PROJECT_FOLDER).join(STATE_FILE))
}

fn order(start: &Start, existing: OnExistingState) -> Order {
    let environment = start.config.backend.environment.clone().into_values();
    let job = Job::Start {
        config: Box::new(start.config.clone()),
        name: start.name.clone(),
        existing,
    };
    Order::new(job, start.dir.clone(), environment)
}
