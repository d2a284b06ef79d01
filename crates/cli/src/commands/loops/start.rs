//! `descartes loop start`.

use std::path::PathBuf;

use descartes_core::host::{self, OnExistingState};
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE};

use super::dry_run;
use crate::args::start::StartArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::session::order::{Job, Order};
use crate::session::{background, foreground};
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::settings::start::{Start, resolve, working_dir};
use crate::settings::tasks;
use crate::trust::{self, Asking};
use crate::within;

pub fn run(args: &StartArgs, ctx: &CommandContext, printer: &Printer) -> Result<i32, CliError> {
    let ctx = &around_for(args, ctx, printer)?;
    let start = resolve(args, ctx)?;
    for warning in &start.warnings {
        printer.warning(warning);
    }
    let existing = if args.place.force {
        OnExistingState::Archive
    } else {
        OnExistingState::ArchiveIfOver
    };
    if args.show.dry_run {
        let settings = order(&start, existing).host_settings(ctx)?;
        dry_run::run(&start, existing, &settings, printer)?;
        return Ok(host::examine(&settings, &start.config).map(|()| 0)?);
    }
    within::refuse_start(args.place.nested, &state_file(&start), ctx)?;
    let format = Format::asked(args.show);
    let order = order(&start, existing);
    if args.show.detach {
        return background::start(&order, format, ctx, printer);
    }
    foreground::run(order, format, ctx, printer)
}

/// Where the loop will keep its state.
fn state_file(start: &Start) -> PathBuf {
    let given = start.config.state_file.clone();
    given.unwrap_or_else(|| start.dir.join(PROJECT_FOLDER).join(STATE_FILE))
}

/// What the loop may use of the project's own config: all of it once it is trusted. A dry run only
/// looks.
fn around_for(
    args: &StartArgs,
    ctx: &CommandContext,
    printer: &Printer,
) -> Result<CommandContext, CliError> {
    let dir = working_dir(args, ctx);
    if args.show.dry_run {
        if let Some(notice) = trust::notice(&dir, ctx) {
            printer.note(&notice);
        }
        return Ok(ctx.with(ProjectConfig::AsWritten));
    }
    let asking = Asking {
        trust_config: args.place.trust_config,
        silent: args.show.json,
    };
    let scud = tasks::uses_scud_gates(args, ctx, &dir)?;
    trust::settle(&dir, scud, asking, ctx, printer)
}

fn order(start: &Start, existing: OnExistingState) -> Order {
    Order {
        environment: start.config.backend.environment.clone().into_values(),
        from: None,
        dir: start.dir.clone(),
        job: Job::Start {
            config: Box::new(start.config.clone()),
            name: start.name.clone(),
            existing,
        },
    }
}
