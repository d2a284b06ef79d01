//! `descartes agents show NAME`.

use descartes_agents::agent::Profiles;

use crate::error::CliError;
use crate::printer::Printer;

/// Prints the profile as it stands, as TOML that could be put in a config file.
pub fn run(name: &str, profiles: &Profiles, printer: &Printer) -> Result<i32, CliError> {
    super::known(name, profiles)?;
    printer.data(&profiles.show(name).unwrap_or_default());
    Ok(0)
}
