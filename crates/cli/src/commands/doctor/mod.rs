//! `descartes doctor`: is everything here that loops need?

mod agents;
pub mod finding;
pub mod leftovers;
mod machine;
mod sandbox;
mod streams;

use descartes_agents::agent::Profiles;
use descartes_kernel::outcome::exit;
use descartes_store::config::{ConfigPlaces, Layers};

use self::finding::{Finding, Level, note, problem, tell};
use crate::args::setup::DoctorArgs;
use crate::commands::agents::installed::MayBeStarted;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::trust;

/// Runs all checks; findings exit with 1.
pub fn run(args: DoctorArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let root = ctx.root(&ctx.here);
    let mut findings = machine::git(&ctx.here);
    findings.extend(machine::disk(&root));
    let (layers, profiles, config) = configuration(ctx)?;
    findings.extend(config);
    let started = MayBeStarted::here(ctx)?;
    findings.extend(agents::look(&profiles, &layers.settings, &started, ctx));
    findings.push(sandbox::look(&profiles, ctx));
    findings.extend(streams::look(&root, &profiles));
    findings.extend(leftovers::look(&root, &ctx.paths));
    findings.push(machine::log(&root));
    findings.push(machine::terminal(ctx));
    show(&findings, args, &ctx.printer);
    let bad = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    Ok(if bad { exit::ERROR } else { 0 })
}

/// The settings; where they cannot be used, the defaults and why.
fn configuration(ctx: &CommandContext) -> Result<(Layers, Profiles, Vec<Finding>), CliError> {
    let found = ctx
        .with(ProjectConfig::AsWritten)
        .layers(&ctx.here)
        .and_then(|layers| Ok((profiles(&layers.settings)?, layers)));
    match found {
        Ok((profiles, layers)) => {
            let mut out = machine::config(ctx);
            out.extend(
                trust::notice(&ctx.here, ctx)
                    .map(|notice| note("config", notice, "if you want it: descartes trust --yes")),
            );
            out.extend(layers.unknown().into_iter().map(|unknown| {
                problem(
                    "config",
                    unknown,
                    "it has no effect; known keys: descartes config defaults",
                )
            }));
            Ok((layers, profiles, out))
        }
        Err(error) => {
            let layers = Layers::load(&ConfigPlaces::default())?;
            let hint = "fix the file; for all keys with an explanation: descartes config defaults";
            let finding = problem("config", error.to_string(), hint);
            Ok((layers, Profiles::builtin(), vec![finding]))
        }
    }
}

fn show(findings: &[Finding], args: DoctorArgs, printer: &Printer) {
    if args.json {
        return printer.json(&findings);
    }
    for finding in findings {
        let name = (finding.check, 9);
        tell(
            finding.level,
            name,
            &finding.message,
            finding.hint.as_ref(),
            printer,
        );
    }
}
