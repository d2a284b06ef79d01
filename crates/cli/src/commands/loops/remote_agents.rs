//! Agents on other machines that a loop which was ended could not stop itself: its coordinator was dead, or the
//! engine was away.

use descartes_client::LoopHandle;
use descartes_core::tasks::fleet::stop_remote_agents;
use descartes_kernel::control::Grace;

use crate::error::CliError;
use crate::session::engines;
use crate::settings::command_context::CommandContext;

/// Stops them, and says what became of them; `None` where there are none. `so_far` is what was done before.
pub fn stop(
    found: &LoopHandle,
    grace: Grace,
    so_far: &str,
    ctx: &CommandContext,
) -> Result<Option<String>, CliError> {
    let connect = engines::coordinator(ctx, &found.meta().working_dir);
    let work = stop_remote_agents(&found.state()?, &connect, grace);
    // Without it nothing is lost: the next `cancel` asks again.
    if !work.at_rest().is_empty()
        && let Ok(mut hold) = found.hold()
        && hold.offers_stopped(work.at_rest()).is_ok()
    {
        drop(hold.finish());
    }
    let Some(untold) = work.untold() else {
        let said = work.stopped().into_iter().chain(work.left());
        let said: Vec<String> = said.collect();
        return Ok((!said.is_empty()).then(|| said.join("; ")));
    };
    let said = work.stopped();
    let said: Vec<&str> = [so_far].into_iter().chain(said.as_deref()).collect();
    let id = found.id();
    Err(CliError::failed(
        format!("{}; but {untold}", said.join("; ")),
        format!("once the engine answers again: descartes loop cancel {id}"),
    ))
}
