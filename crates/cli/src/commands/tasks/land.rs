//! `descartes work land`: finished work that could not land is brought into the user's branch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use descartes_client::{Known, LoopHandle, Loops, Scope};
use descartes_core::host::{HostError, wait_for_leaving};
use descartes_core::tasks::{WorkLocation, survey};
use descartes_kernel::config::IterativeLoopConfig;
use descartes_kernel::outcome::exit;
use descartes_kernel::tasks::{Landing, TaskFile};
use descartes_store::layout::StateRoot;
use descartes_views::view::Life;

use crate::args::start::ShowArgs;
use crate::args::tasks::LandArgs;
use crate::error::CliError;
use crate::session;
use crate::session::order::{Job, Order};
use crate::settings::command_context::CommandContext;
use crate::within;

pub fn run(args: &LandArgs, ctx: &CommandContext) -> Result<i32, CliError> {
    let root = ctx.root(&ctx.here);
    let waiting = waiting(args, ctx, &root)?;
    if waiting.is_empty() {
        return nothing(args, ctx, &root);
    }
    let mut code = 0;
    for found in waiting {
        within::refuse_steering_of(found.meta())?;
        wait_for_leaving(&root, found.state_file())?;
        if found.life()? == Life::Alive {
            ctx.printer.talk(&format!(
                "the loop {} is running: it lands its own work",
                found.name()
            ));
            code = code.max(exit::REFUSED);
            continue;
        }
        let job = Job::Land {
            state_file: found.state_file().to_owned(),
            loop_id: found.id().to_owned(),
        };
        let dir = found.meta().working_dir.clone();
        let show = ShowArgs {
            json: args.json,
            ..ShowArgs::default()
        };
        let order = Order::new(job, dir, BTreeMap::new());
        code = code.max(session::run(order, show, ctx)?);
    }
    Ok(code)
}

/// The newest loop of each list here whose work waits; with a tag, that one's.
fn waiting(
    args: &LandArgs,
    ctx: &CommandContext,
    root: &StateRoot,
) -> Result<Vec<LoopHandle>, CliError> {
    let top = top_of(&ctx.here);
    let is_here = |handle: &LoopHandle| handle.meta().working_dir.starts_with(&top);
    newest_waiting(root, args.tag.as_deref(), is_here)
}

/// The ids of loops, anywhere, whose work still waits on its branch to land.
pub fn with_unlanded_work(root: &StateRoot) -> Result<BTreeSet<String>, CliError> {
    let mut ids = BTreeSet::new();
    for found in newest_waiting(root, None, |_| true)? {
        let Some(Landing::Ready { branch, .. }) = landing_of(&found) else {
            continue;
        };
        let dir = &found.meta().working_dir;
        let waits = match survey(dir, root) {
            Ok(pieces) => pieces.iter().any(|piece| match &piece.at {
                WorkLocation::Ready { name, commits } => *name == branch && *commits > 0,
                _ => false,
            }),
            // What cannot be asked is not taken for landed; where nothing is any more, nothing can land.
            Err(_) => dir.exists(),
        };
        if waits {
            ids.insert(found.id().to_owned());
        }
    }
    Ok(ids)
}

fn landing_of(found: &LoopHandle) -> Option<Landing> {
    found.look().ok()?.state.tasks?.landing.clone()
}

fn newest_waiting(
    root: &StateRoot,
    tag: Option<&str>,
    is_meant: impl Fn(&LoopHandle) -> bool,
) -> Result<Vec<LoopHandle>, CliError> {
    let loops = Loops::at(root.clone(), Known::builtin());
    let mut found = Vec::new();
    let (mut tags, mut places) = (BTreeSet::new(), BTreeSet::new());
    for handle in loops.list(&Scope::All)? {
        if !is_meant(&handle) || handle.parent().is_some() {
            continue;
        }
        let Ok(look) = handle.look() else {
            continue;
        };
        let Some(tasks) = &look.state.tasks else {
            continue;
        };
        let waits = matches!(tasks.landing, Some(Landing::Ready { .. }));
        let top = top_of(&handle.meta().working_dir);
        let is_newest = tags.insert((top.clone(), tasks.tag.clone()));
        let meant = match tag {
            Some(tag) => *tag == tasks.tag && (waits || is_newest),
            None => waits,
        };
        // The newest loop of a list has taken over what an older one left for the same branch.
        // What is done in place waits for nobody.
        let base = tasks.base.as_ref().filter(|base| base.tree.is_none());
        let branch = base.map(|base| base.target.clone());
        let place = (top, tasks.tag.clone(), list_of(&look.state.config), branch);
        if places.insert(place) && meant {
            found.push(handle);
        }
    }
    Ok(found)
}

/// The file of a list, where a tag alone does not tell it.
fn list_of(config: &IterativeLoopConfig) -> Option<PathBuf> {
    match &config.tasks.as_ref()?.source {
        TaskFile::Scud { .. } => None,
        other => Some(other.path().clone()),
    }
}

/// The repository around a folder.
fn top_of(here: &std::path::Path) -> PathBuf {
    let above = here.ancestors().find(|dir| dir.join(".git").exists());
    above.unwrap_or(here).to_owned()
}

/// What is said where no loop has work that waits.
fn nothing(args: &LandArgs, ctx: &CommandContext, root: &StateRoot) -> Result<i32, CliError> {
    let pieces = survey(&ctx.here, root).map_err(HostError::from)?;
    let left = pieces.iter().find_map(|piece| match &piece.at {
        WorkLocation::Ready { name, commits } if *commits > 0 => {
            let meant = args.tag.as_ref().is_none_or(|tag| *tag == piece.what);
            meant.then_some((&piece.what, name))
        }
        _ => None,
    });
    if let Some((what, name)) = left {
        return Err(CliError::Host(refused(
            format!(
                "work of {what} is waiting on {name}, but the loop that made it is no longer known"
            ),
            format!(
                "its gates are not known either: git merge {}, then run your own gates",
                shell_words::quote(name)
            ),
        )));
    }
    if let Some(tag) = &args.tag {
        return Err(CliError::Host(refused(
            format!("there is no task loop for `{tag}` here whose work could land"),
            "see what is waiting: descartes work",
        )));
    }
    ctx.printer.line("no finished work is waiting to land here");
    Ok(0)
}

fn refused(message: String, hint: impl Into<String>) -> HostError {
    HostError::Refused {
        message,
        hint: hint.into(),
    }
}
