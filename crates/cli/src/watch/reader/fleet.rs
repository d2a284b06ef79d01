//! The list of all loops.

use std::time::Instant;

use descartes_client::{Fleet, Loops};

use super::{PACE, ScreenSender, Told};

pub(super) struct Lister {
    fleet: Fleet,
    post: ScreenSender,
}

impl Lister {
    pub(super) fn new(loops: Loops, post: ScreenSender) -> Self {
        Self {
            fleet: Fleet::new(loops),
            post,
        }
    }

    pub(super) fn run(mut self) {
        let mut last = None;
        loop {
            let begun = Instant::now();
            let seen = self.fleet.look().map_err(|error| error.to_string());
            if last.as_ref() != Some(&seen) {
                if !self.post.send(Told::Fleet(seen.clone())) {
                    return;
                }
                last = Some(seen);
            }
            // Many changes at once are one look.
            std::thread::sleep(PACE.saturating_sub(begun.elapsed()));
            self.fleet.wait(None);
        }
    }
}
