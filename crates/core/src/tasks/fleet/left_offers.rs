//! Offers of earlier hosts that nobody takes up: they are taken back, so that whoever is at work on one stops,
//! and whoever keeps a result of one forgets it.

use descartes_bridge::{EngineError, subject};
use descartes_kernel::fleet::{KnownOffer, LeftOffer, StoredClaim, TaskClaim, left_offer};
use tracing::{debug, info};

use super::messages::{AttemptRequest, child_name};
use super::remote_attempt::{REQUEST_TIMEOUT, REST};
use super::shared::FleetShared;
use super::stored::{closed_now, read_claim, write_claim};
use super::wip::forget_stored;
use crate::tasks::launch::file_name;

/// Takes these offers back, as long as the loop goes on: the next host does the rest.
pub(super) fn close_left(shared: &FleetShared, left: &[(String, KnownOffer)]) {
    for (work, offer) in left {
        while !shared.is_closed() {
            match close_one(shared, work, offer.epoch) {
                Ok(()) => {
                    shared.note_over(&subject::task(&shared.loop_id, work, offer.epoch));
                    break;
                }
                // Its worker was quicker: it is looked at again.
                Err(EngineError::Conflict) => {}
                Err(error) if error.is_temporary() => std::thread::sleep(REST),
                Err(error) => {
                    debug!(%error, work, "an earlier offer was not taken back");
                    break;
                }
            }
        }
    }
    // Also those of which an earlier host could not delete the refs.
    shared.forget_over();
}

fn close_one(shared: &FleetShared, work: &str, epoch: u64) -> Result<(), EngineError> {
    let engine = &shared.engine;
    let of = subject::task(&shared.loop_id, work, epoch);
    let stored = read_claim(engine, &of)?;
    let LeftOffer::Close { forced } = left_offer(stored.state()) else {
        return Ok(());
    };
    let claim = closed_now(forced);
    write_claim(engine, &of, stored.seq(), None, &claim)?;
    info!(work, epoch, state = ?stored.state(), "an offer of an earlier host was taken back");
    if let StoredClaim::Value {
        claim: TaskClaim::Held { worker, .. },
        ..
    } = &stored
    {
        let control = subject::control(&shared.loop_id, worker, &child_name(work, epoch));
        let body = serde_json::to_vec(&AttemptRequest::Kill).unwrap_or_default();
        // One that does not hear it finds out when it renews its claim.
        drop(engine.request(&control, &body, REQUEST_TIMEOUT));
    }
    let name = file_name(&of);
    for object in [format!("{name}-order"), format!("{name}-result")] {
        drop(engine.delete_object(&object));
    }
    forget_stored(engine, &of);
    Ok(())
}
