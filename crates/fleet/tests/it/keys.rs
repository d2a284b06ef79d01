//! What keys allow, and what is said to who has a wrong one.

use std::time::Duration;

use descartes_bridge::engine_command::{EngineCommand, EngineReport};
use descartes_bridge::message::BridgeParty;
use descartes_bridge::{Engine, EngineError, FollowFrom, OfferTarget, subject};
use descartes_testkit::eventually;

use crate::started_engine::{StartedEngine, connect, free_port, run};

fn refused<T: std::fmt::Debug>(what: &str, result: Result<T, EngineError>) {
    assert!(
        matches!(result, Err(EngineError::Refused(_))),
        "{what}: {result:?}"
    );
}

#[test]
fn a_workers_key_is_refused_what_is_not_its_own() {
    let Some(engine) = StartedEngine::start("a worker's rights") else {
        return;
    };
    let coordinator = engine.coordinator();
    let worker = connect(&engine.token("w1"), BridgeParty::Worker).unwrap();
    let own = subject::events("l", "w1", "c");
    worker.append_event(&own, "c-1", b"mine").unwrap();
    let other = subject::events("l", "w2", "c");
    refused("another's events", worker.append_event(&other, "c-1", b"x"));
    let lane = OfferTarget::Pool {
        pool: "any".into(),
        agent: "claude".into(),
    };
    refused("an offer", worker.offer(&lane, "id", b"x"));
    refused("deleting", worker.clear_offers(&lane));
    refused("deleting files", worker.delete_object("x"));
    let commands = subject::control("l", "w2", "c");
    refused("another's commands", worker.serve(&commands).map(drop));
    refused("everything", worker.serve(">").map(drop));
    refused(
        "to speak for another",
        worker.announce("w2", None, b"x", Duration::from_secs(5)),
    );
    refused(
        "to command",
        worker.request(&commands, b"x", Duration::from_secs(2)),
    );
    let to_other = OfferTarget::Worker { name: "w2".into() };
    refused(
        "another's offers",
        worker.pull(&[to_other], 1, Duration::ZERO),
    );
    refused(
        "the events of all",
        worker.follow("ev.>", FollowFrom::Start).map(drop),
    );
    // It was refused, and not only said to be.
    assert_eq!(coordinator.pull(&[lane], 5, Duration::ZERO), Ok(Vec::new()));
}

#[test]
fn a_revoked_key_is_cut_off_and_does_not_come_back() {
    let Some(engine) = StartedEngine::start("revoking a key") else {
        return;
    };
    let url = engine.token("w1");
    let kept = engine.token("w2");
    let worker = connect(&url, BridgeParty::Worker).unwrap();
    let other = connect(&kept, BridgeParty::Worker).unwrap();
    let folder = engine.path();
    let name = "w1".to_owned();
    let report = run(&EngineCommand::Revoke {
        folder: folder.clone(),
        name: name.clone(),
    });
    assert!(matches!(
        report,
        EngineReport::Revoked { running: true, .. }
    ));
    eventually("it is cut off", crate::started_engine::WAIT, || {
        !worker.link().is_up()
    });
    // Told as what it is, once it was refused again and again.
    let revoked = Err(EngineError::KeyRevoked("w1".to_owned()));
    eventually("it is told why", crate::started_engine::WAIT, || {
        worker.get("task.l.t.1") == revoked
    });
    let again = connect(&url, BridgeParty::Worker).map(drop).unwrap_err();
    assert!(
        again.to_string().contains("does not accept this key"),
        "{again}"
    );
    assert!(again.to_string().contains("descartes engine join-token"));
    assert_eq!(other.get("task.l.t.1"), Ok(None));
    match run(&EngineCommand::Revoke { folder, name }) {
        EngineReport::Failed { message, .. } => assert!(message.contains("these have one: w2")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tls_with_another_certificate_or_without_a_key_is_refused() {
    let listen = format!("0.0.0.0:{}", free_port());
    let started = StartedEngine::start_on("TLS", &listen, Some("127.0.0.1"));
    let Some(engine) = started else {
        return;
    };
    let url = engine.token("w1");
    assert!(url.to_string().contains("nats+tls://") && url.to_string().contains("pin="));
    let worker = connect(&url, BridgeParty::Worker).unwrap();
    assert_eq!(worker.get("task.l.t.1"), Ok(None));
    let mut wrong = url.clone();
    wrong.transport = descartes_bridge::Transport::PinnedTls("0".repeat(64));
    let error = connect(&wrong, BridgeParty::Worker).map(drop).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let mut keyless = url.clone();
    keyless.key = None;
    let error = connect(&keyless, BridgeParty::Worker)
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("wants a key"), "{error}");
    let mut plain = url;
    plain.transport = descartes_bridge::Transport::Plain;
    assert!(connect(&plain, BridgeParty::Worker).is_err());
}

#[test]
fn a_check_tells_what_the_engine_can_do_within_seconds() {
    let Some(engine) = StartedEngine::start("engine check") else {
        return;
    };
    for url in [engine.coordinator_url(), engine.token("w1")] {
        let begun = std::time::Instant::now();
        let report = run(&EngineCommand::Check {
            engine: url.with_key(),
        });
        let EngineReport::Checked {
            write_us,
            marker_ms,
            address,
            ..
        } = report
        else {
            panic!("{report:?}");
        };
        assert!(
            write_us > 0 && (900..3000).contains(&marker_ms),
            "{write_us} {marker_ms}"
        );
        assert!(!address.contains("SU"), "{address}");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
