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
use crate::settings::start::{Start, resolve};
use crate::settings::surroundings::Surroundings;
use crate::within;

/// Runs it.
pub fn run(args: &StartArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let start = resolve(args, around)?;
    for warning in &start.warnings {
        printer.warning(warning);
    }
    let over = if args.place.force {
        Over::SetAside
    } else {
        Over::Refuse
    };
    if args.show.dry_run {
        dry_run::run(&start, over, around, printer)?;
        let config = start.config.clone();
        let settings = order(start, over).host_settings(around)?;
        return Ok(host::examine(&settings, &config).map(|()| 0)?);
    }
    within::refuse_start(args.place.nested, &state_file(&start), around)?;
    let format = Format::asked(args.show);
    let order = order(start, over);
    if args.show.detach {
        return background::start(&order, format, printer);
    }
    foreground::run(order, format, around, printer)
}

/// Where the loop will keep its state.
fn state_file(start: &Start) -> PathBuf {
    let given = start.config.state_file.clone();
    given.unwrap_or_else(|| start.dir.join(PROJECT_FOLDER).join(STATE_FILE))
}

fn order(start: Start, over: Over) -> Order {
    Order {
        environment: start.config.backend.environment.clone(),
        dir: start.dir,
        job: Job::Start {
            config: Box::new(start.config),
            name: start.name,
            over,
        },
    }
}
