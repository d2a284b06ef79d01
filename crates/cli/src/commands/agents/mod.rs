//! `descartes agents …`: which agents there are, how one is run, whether it works here.

pub mod installed;
mod list;
mod show;
mod trial;

use descartes_kernel::agent::{Profile, Profiles};

use crate::args::agents::{AgentsArgs, AgentsVerb};
use crate::error::CliError;
use crate::printer::Printer;
use crate::session::foreground::Format;
use crate::settings::agent::profiles;
use crate::settings::surroundings::Surroundings;

/// Runs a verb, or lists.
pub fn run(args: AgentsArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let profiles = profiles(&around.layers(&around.here)?)?;
    match args.verb {
        None => Ok(list::run(&profiles, format(args.json), around, printer)),
        Some(AgentsVerb::Show { name }) => show::run(&name, &profiles, printer),
        Some(AgentsVerb::Test(args)) => trial::run(&args, &profiles, around, printer),
    }
}

fn format(json: bool) -> Format {
    match json {
        true => Format::Json,
        false => Format::Story,
    }
}

/// The profile of that name.
fn known<'a>(name: &str, profiles: &'a Profiles) -> Result<&'a Profile, CliError> {
    profiles.get(name).ok_or_else(|| CliError::Usage {
        message: format!("no agent is called `{name}`"),
        hints: vec![
            format!(
                "known are {}",
                profiles.names().collect::<Vec<_>>().join(", ")
            ),
            format!("add your own as [agents.{name}] in .descartes/config.toml"),
        ],
    })
}
