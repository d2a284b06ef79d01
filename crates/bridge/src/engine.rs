//! What a coordinator and its workers ask of the engine.

use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::payload;
use crate::url::COORDINATOR;

/// The engine, from one party's side. Calls block; each may be made from any thread.
///
/// Subjects are made by [`crate::subject`]. What is stored under a subject is decided by its first word:
/// `task.` and `worker.` keep the last value, `ev.` keeps every one.
pub trait Engine: Send + Sync {
    /// Stores a value under a subject that keeps its last value, and returns its sequence number.
    ///
    /// `expect` is the sequence number of what must be stored there now; `Some(0)`: nothing, not even
    /// a marker. Otherwise the value is refused with [`EngineError::Conflict`]. A value with `ttl`
    /// (whole seconds, at least one) leaves a marker behind when that time is over.
    ///
    /// After [`EngineError::Timeout`] the value may have been taken: [`Engine::get`] tells.
    fn put(
        &self,
        subject: &str,
        expect: Option<u64>,
        ttl: Option<Duration>,
        value: &[u8],
    ) -> Result<u64, EngineError>;

    /// What is stored under a subject now, from the server that decides about writes.
    fn get(&self, subject: &str) -> Result<Option<SubjectEntry>, EngineError>;

    /// Values and markers under all subjects of a filter (`task.L.>`, `ev.L.>`), in the order of their
    /// sequence numbers. It goes on by itself after a lost connection, behind the last one that was
    /// delivered. Of a subject that keeps its last value, those that were replaced meanwhile are skipped.
    /// It ends when the receiver is dropped.
    fn follow(&self, filter: &str, from: FollowFrom) -> Result<Receiver<Delivery>, EngineError>;

    /// Puts an offer into a queue. The same `message_id` again within an hour is no second offer.
    fn offer(&self, to: &OfferTarget, message_id: &str, value: &[u8]) -> Result<(), EngineError>;

    /// Takes at most `count` offers from these queues, and waits up to `wait` for the first one.
    /// An offer that is not acknowledged within ten seconds is handed out again: taking one is no lease.
    fn pull(
        &self,
        from: &[OfferTarget],
        count: usize,
        wait: Duration,
    ) -> Result<Vec<PulledOffer>, EngineError>;

    /// Takes a pulled offer out of its queue, and waits until the engine has confirmed that.
    fn ack(&self, token: &str) -> Result<(), EngineError>;

    /// Puts a pulled offer back into its queue: it is handed out again at once, to whoever waits.
    fn give_back(&self, token: &str) -> Result<(), EngineError>;

    /// Takes back every offer that is still in a queue and not handed out.
    fn clear_offers(&self, of: &OfferTarget) -> Result<(), EngineError>;

    /// Appends an event. The same `message_id` again within ten minutes is no second event.
    fn append_event(
        &self,
        subject: &str,
        message_id: &str,
        value: &[u8],
    ) -> Result<u64, EngineError>;

