//! The list of all loops.

use std::time::Instant;

use descartes_client::{Fleet, Loops};

use super::{PACE, ReaderEvent, ScreenSender};

/// Tells of them whenever they change, until nobody listens.
pub(super) fn list(loops: Loops, post: &ScreenSender) {
    let (mut fleet, mut last) = (Fleet::new(loops), None);
    loop {
        let begun = Instant::now();
        let seen = fleet.look().map_err(|error| error.to_string());
        if last.as_ref() != Some(&seen) {
            if !post.send(ReaderEvent::Fleet(seen.clone())) {
                return;
            }
            last = Some(seen);
        }
        // Many changes at once are one look.
        std::thread::sleep(PACE.saturating_sub(begun.elapsed()));
        fleet.wait(None);
    }
}
