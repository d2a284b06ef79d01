//! `descartes engine`: what many machines meet at. What speaks its protocol is a program of its own.

mod fleet_program;
mod show;

use std::path::PathBuf;

use descartes_bridge::EngineUrl;
use descartes_bridge::engine_command::{EngineCommand, EngineReport, complete, own_engine};

use crate::args::engine::{EngineArgs, EngineCheckArgs, EngineVerb};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;
use crate::within::refuse_from_within;

/// In the state folder: keys, config and data of the engine of this machine.
const FOLDER: &str = "engine";

/// Names another server than the one in the path.
const SERVER_VARIABLE: &str = "DESCARTES_NATS_SERVER";

pub fn run(args: EngineArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let printer = &ctx.printer;
    match args.verb {
        EngineVerb::Start(args) => {
            refuse_from_within("descartes engine start")?;
            let command = EngineCommand::Start {
                folder: folder(ctx),
                listen: args.listen,
                host: args.host,
                cluster: args.cluster,
                nats_server: ctx.environment.raw(SERVER_VARIABLE).map(PathBuf::from),
            };
            show::started(&ask(&command, ctx)?, printer)
        }
        EngineVerb::Check(args) => {
            let report = ask(&check_command(&args, ctx)?, ctx)?;
            match args.json {
                true => show::json(&report, printer),
                false => show::checked(&report, printer),
            }
        }
        EngineVerb::Status(args) => {
            let folder = folder(ctx);
            let report = ask(&EngineCommand::Status { folder }, ctx)?;
            match args.json {
                true => show::json(&report, printer),
                false => show::status(&report, printer),
            }
        }
        EngineVerb::Stop => {
            refuse_from_within("descartes engine stop")?;
            let folder = folder(ctx);
            show::stopped(&ask(&EngineCommand::Stop { folder }, ctx)?, printer)
        }
        EngineVerb::JoinToken(args) => {
            refuse_from_within("descartes engine join-token")?;
            let command = EngineCommand::JoinToken {
                folder: folder(ctx),
                name: args.name,
            };
            show::token(&ask(&command, ctx)?, printer)
        }
        EngineVerb::Revoke(args) => {
            refuse_from_within("descartes engine revoke")?;
            let command = EngineCommand::Revoke {
                folder: folder(ctx),
                name: args.name,
            };
            show::revoked(&ask(&command, ctx)?, printer)
        }
    }
}

fn folder(ctx: &CommandContext) -> PathBuf {
    ctx.root(&ctx.here).path().join(FOLDER)
}

fn check_command(args: &EngineCheckArgs, ctx: &CommandContext) -> Result<EngineCommand, CliError> {
    let folder = folder(ctx);
    let url = match &args.url {
        Some(text) => {
            let url: EngineUrl = text.parse().map_err(|error| {
                CliError::usage(
                    format!("{error}"),
                    "e.g. descartes engine check nats://127.0.0.1:4222",
                )
            })?;
            complete(url, &folder)
        }
        None => own_engine(&folder).ok_or_else(|| {
            CliError::refused("no engine was started here", "descartes engine start")
                .hinted("or name one: descartes engine check nats://HOST:4222")
        })?,
    };
    Ok(EngineCommand::Check {
        engine: url.with_key(),
    })
}

/// What came of a command; a failure as an error.
fn ask(command: &EngineCommand, ctx: &CommandContext) -> Result<EngineReport, CliError> {
    match fleet_program::ask(command, ctx)? {
        EngineReport::Failed { message, hints } => {
            let mut hints = hints.into_iter();
            let first = hints.next();
            let first = first.unwrap_or_else(|| "see: descartes engine --help".to_owned());
            Err(hints.fold(CliError::refused(message, first), CliError::hinted))
        }
        report => Ok(report),
    }
}
