//! What is followed, once for all who look: the list of all loops, and each loop that somebody has
//! before them. Threads follow files by inotify; streams wait for what they put out.

mod feed;
mod fleet;
mod limits;
mod output;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use descartes_client::Loops;
use tokio::sync::watch;

pub use feed::LoopView;
pub use fleet::FleetView;
pub use output::OutputTail;

/// Loops that are followed, by their ids.
type Feeds = Arc<Mutex<HashMap<String, watch::Receiver<Arc<LoopView>>>>>;

pub struct Hub {
    loops: Loops,
    fleet: OnceLock<watch::Receiver<Arc<FleetView>>>,
    feeds: Feeds,
}

impl Hub {
    pub fn new(loops: Loops) -> Self {
        Self {
            loops,
            fleet: OnceLock::new(),
            feeds: Feeds::default(),
        }
    }

    /// All loops, as they stand from now on. The first one who asks has them followed.
    pub fn fleet(&self) -> watch::Receiver<Arc<FleetView>> {
        let begin = || fleet::follow(self.loops.clone());
        self.fleet.get_or_init(begin).clone()
    }

    /// One loop, by its whole id, as it stands from now on.
    pub fn follow(&self, id: &str) -> watch::Receiver<Arc<LoopView>> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(id) {
            return feed.clone();
        }
        let feed = feed::follow(&self.loops, id, &self.feeds);
        feeds.insert(id.to_owned(), feed.clone());
        feed
    }
}

/// What is there once it has been read for the first time.
pub async fn first<T: Clone>(feed: &mut watch::Receiver<T>, is_read: impl Fn(&T) -> bool) -> T {
    // A thread that could not be started leaves what there is.
    let _ = feed.wait_for(|view| is_read(view)).await.is_ok();
    feed.borrow().clone()
}
