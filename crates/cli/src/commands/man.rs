//! `descartes man`: the manual, on standard output or as one page for each command.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Cli, setup::ManArgs};
use crate::error::{CliError, at};
use crate::printer::Printer;

/// Prints or writes the pages.
pub fn run(args: &ManArgs, printer: &Printer) -> Result<i32, CliError> {
    let command = Cli::command();
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Man::new(command)
            .render(&mut page)
            .map_err(at("write", std::path::Path::new("the manual page")))?;
        drop(printer.exact(&page));
        return Ok(0);
    };
    std::fs::create_dir_all(dir).map_err(at("make", dir))?;
    clap_mangen::generate_to(command, dir).map_err(at("write manual pages in", dir))?;
    printer.line(&format!("wrote the manual pages to {}", dir.display()));
    Ok(0)
}
