//! Which loop is meant, and what is known of agents.

use std::path::Path;
use std::sync::Arc;

use descartes_client::{Known, LoopHandle, Loops, Query};
use descartes_store::layout::PROJECT_FOLDER;

use crate::args::loops::IterationOf;
use crate::args::resume::WhichLoop;
use crate::error::CliError;
use crate::session::order::prices;
use crate::settings::agent::profiles;
use crate::settings::command_context::{CommandContext, ProjectConfig};
use crate::trust;

/// All loops, as seen from `dir`.
pub fn loops(ctx: &CommandContext, dir: &Path) -> Result<Loops, CliError> {
    Ok(Loops::at(ctx.root(dir), known(ctx, dir)?))
}

/// The agents and prices that are known in `dir`.
pub fn known(ctx: &CommandContext, dir: &Path) -> Result<Known, CliError> {
    if let Some(notice) = trust::notice(dir, ctx) {
        ctx.printer.note(&notice);
    }
    // Profiles tell how output is read; nothing is started.
    let written = ctx.with(ProjectConfig::AsWritten);
    let known = written.layers(dir).and_then(|layers| {
        Ok(Known {
            profiles: Arc::new(profiles(&layers.settings)?),
            prices: Arc::new(prices(&layers.settings)?),
        })
    });
    match known {
        Ok(known) => Ok(known),
        // A slip in a config file must not keep anybody from looking at a loop or ending it.
        Err(error) => {
            ctx.printer
                .warning(&format!("{error}: built-in agents only"));
            Ok(Known::builtin())
        }
    }
}

/// The loop that is meant.
pub fn find(which: &WhichLoop, ctx: &CommandContext) -> Result<LoopHandle, CliError> {
    let (query, dir) = match (&which.id, &which.state_file) {
        (Some(name), _) => (Query::Named(name.clone()), ctx.here.clone()),
        (None, Some(file)) => {
            let file = ctx.absolute(file);
            let dir = project_of(&file).to_owned();
            (Query::StateFile(file), dir)
        }
        (None, None) => (Query::Here(ctx.here.clone()), ctx.here.clone()),
    };
    Ok(loops(ctx, &dir)?.find(&query)?)
}

/// An all-digit beginning of an id that is shorter than this fits every loop of a year.
const SHORTEST_ID: usize = 6;

/// The loop and the iteration that are meant: what is a number is the iteration. Ids begin with
/// a zero, iterations never do.
pub fn find_iteration(
    of: &IterationOf,
    ctx: &CommandContext,
) -> Result<(LoopHandle, Option<u32>), CliError> {
    let (mut iteration, mut id) = (None, None);
    for word in &of.words {
        let is_id = |word: &str| word.starts_with('0') && word.len() >= SHORTEST_ID;
        let number = word.parse::<u32>().ok().filter(|_| !is_id(word));
        match number {
            Some(number) if iteration.is_none() => iteration = Some(number),
            _ if id.is_none() && of.state_file.is_none() => id = Some(word.clone()),
            _ => {
                return Err(CliError::usage(
                    format!("unexpected extra argument `{word}`"),
                    "use an iteration and a loop, for example: 3 auth",
                ));
            }
        }
    }
    let which = WhichLoop {
        id,
        state_file: of.state_file.clone(),
    };
    Ok((find(&which, ctx)?, iteration))
}

/// What is said of a task loop where an iteration of it is asked for.
pub fn has_no_iterations(found: &LoopHandle, then: &str) -> CliError {
    CliError::refused(
        format!(
            "loop {} works on tasks: it has no iterations of its own, only the loops of its \
             tasks do",
            found.name()
        ),
        format!("the loops of its tasks: descartes loop list --children; {then}"),
    )
}

/// The project that a state file belongs to, as far as its path tells.
fn project_of(state_file: &Path) -> &Path {
    let folder = state_file.parent().unwrap_or(state_file);
    match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent().unwrap_or(folder),
        _ => folder,
    }
}

/// How a command that is suggested names this loop.
pub fn as_typed(which: &WhichLoop, found: &LoopHandle) -> String {
    match (&which.id, &which.state_file) {
        (None, None) => String::new(),
        (None, Some(file)) => format!(
            " --state-file {}",
            shell_words::quote(&file.display().to_string())
        ),
        (Some(_), _) => format!(" {}", shell_words::quote(found.name())),
    }
}
