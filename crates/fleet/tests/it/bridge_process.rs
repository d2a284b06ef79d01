//! The bridge ends with whom it serves.

use std::process::{Command, Stdio};

use descartes_bridge::message::BridgeParty;
use descartes_bridge::{Engine, EngineError};
use descartes_testkit::eventually;

use crate::started_engine::{StartedEngine, connect, fleet, free_port};

fn alive(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|state| !state.contains(") Z"))
}

#[test]
fn a_bridge_ends_when_its_client_is_dropped() {
    let Some(engine) = StartedEngine::start("the end of a bridge") else {
        return;
    };
    let client = engine.coordinator();
    let pid = client.bridge_pid();
    assert!(alive(pid));
    let seen = client
        .follow("task.>", descartes_bridge::FollowFrom::Start)
        .unwrap();
    drop(client);
    assert!(!alive(pid));
    assert!(seen.recv().is_err());
}

#[test]
fn a_bridge_ends_when_its_input_is_closed() {
    let program = fleet();
    let script = format!("'{}' bridge & echo $!; wait", program.path().display());
    let mut shell = Command::new("sh")
        // The shell's child reads the pipe that is ours: it ends with our side alone.
        .args([
            "-c",
            &format!("exec 3<&0; {}", script.replace("bridge", "bridge <&3")),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = shell.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let bridge: u32 = line.trim().parse().unwrap();
    eventually("the bridge runs", crate::started_engine::WAIT, || {
        alive(bridge)
    });
    drop(shell.stdin.take());
    eventually("the bridge is gone", crate::started_engine::WAIT, || {
        !alive(bridge)
    });
    shell.wait().unwrap();
}

#[test]
fn without_an_engine_the_error_says_what_to_type() {
    let url = format!("nats://127.0.0.1:{}", free_port());
    let refused = connect(&url.parse().unwrap(), BridgeParty::Worker);
    let Err(EngineError::Other(message)) = refused.map(drop) else {
        panic!("no error");
    };
    assert!(message.contains("descartes engine start"), "{message}");
    assert!(message.contains(&url), "{message}");
}
