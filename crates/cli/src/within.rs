//! Refusals of what comes from within a loop: its agent, a gate, a git hook, or what these started.
//! A running loop refuses by itself, by the process at the other end of its socket; here stands what
//! is done without a host.

use std::path::Path;

use descartes_client::LoopHandle;
use descartes_core::steering::own_standing;
use descartes_kernel::steering::{Enclosure, NotAllowed, Target};
use descartes_kernel::view::Life;
use descartes_store::catalog::{self, LoopMeta};
use descartes_store::state_file;

use crate::error::CliError;
use crate::settings::surroundings::Surroundings;

/// Set to `1` it means the same as `--nested`.
const NESTED: &str = "DESCARTES_NESTED";

/// Refuses what only a person decides, such as `descartes trust` or `--trust-config`, where this
/// process runs within a loop. `what` is named in the refusal.
pub fn refuse_from_within(what: &str) -> Result<(), CliError> {
    own_standing().may_decide(what).map_err(refused)
}

/// Refuses to change a loop that this process runs within, or that it did not start itself.
pub fn refuse_steering(found: &LoopHandle) -> Result<(), CliError> {
    let nested = nested_in(found.meta());
    let target = match found.life()? {
        Life::Alive => Target::Running(nested.as_ref()),
        Life::Gone => Target::Stopped(nested.as_ref()),
    };
    own_standing().may_steer(target).map_err(refused)
}

/// The same for a loop that is known by what is kept of it.
pub fn refuse_steering_of(meta: &LoopMeta) -> Result<(), CliError> {
    let nested = nested_in(meta);
    let target = Target::Stopped(nested.as_ref());
    own_standing().may_steer(target).map_err(refused)
}

/// Refuses to start a loop within a loop, unless that is meant and takes nobody's state file.
pub fn refuse_start(
    nested: bool,
    state_file: &Path,
    around: &Surroundings,
) -> Result<(), CliError> {
    let meant = nested || around.environment.text(NESTED) == Some("1");
    let standing = own_standing();
    standing.may_start(meant).map_err(refused)?;
    if standing.enclosure().is_none() {
        return Ok(());
    }
    let there = state_file::load(state_file).ok();
    match there.and_then(|loaded| loaded.state.loop_id) {
        Some(id) => match catalog::find(&around.root(&around.here), &id) {
            Ok(entry) => refuse_steering_of(&entry.meta),
            Err(_) => Ok(()),
        },
        None => Ok(()),
    }
}

/// Where a loop was first started, if that was within a loop.
fn nested_in(meta: &LoopMeta) -> Option<Enclosure> {
    let value = meta.extra.get(descartes_core::host::NESTED_IN)?;
    serde_json::from_value(value.clone()).ok()
}

fn refused(why: NotAllowed) -> CliError {
    CliError::Refused {
        message: why.message,
        hints: vec![why.hint],
    }
}
