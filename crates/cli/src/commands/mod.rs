//! The commands, one file each.

mod agents;
mod clean;
mod completions;
mod config;
pub mod demo;
mod doctor;
mod gui;
mod init;
mod install;
pub mod loops;
mod man;
mod query;
mod report;
mod tasks;
mod trust;
mod watch;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::surroundings::Surroundings;

/// Runs a command and gives its exit code.
pub fn run(cli: Cli, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    match cli.command {
        Command::Loop(args) => loops::run(args.verb, around, printer),
        Command::Watch(args) => watch::run(&args, watch::First::Any, around, printer),
        Command::Roadmap(args) => tasks::roadmap::run(args.verb, around, printer),
        Command::Spec(args) => tasks::spec::run(&args, around, printer),
        Command::Work(args) => tasks::work::run(&args, around, printer),
        Command::Graph(args) => tasks::graph::run(&args, around, printer),
        Command::Report(args) => report::run(&args, around, printer),
        Command::Gui(args) => gui::run(&args, around),
        Command::Query(args) => query::run(&args, around, printer),
        Command::Demo(args) => demo::run(args, around, printer),
        Command::Init(args) => init::run(&args, around, printer),
        Command::Install(args) => install::install(&args, around, printer),
        Command::Uninstall(args) => install::uninstall(&args, around, printer),
        Command::Clean(args) => clean::run(args, around, printer),
        Command::Agents(args) => agents::run(args, around, printer),
        Command::Doctor(args) => doctor::run(args, around, printer),
        Command::Config(args) => config::run(args.verb, around, printer),
        Command::Trust(args) => trust::run(&args, around, printer),
        Command::Completions(args) => Ok(completions::run(args, printer)),
        Command::Man(args) => man::run(&args, printer),
    }
}
