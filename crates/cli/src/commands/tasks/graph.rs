//! `descartes graph`.

use descartes_core::host::HostError;
use descartes_core::tasks::open_source;
use descartes_plans::graph::render;
use descartes_views::picture::plan_svg;

use super::tasks_of;
use crate::args::tasks::{GraphFormat, GraphShowArgs};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

pub fn run(args: &GraphShowArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let tasks = tasks_of(&args.which, ctx)?;
    let loaded = open_source(&tasks, &ctx.here)?
        .load()
        .map_err(HostError::from)?;
    let (plan, statuses) = (&loaded.plan, loaded.plan.effective_statuses());
    let picture = match args.format {
        GraphFormat::Text => render::text(plan, &statuses),
        GraphFormat::Mermaid => render::mermaid(plan, &statuses),
        GraphFormat::Svg => plan_svg(plan, &statuses),
    };
    ctx.printer.data(&picture);
    Ok(0)
}
