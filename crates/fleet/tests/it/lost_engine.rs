//! The engine dies, and comes back with or without its disk.

use std::time::Duration;

use descartes_bridge::message::BridgeParty;
use descartes_bridge::{Delivery, Engine, EngineError, FollowFrom, OfferTarget, subject};
use descartes_testkit::eventually;

use crate::started_engine::{StartedEngine, connect};

const ARRIVAL: Duration = Duration::from_secs(20);

#[test]
fn nothing_that_was_confirmed_is_lost_when_the_engine_is_killed() {
    let Some(engine) = StartedEngine::start("an engine that is killed") else {
        return;
    };
    let coordinator = engine.coordinator();
    let worker = connect(&engine.token("w1"), BridgeParty::Worker).unwrap();
    let task = subject::task("l", "t", 1);
    let seen = coordinator.follow("task.l.>", FollowFrom::Start).unwrap();
    let changes = worker.link_changes();
    let before = worker.put(&task, Some(0), None, b"1").unwrap();
    engine.kill();
    assert!(!changes.recv_timeout(ARRIVAL).unwrap().is_up());
    assert_eq!(
        worker.put(&task, None, None, b"x"),
        Err(EngineError::NotConnected)
    );
    engine.start_again(None, None);
    eventually("both are back", crate::started_engine::WAIT, || {
        worker.link().is_up() && coordinator.link().is_up()
    });
    let after = worker.put(&task, Some(before), None, b"2").unwrap();
    assert!(worker.link().was_down_within(Duration::from_secs(60)));
    for (seq, value) in [(before, b"1"), (after, b"2")] {
        match seen.recv_timeout(ARRIVAL).unwrap() {
            Delivery::Entry(entry) => {
                assert_eq!((entry.seq, entry.value()), (seq, Some(value.as_slice())));
            }
            Delivery::Reset => panic!("nothing was lost"),
        }
    }
}

#[test]
fn an_engine_without_its_disk_is_made_anew_and_told() {
    let Some(engine) = StartedEngine::start("an engine whose disk is emptied") else {
        return;
    };
    let coordinator = engine.coordinator();
    let worker = connect(&engine.token("w1"), BridgeParty::Worker).unwrap();
    let (task, lane) = (
        subject::task("l", "t", 1),
        OfferTarget::Worker { name: "w1".into() },
    );
    let seen = coordinator.follow("task.l.>", FollowFrom::Start).unwrap();
    let at_worker = worker.follow(&task, FollowFrom::Start).unwrap();
    let before = worker.put(&task, Some(0), None, b"before").unwrap();
    assert_eq!(
        worker.pull(std::slice::from_ref(&lane), 1, Duration::ZERO),
        Ok(Vec::new())
    );
    for followed in [&seen, &at_worker] {
        assert!(matches!(
            followed.recv_timeout(ARRIVAL),
            Ok(Delivery::Entry(_))
        ));
    }
    engine.kill();
    std::fs::remove_dir_all(engine.path().join("data")).unwrap();
    engine.start_again(None, None);
    eventually("both are back", crate::started_engine::WAIT, || {
        worker.link().is_up() && coordinator.link().is_up()
    });
    let after = worker.put(&task, Some(0), None, b"after").unwrap();
    // Who slept through all this knows a number that never fits again.
    assert!(after > before, "{after} after {before}");
    for followed in [&seen, &at_worker] {
        assert_eq!(followed.recv_timeout(ARRIVAL), Ok(Delivery::Reset));
        match followed.recv_timeout(ARRIVAL).unwrap() {
            Delivery::Entry(entry) => assert_eq!(entry.value(), Some(b"after".as_slice())),
            Delivery::Reset => panic!("told twice"),
        }
    }
    coordinator.offer(&lane, "id", b"order").unwrap();
    let offers = worker.pull(&[lane], 1, ARRIVAL).unwrap();
    assert_eq!(offers.len(), 1);
}
