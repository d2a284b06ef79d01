//! All loops, kept current by one thread.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use descartes_client::{Brief, Fleet, Loops};
use jiff::Timestamp;
use tokio::sync::watch;
use tracing::warn;

/// The least time between two looks while somebody looks, and while nobody does.
const PACE: Duration = Duration::from_millis(200);
const IDLE_PACE: Duration = Duration::from_secs(2);
/// At most so long is slept for want of news.
const SLEEP: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct FleetView {
    /// 0 until it was read for the first time.
    pub version: u64,
    /// Newest first.
    pub briefs: Vec<Brief>,
    /// Why they cannot be listed.
    pub trouble: Option<String>,
}

pub(super) fn follow(loops: Loops) -> watch::Receiver<Arc<FleetView>> {
    let (sender, receiver) = watch::channel(Arc::new(FleetView::default()));
    let spawned = thread::Builder::new()
        .name("fleet".into())
        .spawn(move || look_again_and_again(loops, &sender));
    if let Err(error) = spawned {
        warn!(%error, "the list cannot be followed");
    }
    receiver
}

fn look_again_and_again(loops: Loops, sender: &watch::Sender<Arc<FleetView>>) {
    let (mut fleet, mut last) = (Fleet::new(loops), None);
    // Versions of a server that was there before say nothing.
    let mut version = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    loop {
        let begun = Instant::now();
        let seen = fleet.look().map_err(|error| error.to_string());
        if last.as_ref() != Some(&seen) {
            version += 1;
            let (briefs, trouble) = match seen.clone() {
                Ok(briefs) => (briefs, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            sender.send_replace(Arc::new(FleetView {
                version,
                briefs,
                trouble,
            }));
            last = Some(seen);
        }
        // One receiver is the hub's own.
        let pace = match sender.receiver_count() {
            0 | 1 => IDLE_PACE,
            _ => PACE,
        };
        thread::sleep(pace.saturating_sub(begun.elapsed()));
        fleet.wait(Some(SLEEP));
    }
}
