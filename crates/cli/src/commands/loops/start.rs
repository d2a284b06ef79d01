//! `descartes loop start`.

use std::path::PathBuf;

use descartes_core::host;
use descartes_store::layout::{PROJECT_FOLDER, STATE_FILE};

use super::dry_run;
use crate::args::start::StartArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::session::order::{Job, Order, Over};
use crate::session::{background, foreground};
use crate::settings::start::{Start, resolve, working_dir};
use crate::settings::surroundings::{ProjectConfig, Surroundings};
use crate::settings::tasks;
use crate::trust::{self, Asking};
use crate::within;

/// Runs it.
pub fn run(args: &StartArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let around = &around_for(args, around, printer)?;
    let start = resolve(args, around)?;
    for warning in &start.warnings {
        printer.warning(warning);
    }
    let over = if args.place.force {
        Over::SetAside
    } else {
        Over::KeepOver
    };
    if args.show.dry_run {
        let settings = order(&start, over).host_settings(around)?;
        dry_run::run(&start, over, &settings, printer)?;
        return Ok(host::examine(&settings, &start.config).map(|()| 0)?);
    }
    within::refuse_start(args.place.nested, &state_file(&start), around)?;
    let format = Format::asked(args.show);
    let order = order(&start, over);
    if args.show.detach {
        return background::start(&order, format, around, printer);
    }
    foreground::run(order, format, around, printer)
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
    around: &Surroundings,
    printer: &Printer,
) -> Result<Surroundings, CliError> {
    let dir = working_dir(args, around);
    if args.show.dry_run {
        if let Some(notice) = trust::notice(&dir, around) {
            printer.note(&notice);
        }
        return Ok(around.with(ProjectConfig::AsWritten));
    }
    let asking = Asking {
        trust_config: args.place.trust_config,
        silent: args.show.json,
    };
    let scud = tasks::uses_scud_gates(args, around, &dir)?;
    trust::settle(&dir, scud, asking, around, printer)
}

fn order(start: &Start, over: Over) -> Order {
    Order {
        environment: start.config.backend.environment.clone().into_values(),
        from: None,
        dir: start.dir.clone(),
        job: Job::Start {
            config: Box::new(start.config.clone()),
            name: start.name.clone(),
            over,
        },
    }
}
