//! `descartes work`: where every piece of work is.

use descartes_core::host::HostError;
use descartes_core::tasks::{WorkItem, WorkLocation, survey};
use descartes_text::units::{plural, show_size};

use crate::args::tasks::{WorkArgs, WorkVerb};
use crate::error::CliError;
use crate::settings::command_context::CommandContext;

pub fn run(args: &WorkArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let root = ctx.root(&ctx.here);
    if let Some(WorkVerb::Land(land)) = &args.verb {
        return super::land::run(land, ctx);
    }
    let pieces = survey(&ctx.here, &root).map_err(HostError::from)?;
    if args.json {
        ctx.printer.json(&pieces);
        return Ok(0);
    }
    if pieces.is_empty() {
        ctx.printer
            .line("no work of task loops is waiting here: everything has landed");
        return Ok(0);
    }
    for piece in &pieces {
        ctx.printer.line(&line(piece));
    }
    Ok(0)
}

fn line(piece: &WorkItem) -> String {
    let what = &piece.what;
    let count = |commits| plural(u64::from(commits), "commit");
    match &piece.at {
        WorkLocation::Branch { name, commits } => {
            format!("{what:<23} on {name}, {} ahead", count(*commits))
        }
        WorkLocation::Ready { name, commits } => {
            let count = count(*commits);
            let tag = shell_words::quote(what);
            format!("{what:<23} not landed, waiting on {name} ({count}): descartes work land {tag}")
        }
        WorkLocation::Merged { commits } => {
            let count = count(*commits);
            format!("{what:<23} merged and proven, not landed yet ({count})")
        }
        WorkLocation::Worktree {
            path,
            bytes,
            changed,
            holds,
        } => {
            let state = match changed {
                0 => "clean".to_owned(),
                n => plural(*n as u64, "changed file"),
            };
            let kept = match holds.is_empty() {
                true => String::new(),
                false => {
                    let remove = match path.join(".git").is_file() {
                        true => "git worktree remove --force",
                        false => "rm -r",
                    };
                    format!(
                        "; kept, because it contains work that exists nowhere else: {}; once you \
                         have saved that: {remove} {}",
                        holds.join("; "),
                        shell_words::quote(&path.to_string_lossy())
                    )
                }
            };
            format!(
                "{what:<23} worktree {} ({}, {state}){kept}",
                path.display(),
                show_size(*bytes)
            )
        }
    }
}
