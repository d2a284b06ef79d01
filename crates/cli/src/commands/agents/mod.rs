//! `descartes agents …`: which agents there are, how one is run, whether it works here.

pub mod installed;
mod list;
mod show;
mod trial;

use descartes_agents::agent::{Profile, Profiles};

use crate::args::agents::{AgentsArgs, AgentsVerb};
use crate::error::CliError;
use crate::session::foreground::Format;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::trust::{self, Project, ScudGates};
use installed::MayBeStarted;

/// Runs a verb, or lists.
pub fn run(args: AgentsArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let written = ctx.with(ProjectConfig::AsWritten).layers(&ctx.here)?;
    let profiles = profiles(&written.settings)?;
    if let Some(notice) = trust::notice(&ctx.here, ctx) {
        ctx.printer.note(&notice);
    }
    let started = MayBeStarted::here(ctx)?;
    match args.verb {
        None => {
            let format = Format::of_story(args.json);
            Ok(list::run(&profiles, &started, format, ctx))
        }
        Some(AgentsVerb::Show { name }) => show::run(&name, &profiles, &ctx.printer),
        Some(AgentsVerb::Test(args)) => {
            let profile = known(&args.name, &profiles)?;
            if !started.holds(profile, &profiles) {
                let project = Project::look(&ctx.here, ScudGates::Unused, ctx)?;
                return Err(trust::refusal(&project, &ctx.here, ctx, None));
            }
            let ctx = ctx.with(ProjectConfig::Harmless);
            trial::run(&args, &profiles, &ctx)
        }
    }
}

/// The profile of that name.
fn known<'a>(name: &str, profiles: &'a Profiles) -> Result<&'a Profile, CliError> {
    profiles.get(name).ok_or_else(|| {
        CliError::usage(
            format!("unknown agent `{name}`"),
            format!("known: {}", profiles.names().collect::<Vec<_>>().join(", ")),
        )
        .hinted(format!(
            "add your own as [agents.{name}] in .descartes/config.toml"
        ))
    })
}
