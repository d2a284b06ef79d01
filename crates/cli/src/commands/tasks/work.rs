//! `descartes work`: where every piece of work is.

use descartes_core::host::HostError;
use descartes_core::tasks::{Piece, Whereabouts, survey};
use descartes_kernel::units::{plural, show_size};

use crate::args::tasks::WorkArgs;
use crate::error::CliError;
use crate::printer::Printer;
use crate::settings::surroundings::Surroundings;

/// Runs it.
pub fn run(args: &WorkArgs, around: &Surroundings, printer: &Printer) -> Result<i32, CliError> {
    let root = around.root(&around.here);
    let pieces = survey(&around.here, &root).map_err(HostError::from)?;
    if args.json {
        let value = serde_json::to_string(&pieces)
            .map_err(|error| CliError::system("write JSON", error.into()))?;
        printer.json(&value);
        return Ok(0);
    }
    if pieces.is_empty() {
        printer.line("no work of task loops is waiting here: all of it has landed");
        return Ok(0);
    }
    for piece in &pieces {
        printer.line(&line(piece));
    }
    Ok(0)
}

fn line(piece: &Piece) -> String {
    let what = &piece.what;
    let count = |commits| plural(u64::from(commits), "commit");
    match &piece.at {
        Whereabouts::Branch { name, commits } => {
            format!("{what:<24}on {name}, {} ahead", count(*commits))
        }
        Whereabouts::Ready { name, commits } => {
            let count = count(*commits);
            format!("{what:<24}ready to land ({count}): git merge --ff-only {name}")
        }
        Whereabouts::Merged { commits } => {
            let count = count(*commits);
            format!("{what:<24}merged and proven, not landed yet ({count})")
        }
        Whereabouts::Worktree {
            path,
            bytes,
            changed,
        } => {
            let state = match changed {
                0 => "clean".to_owned(),
                n => plural(*n as u64, "changed file"),
            };
            format!(
                "{what:<24}worktree {} ({}, {state})",
                path.display(),
                show_size(*bytes)
            )
        }
    }
}
