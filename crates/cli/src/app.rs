//! From the command line to an exit code.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use descartes_kernel::outcome::exit;
use descartes_store::debug_log;
use tracing::debug;

use crate::args::{Cli, ColorChoice, Command, LoopVerb, free_text, with_verb};
use crate::commands::{self, demo};
use crate::env::{Environment, Stream};
use crate::error::{CliError, from_clap};
use crate::notify;
use crate::printer::{Printer, after_writing};
use crate::session::background;
use crate::session::order::GUARD;
use crate::settings::command_context::CommandContext;

/// Runs the process.
pub fn run(words: Vec<OsString>) -> i32 {
    match words.get(1).and_then(|word| word.to_str()) {
        // Before anything else: a guard must be there at once, and hold nothing.
        Some(GUARD) => descartes_proc::guard_main(),
        Some(descartes_sandbox::STAGE_VERB) => descartes_sandbox::stage_main(&words[2..]),
        Some("--version" | "-V") if words.len() == 2 => version(),
        Some(background::HOST) => hidden_host(),
        Some(notify::VERB) => notify::helper(),
        Some(demo::agent::VERB) => demo_agent(&words[2..]),
        _ => command(words),
    }
}

fn version() -> i32 {
    let printer = Printer::new(ColorChoice::Never, &Environment::default());
    printer.line(concat!("descartes ", env!("CARGO_PKG_VERSION")));
    after_writing(0, &printer)
}

fn hidden_host() -> i32 {
    let environment = Environment::of_process();
    let printer = Printer::new(ColorChoice::Never, &environment);
    match CommandContext::of_process(environment, printer) {
        Ok(ctx) => background::host(&ctx),
        Err(error) => error.exit_code(),
    }
}

fn demo_agent(words: &[OsString]) -> i32 {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let environment = Environment::of_process();
    let played = demo::agent::run(&words, environment.text("DESCARTES_ITERATION"));
    i32::from(played.is_err())
}

fn command(words: Vec<OsString>) -> i32 {
    let environment = Environment::of_process();
    let words = free_text::joined(with_verb(words), Cli::command);
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, &words, &environment),
    };
    let printer = Printer::new(cli.color, &environment);
    let logs = log_to_stderr(&cli, &environment);
    let ctx = logs.and_then(|()| CommandContext::of_process(environment, printer));
    let code = match ctx.and_then(|ctx| commands::run(cli, &ctx)) {
        Ok(code) => code,
        Err(error) => {
            printer.error(&error);
            error.exit_code()
        }
    };
    after_writing(code, &printer)
}

/// Logs what is done where `DESCARTES_LOG` says so; not onto a screen that `watch` draws.
fn log_to_stderr(cli: &Cli, environment: &Environment) -> Result<(), CliError> {
    let Some(filter) = environment.log_filter()? else {
        return Ok(());
    };
    let draws = match &cli.command {
        Command::Watch(_) => true,
        Command::Loop(args) => matches!(args.verb, LoopVerb::Watch(_)),
        _ => false,
    };
    if !draws || Stream::of(&std::io::stderr()) == Stream::Pipe {
        debug_log::to_stderr(filter);
        let version = env!("CARGO_PKG_VERSION");
        debug!(version, pid = std::process::id(), "descartes begins");
    }
    Ok(())
}

/// Help is data; everything else that the parser refuses is a usage error.
fn refused(error: &clap::Error, words: &[OsString], environment: &Environment) -> i32 {
    let never = words
        .windows(2)
        .any(|pair| pair[0] == "--color" && pair[1] == "never")
        || words.iter().any(|word| word == "--color=never");
    let choice = if never {
        ColorChoice::Never
    } else {
        ColorChoice::Auto
    };
    let printer = Printer::new(choice, environment);
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Our own words, examples of commands among them: not masked.
            drop(printer.exact(styled(error, printer.out).as_bytes()));
            after_writing(0, &printer)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            printer.talk(styled(error, printer.err).trim_end());
            exit::USAGE
        }
        _ => {
            let error = from_clap(error, words);
            printer.error(&error);
            error.exit_code()
        }
    }
}

fn styled(error: &clap::Error, paint: crate::style::Paint) -> String {
    match paint {
        crate::style::Paint::Colour => error.render().ansi().to_string(),
        crate::style::Paint::Plain => error.render().to_string(),
    }
}
