//! The engine in memory keeps the contract, and fails as it is told to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use descartes_bridge::contract::{Provider, clauses};
use descartes_bridge::memory::{LostMessage, MemoryServer};
use descartes_bridge::{
    Delivery, Engine, EngineError, EntryBody, FollowFrom, OfferTarget, SubjectEntry, subject,
};

struct InMemory {
    server: MemoryServer,
    folder: tempfile::TempDir,
}

impl Provider for InMemory {
    fn coordinator(&self) -> Arc<dyn Engine> {
        Arc::new(self.server.connect())
    }

    fn worker(&self, _name: &str) -> Arc<dyn Engine> {
        Arc::new(self.server.connect())
    }

    fn pass(&self, time: Duration) {
        self.server.advance(time);
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

#[test]
fn the_engine_in_memory_keeps_the_contract() {
    for (promise, clause) in clauses() {
        let provider = InMemory {
            server: MemoryServer::new(),
            folder: tempfile::tempdir().unwrap(),
        };
        if let Err(broken) = clause(&provider) {
            panic!("{promise}: {broken}");
        }
    }
}

fn entry(subject: &str, seq: u64, value: &[u8]) -> Delivery {
    Delivery::Entry(SubjectEntry {
        subject: subject.to_owned(),
        seq,
        body: EntryBody::Value(value.to_vec()),
    })
}

#[test]
fn a_party_that_was_away_goes_on_with_what_is_stored() {
    let server = MemoryServer::new();
    let (away, there) = (server.connect(), server.connect());
    let subject = subject::task("l", "t", 1);
    let seen = away
        .follow(&subject::tasks_of("l"), FollowFrom::Start)
        .unwrap();
    let changes = away.link_changes();
    away.disconnect();
    assert_eq!(away.get(&subject), Err(EngineError::NotConnected));
    for value in [b"1", b"2"] {
        there.put(&subject, None, None, value).unwrap();
    }
    server.advance(Duration::from_secs(5));
    assert!(seen.try_recv().is_err());
    away.reconnect();
    assert_eq!(seen.recv().unwrap(), entry(&subject, 2, b"2"));
    assert!(!changes.recv().unwrap().is_up() && changes.recv().unwrap().is_up());
    assert!(away.link().was_down_within(Duration::from_secs(1)));
    server.advance(Duration::from_secs(2));
    assert!(!away.link().was_down_within(Duration::from_secs(1)));
}

#[test]
fn a_lost_answer_leaves_the_value_and_a_lost_request_does_not() {
    let server = MemoryServer::new();
    let engine = server.connect();
    engine.lose_next(LostMessage::Request);
    engine.lose_next(LostMessage::Answer);
    let put = |value: &[u8]| engine.put("task.l.t.1", None, None, value);
    assert_eq!(put(b"1"), Err(EngineError::Timeout));
    assert_eq!(engine.get("task.l.t.1"), Ok(None));
    assert_eq!(put(b"2"), Err(EngineError::Timeout));
    assert_eq!(
        engine.get("task.l.t.1").unwrap().unwrap().value(),
        Some(b"2".as_slice())
    );
}

#[test]
fn an_emptied_disk_is_told_and_no_number_is_given_out_twice() {
    let server = MemoryServer::new();
    let engine = server.connect();
    let lane = OfferTarget::Worker { name: "w".into() };
    engine.put("task.l.t.1", None, None, b"1").unwrap();
    engine.offer(&lane, "id", b"order").unwrap();
    let seen = engine.follow("task.l.>", FollowFrom::Start).unwrap();
    assert_eq!(seen.recv().unwrap(), entry("task.l.t.1", 1, b"1"));
    server.lose_disk();
    assert_eq!(
        (engine.get("task.l.t.1"), server.open_offers()),
        (Ok(None), 0)
    );
    engine.put("task.l.t.1", Some(0), None, b"2").unwrap();
    assert_eq!(seen.recv().unwrap(), Delivery::Reset);
    assert_eq!(seen.recv().unwrap(), entry("task.l.t.1", 2, b"2"));
}

#[test]
fn held_deliveries_come_late_and_in_order() {
    let server = MemoryServer::new();
    let engine = server.connect();
    let seen = engine.follow("task.l.>", FollowFrom::Now).unwrap();
    engine.hold_deliveries();
    engine
        .put("task.l.a.1", None, Some(Duration::from_secs(60)), b"1")
        .unwrap();
    server.advance(Duration::from_secs(61));
    assert!(seen.try_recv().is_err());
    engine.release_deliveries();
    let Delivery::Entry(marker) = seen.recv().unwrap() else {
        panic!("a reset");
    };
    assert_eq!((marker.seq, marker.body), (2, EntryBody::Marker));
}