    /// Asks who serves a subject, and waits for the answer.
    fn request(
        &self,
        subject: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, EngineError>;

    /// Serves a subject (or a filter) until the receiver is dropped.
    fn serve(&self, subject: &str) -> Result<Receiver<ServedRequest>, EngineError>;

    /// Answers a request.
    fn answer(&self, token: &str, body: &[u8]) -> Result<(), EngineError>;

    /// Stores a file under a name, in place of an earlier one.
    fn put_object(&self, name: &str, file: &Path) -> Result<(), EngineError>;

    /// Writes a stored file to a path, which gets its name only when all of it is there.
    fn get_object(&self, name: &str, file: &Path) -> Result<(), EngineError>;

    /// Removes a stored file; one that is not there is no error.
    fn delete_object(&self, name: &str) -> Result<(), EngineError>;

    /// Says that a worker is there, and returns the number of that. Forgotten after `ttl`. With `expect` it is
    /// refused with [`EngineError::Conflict`] where anything came after that number.
    fn announce(
        &self,
        worker: &str,
        expect: Option<u64>,
        value: &[u8],
        ttl: Duration,
    ) -> Result<u64, EngineError>;

    /// The workers that are there, by name, with what they last announced.
    fn workers(&self) -> Result<Vec<(String, Vec<u8>)>, EngineError>;

    /// Whether this party is connected.
    fn link(&self) -> LinkStatus;

    /// Every change of [`Engine::link`] from now on.
    fn link_changes(&self) -> Receiver<LinkStatus>;
}

/// Why the engine did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", content = "detail", rename_all = "snake_case")]
pub enum EngineError {
    /// Something else is stored than was expected.
    #[error("something else is stored there")]
    Conflict,
    /// There is no connection; nothing was sent.
    #[error("not connected to the engine")]
    NotConnected,
    /// No answer in time; it may have been done.
    #[error("the engine did not answer in time")]
    Timeout,
    /// This party's key does not allow it.
    #[error("the key does not allow it: {0}")]
    Refused(String),
    /// The engine does not accept the key of this party any more.
    #[error("the key of {name} was revoked: {hint}", name = .0, hint = other_key(.0))]
    KeyRevoked(String),
    /// Nobody serves the subject.
    #[error("nobody is there to answer")]
    NoResponders,
    /// There is no object of this name.
    #[error("the engine has no object `{0}`")]
    NoObject(String),
    /// The program that speaks to the engine is gone.
    #[error("descartes-fleet has ended: {0}")]
    BridgeEnded(String),
    #[error("{0}")]
    Other(String),
}

impl EngineError {
    /// Whether the same call may succeed later, without anything being changed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::Timeout | Self::NoResponders
        )
    }
}

/// What is stored under a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectEntry {
    pub subject: String,
    pub seq: u64,
    pub body: EntryBody,
}

impl SubjectEntry {
    /// The value, where it is none that ran out.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match &self.body {
            EntryBody::Value(value) => Some(value),
            EntryBody::Marker => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryBody {
    Value(#[serde(with = "payload")] Vec<u8>),
    /// The value's time ran out, or it was deleted.
    Marker,
}

/// Where [`Engine::follow`] begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowFrom {
    /// With all that is stored.
    Start,
    /// With this sequence number, or the next one that is stored.
    Sequence(u64),
    /// With what comes from now on.
    Now,
}

/// What [`Engine::follow`] delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    Entry(SubjectEntry),
    /// The engine lost what it had stored; all that is stored since follows. Sequence numbers of tasks are
    /// larger than all before, those of events begin anew.
    Reset,
}

/// A queue of offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferTarget {
    /// Any worker of a pool that serves an agent.
    Pool { pool: String, agent: String },
    /// One worker alone.
    Worker { name: String },
}

/// An offer that was taken from its queue for ten seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PulledOffer {
    /// For [`Engine::ack`].
    pub token: String,
    pub target: OfferTarget,
    #[serde(with = "payload")]
    pub value: Vec<u8>,
}

/// A request that waits for [`Engine::answer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedRequest {
    /// For [`Engine::answer`].
    pub token: String,
    pub subject: String,
    #[serde(with = "payload")]
    pub body: Vec<u8>,
}

fn other_key(name: &str) -> String {
    match name {
        COORDINATOR => {
            "the new one is in engine/coordinator.url of the state folder where the engine runs"
                .to_owned()
        }
        worker => format!("ask for a new one: descartes engine join-token {worker}"),
    }
}

/// This party's connection. Durations are by a clock that nobody sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkStatus {
    Up {
        since: Duration,
        /// How long ago the last interruption ended, where there was one.
        last_down: Option<Duration>,
    },
    Down {
        since: Duration,
    },
}

impl LinkStatus {
    #[must_use]
    pub fn is_up(self) -> bool {
        matches!(self, Self::Up { .. })
    }

    /// Whether it was down at some moment of the last `period`.
    #[must_use]
    pub fn was_down_within(self, period: Duration) -> bool {
        match self {
            Self::Down { .. } => true,
            Self::Up { last_down, .. } => last_down.is_some_and(|ago| ago <= period),
        }
    }
}
