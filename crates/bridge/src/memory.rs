//! An engine in memory, for tests: a clock that is set by hand, parties that lose their connection,
//! requests and answers that get lost, a disk that is emptied.

mod server_state;

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::{
    Delivery, Engine, EngineError, FollowFrom, LinkStatus, OfferTarget, PulledOffer, ServedRequest,
    SubjectEntry,
};
use crate::subject;
pub use server_state::LostMessage;
use server_state::{PartyId, ServerState, Subscriber};

/// The server: every party that connects shares what is stored.
#[derive(Clone, Default)]
pub struct MemoryServer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<ServerState>,
    offered: Condvar,
}

/// One party's side.
#[derive(Clone)]
pub struct MemoryEngine {
    server: MemoryServer,
    party: PartyId,
}

impl MemoryServer {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A connection of its own.
    #[must_use]
    pub fn connect(&self) -> MemoryEngine {
        let party = self.lock().add_party();
        MemoryEngine {
            server: self.clone(),
            party,
        }
    }

    /// Lets time pass: values expire in their order and leave markers, offers that nobody acknowledged
    /// are handed out again.
    pub fn advance(&self, by: Duration) {
        self.lock().advance(by);
        self.0.offered.notify_all();
    }

    /// The time since the server was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.lock().now()
    }

    /// Everything that was stored is gone, as when a disk is emptied. Whoever follows is told.
    pub fn lose_disk(&self) {
        self.lock().lose_disk();
    }

    /// How many offers are in all queues, those included that are handed out and not acknowledged.
    #[must_use]
    pub fn open_offers(&self) -> usize {
        self.lock().open_offers()
    }

    /// The names of all files that are stored.
    #[must_use]
    pub fn object_names(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryEngine {
    /// Cuts this party off: its calls fail, nothing is delivered to it, nobody reaches it.
    pub fn disconnect(&self) {
        self.server.lock().set_link(self.party, false);
    }

    /// The connection is back: what it follows goes on where it stopped.
    pub fn reconnect(&self) {
        self.server.lock().set_link(self.party, true);
    }

    /// What happens to its next writes, in this order.
    pub fn lose_next(&self, lost: LostMessage) {
        self.server.lock().lose_next(self.party, lost);
    }

    /// What it follows is kept back until [`MemoryEngine::release_deliveries`].
    pub fn hold_deliveries(&self) {
        self.server.lock().hold(self.party, true);
    }

    pub fn release_deliveries(&self) {
        self.server.lock().hold(self.party, false);
    }

    /// A write that may get lost on the way there or back.
    fn write<T>(
        &self,
        act: impl FnOnce(&mut ServerState) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut state = self.server.lock();
        state.must_be_up(self.party)?;
        let lost = state.next_lost(self.party);
        if lost == Some(LostMessage::Request) {
            return Err(EngineError::Timeout);
        }
        let done = act(&mut state);
        drop(state);
        self.server.0.offered.notify_all();
        match lost {
            Some(_) => Err(EngineError::Timeout),
            None => done,
        }
    }

    fn read<T>(
        &self,
        act: impl FnOnce(&mut ServerState) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut state = self.server.lock();
        state.must_be_up(self.party)?;
        act(&mut state)
    }
}

impl Engine for MemoryEngine {
    fn put(
        &self,
        subject: &str,
        expect: Option<u64>,
        ttl: Option<Duration>,
        value: &[u8],
    ) -> Result<u64, EngineError> {
        self.write(|state| state.put(subject, expect, ttl, value))
    }

    fn get(&self, subject: &str) -> Result<Option<SubjectEntry>, EngineError> {
        self.read(|state| Ok(state.get(subject)))
    }

    fn follow(&self, filter: &str, from: FollowFrom) -> Result<Receiver<Delivery>, EngineError> {
        self.read(|state| {
            let (sender, receiver) = channel();
            state.follow(self.party, filter, from, sender);
            Ok(receiver)
        })
    }

    fn offer(&self, to: &OfferTarget, message_id: &str, value: &[u8]) -> Result<(), EngineError> {
        self.write(|state| {
            state.offer(to, message_id, value);
            Ok(())
        })
    }

    /// `wait` is by the real clock: another thread may put an offer meanwhile.
    fn pull(
        &self,
        from: &[OfferTarget],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<PulledOffer>, EngineError> {
        let until = Instant::now() + wait;
        let mut state = self.server.lock();
        loop {
            state.must_be_up(self.party)?;
            let offers = state.pull(from, count);
            let left = until.saturating_duration_since(Instant::now());
            if !offers.is_empty() || left.is_zero() {
                return Ok(offers);
            }
            let woken = self.server.0.offered.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn ack(&self, token: &str) -> Result<(), EngineError> {
        self.write(|state| state.ack(token))
    }

    fn give_back(&self, token: &str) -> Result<(), EngineError> {
        self.write(|state| {
            state.give_back(token);
            Ok(())
        })?;
        self.server.0.offered.notify_all();
        Ok(())
    }

    fn clear_offers(&self, of: &OfferTarget) -> Result<(), EngineError> {
        self.write(|state| {
            state.clear_offers(of);
            Ok(())
        })
    }

    fn append_event(
        &self,
        subject: &str,
        message_id: &str,
        value: &[u8],
    ) -> Result<u64, EngineError> {
        self.write(|state| Ok(state.append_event(subject, message_id, value)))
    }

    /// `timeout` is by the real clock.
    fn request(
        &self,
        subject: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, EngineError> {
        let (sender, receiver) = channel();
        self.read(|state| state.request(subject, body, sender))?;
        receiver.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => EngineError::Timeout,
            RecvTimeoutError::Disconnected => EngineError::NoResponders,
        })
    }

    fn serve(&self, subject: &str) -> Result<Receiver<ServedRequest>, EngineError> {
        self.read(|state| {
            let (sender, receiver) = channel();
            state.serve(Subscriber {
                party: self.party,
                filter: subject.to_owned(),
                sender,
            });
            Ok(receiver)
        })
    }

    fn answer(&self, token: &str, body: &[u8]) -> Result<(), EngineError> {
        self.read(|state| {
            state.answer(token, body);
            Ok(())
        })
    }

    fn put_object(&self, name: &str, file: &Path) -> Result<(), EngineError> {
        let content = std::fs::read(file).map_err(|error| at(file, &error))?;
        self.write(|state| {
            state.objects.insert(name.to_owned(), content);
            Ok(())
        })
    }

    fn get_object(&self, name: &str, file: &Path) -> Result<(), EngineError> {
        let content = self.read(|state| match state.objects.get(name) {
            Some(content) => Ok(content.clone()),
            None => Err(EngineError::NoObject(name.to_owned())),
        })?;
        std::fs::write(file, content).map_err(|error| at(file, &error))
    }

    fn delete_object(&self, name: &str) -> Result<(), EngineError> {
        self.write(|state| {
            state.objects.remove(name);
            Ok(())
        })
    }

    fn announce(
        &self,
        worker: &str,
        expect: Option<u64>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<u64, EngineError> {
        self.put(&subject::worker(worker), expect, Some(ttl), value)
    }

    fn workers(&self) -> Result<Vec<(String, Vec<u8>)>, EngineError> {
        self.read(|state| Ok(state.workers()))
    }

    fn link(&self) -> LinkStatus {
        self.server.lock().link(self.party)
    }

    fn link_changes(&self) -> Receiver<LinkStatus> {
        let (sender, receiver) = channel();
        self.server.lock().listen(self.party, sender);
        receiver
    }
}

fn at(file: &Path, error: &std::io::Error) -> EngineError {
    EngineError::Other(format!("{}: {error}", file.display()))
}
