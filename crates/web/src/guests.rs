//! Connections that have shown no token yet. There are only so many: the oldest makes room for a new one, so
//! that strangers never use up the places of those who may come in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// A quarter of all connections.
const MOST: usize = 128;

/// Those that are there, by their order.
#[derive(Clone, Default)]
pub struct Guests(Arc<Mutex<BTreeMap<u64, Arc<Notify>>>>);

/// One of them.
pub struct Guest {
    number: u64,
    leave: Arc<Notify>,
    all: Guests,
}

impl Guests {
    pub fn enter(&self) -> Guest {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let guest = Guest {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            leave: Arc::default(),
            all: self.clone(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(guest.number, Arc::clone(&guest.leave));
        let over = all.len() > MOST;
        if let Some((_, oldest)) = over.then(|| all.pop_first()).flatten() {
            oldest.notify_one();
        }
        guest
    }
}

impl Guest {
    /// It has shown a token: nobody sends it away any more.
    pub fn is_known(&self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.number);
    }

    /// Comes back when it has to make room.
    pub async fn sent_away(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_known();
    }
}
