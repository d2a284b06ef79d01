//! The commands, one file each.

mod agents;
mod clean;
mod completions;
mod config;
pub mod demo;
mod doctor;
mod engine;
mod gui;
pub mod init;
mod install;
pub mod loops;
mod man;
mod mcp;
mod query;
mod report;
mod sandbox;
mod serve;
mod tasks;
mod trust;
mod watch;
mod worker;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::args::{Cli, Command};
use crate::error::{CliError, at};
use crate::settings::command_context::CommandContext;

/// Runs a command and gives its exit code.
pub fn run(cli: Cli, ctx: &CommandContext) -> Result<i32, CliError> {
    match cli.command {
        Command::Loop(args) => loops::run(args.verb, ctx),
        Command::Watch(args) => watch::run(&args, watch::First::Any, ctx),
        Command::Roadmap(args) => tasks::roadmap::run(args.verb, ctx),
        Command::Worker(args) => worker::run(&args, ctx),
        Command::Import(args) => tasks::import::run(&args, ctx),
        Command::Spec(args) => tasks::spec::run(&args, ctx),
        Command::Work(args) => tasks::work::run(&args, ctx),
        Command::Graph(args) => tasks::graph::run(&args, ctx),
        Command::Report(args) => report::run(&args, ctx),
        Command::Gui(args) => gui::run(&args, ctx),
        Command::Serve(args) => serve::run(&args, ctx),
        Command::Mcp(args) => mcp::run(&args, ctx),
        Command::Engine(args) => engine::run(args, ctx),
        Command::Query(args) => query::run(&args, ctx),
        Command::Demo(args) => demo::run(args, ctx),
        Command::Init(args) => init::run(&args, ctx),
        Command::Install(args) => install::install(&args, ctx),
        Command::Uninstall(args) => install::uninstall(&args, ctx),
        Command::Clean(args) => clean::run(args, ctx),
        Command::Agents(args) => agents::run(args, ctx),
        Command::Doctor(args) => doctor::run(args, ctx),
        Command::Sandbox(args) => sandbox::run(&args, ctx),
        Command::Config(args) => config::run(args.verb, ctx),
        Command::Trust(args) => trust::run(&args, ctx),
        Command::Completions(args) => Ok(completions::run(args, &ctx.printer)),
        Command::Man(args) => man::run(&args, &ctx.printer),
    }
}

/// A new folder in another, with a number behind its name.
fn new_folder(parent: &Path, name: &str) -> Result<PathBuf, CliError> {
    for number in 1..10_000 {
        let dir = parent.join(format!("{name}-{number}"));
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| dir.clone()).map_err(at("make", &dir)),
        }
    }
    let error = std::io::Error::from(ErrorKind::AlreadyExists);
    Err(at("make a folder in", parent)(error))
}
