//! Refusals of what comes from within a loop: its agent, a gate, a git hook, or what these started.
//! A running loop refuses by itself, by the process at the other end of its socket; here stands what
//! is done without a host.

use std::net::SocketAddr;
use std::path::Path;

use descartes_client::LoopHandle;
use descartes_core::steering::{network_standing, own_standing};
use descartes_kernel::steering::{Enclosure, NotAllowed, Standing, Target};
use descartes_store::catalog::{self, LoopMeta};
use descartes_store::host::may_have_hidden_ancestors;
use descartes_store::layout::{EnvPaths, StateRoot};
use descartes_store::lock::is_held_from_elsewhere;
use descartes_store::state_file::{self, StateFileError};
use descartes_views::view::Life;

use crate::error::CliError;
use crate::settings::command_context::CommandContext;

/// Set to `1` it means the same as `--nested`.
const NESTED: &str = "DESCARTES_NESTED";

/// Refuses what only a person decides, such as `descartes trust` or `--trust-config`, where this
/// process runs within a loop. `what` is named in the refusal.
pub fn refuse_from_within(what: &str) -> Result<(), CliError> {
    standing().may_decide(what).map_err(refused)
}

/// Refuses to change a loop that this process runs within, or that it did not start itself.
pub fn refuse_steering(found: &LoopHandle) -> Result<(), CliError> {
    let nested = nested_in(found.meta());
    let target = match found.life()? {
        Life::Alive => Target::Running(nested.as_ref()),
        Life::Gone => Target::Stopped(nested.as_ref()),
    };
    standing().may_steer(target).map_err(refused)
}

/// The same for a loop that is known by what is kept of it.
pub fn refuse_steering_of(meta: &LoopMeta) -> Result<(), CliError> {
    let nested = nested_in(meta);
    let target = Target::Stopped(nested.as_ref());
    standing().may_steer(target).map_err(refused)
}

/// Refuses to change anything for whoever is at the other end of a connection to `descartes serve`, where
/// that is a process within a loop. What a loop started itself is steered by its own commands alone.
pub fn refuse_requests(here: SocketAddr, there: SocketAddr) -> Result<(), NotAllowed> {
    network_standing(here, there).may_steer(Target::Stopped(None))
}

/// Refuses to start a loop within a loop, unless that is meant and takes nobody's state file.
pub fn refuse_start(nested: bool, state_file: &Path, ctx: &CommandContext) -> Result<(), CliError> {
    let meant = nested || ctx.environment.text(NESTED) == Some("1");
    standing().may_start(meant).map_err(refused)?;
    refuse_state_file(state_file, ctx)
}

/// Where this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// In no loop.
    Outside,
    /// In a loop.
    Inside,
}

/// Whether this process runs within a loop; refused, with why, unless that is `allowed`.
pub fn enclosing_loop(allowed: bool) -> Result<Here, String> {
    let standing = standing();
    standing.may_start(allowed).map_err(|why| why.message)?;
    Ok(match standing.enclosure() {
        Some(_) => Here::Inside,
        None => Here::Outside,
    })
}

/// Refuses to take a state file that is there and belongs to a loop that was not started from this
/// tree. One that is not known here is somebody else's: the file says whatever was written into it.
pub fn refuse_state_file(state_file: &Path, ctx: &CommandContext) -> Result<(), CliError> {
    let standing = standing();
    if standing == Standing::Outside {
        return Ok(());
    }
    let id = match state_file::load(state_file) {
        Err(StateFileError::Missing(_)) => return Ok(()),
        Ok(loaded) => loaded.state.loop_id,
        Err(_) => None,
    };
    let root = ctx.root(&ctx.here);
    let known = id.and_then(|id| catalog::find(&root, &id).ok());
    let nested = known.and_then(|entry| nested_in(&entry.meta));
    let target = Target::Stopped(nested.as_ref());
    standing.may_steer(target).map_err(refused)
}

/// Where this process stands. In a pid namespace of its own it sees no process above, so that beside a
/// loop that runs outside of it nobody can tell whether it is that loop's agent.
fn standing() -> Standing {
    let seen = own_standing();
    if seen != Standing::Outside || !may_have_hidden_ancestors() {
        return seen;
    }
    let Ok(here) = std::env::current_dir() else {
        return seen;
    };
    let root = StateRoot::resolve(&EnvPaths::from_process(), &here);
    match is_held_from_elsewhere(&root) {
        true => Standing::Unknown(
            "a loop is running outside the pid namespace of this command".to_owned(),
        ),
        false => seen,
    }
}

/// Where a loop was first started, if that was within a loop.
fn nested_in(meta: &LoopMeta) -> Option<Enclosure> {
    let value = meta.extra.get(descartes_core::host::NESTED_IN)?;
    serde_json::from_value(value.clone()).ok()
}

fn refused(why: NotAllowed) -> CliError {
    CliError::refused(why.message, why.hint)
}
