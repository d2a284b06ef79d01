//! Signals to the host arrive as calls.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn host(before: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let script = format!("{before} exec \"$0\" signals");
    let mut command = Command::new("sh");
    let mut host = command
        .args(["-c", &script, common::HOST])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    (host, lines)
}

#[test]
fn each_signal_is_a_call_and_the_process_lives_on() {
    let (mut host, mut lines) = host("");
    for (signal, name) in [
        (Signal::SIGINT, "Interrupt"),
        (Signal::SIGINT, "Interrupt"),
        (Signal::SIGHUP, "Hangup"),
        (Signal::SIGWINCH, "Resize"),
        (Signal::SIGTERM, "Terminate"),
    ] {
        kill(Pid::from_raw(host.id().cast_signed()), signal).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), name);
    }
    assert_eq!(lines.next().unwrap().unwrap(), "end");
    assert!(host.wait().unwrap().success());
}

#[test]
fn what_the_process_was_started_to_ignore_stays_ignored() {
    let (mut host, mut lines) = host("trap '' HUP;");
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        kill(Pid::from_raw(host.id().cast_signed()), signal).unwrap();
    }
    assert_eq!(lines.next().unwrap().unwrap(), "Terminate");
    assert!(host.wait().unwrap().success());
}
