//! `descartes trust`: lets a project's own config start programs and widen rights, shows what it
//! would, takes it back.

use descartes_kernel::trust::Standing;
use serde_json::json;

use crate::args::setup::TrustArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::command_context::CommandContext;
use crate::trust::{Part, Project, ScudGates, declined, refusal};
use crate::within::refuse_from_within;

pub fn run(args: &TrustArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let dir = ctx.dir(args.working_dir.as_deref());
    if !dir.is_dir() {
        return Err(CliError::usage(
            format!("{} is not a directory", dir.display()),
            "name the folder of a project",
        ));
    }
    if args.revoke {
        refuse_from_within("descartes trust")?;
        let book = ctx.trust_book(&dir)?;
        let said = match book.revoke()? {
            true => "no longer trusted",
            false => "was not trusted",
        };
        ctx.printer
            .line(&format!("{said}: {}", book.project().display()));
        return Ok(0);
    }
    let project = Project::look(&dir, ScudGates::Used, ctx)?;
    if args.show {
        show(&project, args.json, &ctx.printer);
        return Ok(0);
    }
    refuse_from_within("descartes trust")?;
    let Some(first) = project.untrusted().next() else {
        let said = match project.parts.is_empty() {
            true => "nothing to trust: no setting here starts a program or grants permissions",
            false => "already trusted",
        };
        ctx.printer
            .line(&format!("{said}: {}", project.book.project().display()));
        return Ok(0);
    };
    if args.yes {
        ctx.printer.talk(&project.question());
    } else {
        match project.ask(ctx) {
            Some(true) => {}
            Some(false) => return Err(declined(&dir, ctx)),
            None => return Err(refusal(&project, &dir, ctx, None)),
        }
    }
    let again = first.standing == Standing::Changed;
    project.trust()?;
    ctx.printer.line(&format!(
        "trusted{}: {}",
        if again { " as it is now" } else { "" },
        project.book.project().display()
    ));
    Ok(0)
}

fn show(project: &Project, json: bool, printer: &Printer) {
    if json {
        let part = |part: &Part| {
            json!({
                "file": part.file,
                "trusted": part.standing.may_be_used(),
                "keys": part.keys,
                "trusted_keys": part.before,
            })
        };
        let parts: Vec<_> = project.parts.iter().map(part).collect();
        let shown = json!({
            "project": project.book.project(),
            "trusted": project.untrusted().next().is_none(),
            "files": parts,
        });
        return printer.json(&shown);
    }
    if project.parts.is_empty() {
        printer.line("nothing to trust: no setting here starts a program or grants permissions");
    }
    for part in &project.parts {
        let word = match part.standing {
            Standing::Nothing | Standing::Trusted => "trusted",
            Standing::New => "not trusted yet",
            Standing::Changed => "changed since it was trusted",
        };
        printer.line(&format!("{}: {word}", part.file.display()));
        let lines = match part.standing {
            Standing::Changed => part.changes(),
            _ => part.all(),
        };
        for line in lines {
            printer.line(&format!("  {line}"));
        }
    }
}
