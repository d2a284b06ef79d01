//! Signals to a loop in the foreground.

use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{events, start_command, state};

const SOON: Duration = Duration::from_secs(10);

/// A loop whose agent has begun.
fn running(world: &World, script: &str) -> Child {
    let script = format!("touch up\n{script}");
    let mut command = start_command(world, &script, &["--kill-grace", "200ms"]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the agent", SOON, || world.has("up"));
    child
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[track_caller]
fn code(child: &mut Child) -> i32 {
    child.wait().unwrap().code().expect("an exit code")
}

#[test]
fn ctrl_c_once_finishes_the_iteration_and_starts_nothing_new() {
    let world = World::new();
    let mut child = running(&world, "wait-file go\nprint done with this one");
    send(&child, Signal::SIGINT);
    eventually("the wish", SOON, || {
        !events(&world, "stop_requested").is_empty()
    });
    world.write("go", "");
    assert_eq!(code(&mut child), 130);
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "exit");
    assert_eq!(events(&world, "run_started").len(), 1);
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    world.assert_no_survivors();
}

#[test]
fn ctrl_c_twice_ends_the_agent_and_three_times_kills_it() {
    for (presses, script) in [(2, "hang"), (3, "ignore INT\nignore TERM\nhang")] {
        let world = World::new();
        let mut child = running(&world, script);
        for press in 1..=presses {
            send(&child, Signal::SIGINT);
            eventually("the wish", SOON, || {
                !events(&world, "stop_requested").is_empty() || press > 1
            });
            std::thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(code(&mut child), 130);
        assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "cancel");
        world.assert_no_survivors();
    }
}

#[test]
fn sigterm_ends_the_loop_with_143_and_sighup_leaves_it_to_be_resumed() {
    let world = World::new();
    let mut child = running(&world, "hang");
    send(&child, Signal::SIGTERM);
    assert_eq!(code(&mut child), 143);
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    let world = World::new();
    let mut child = running(&world, "hang");
    send(&child, Signal::SIGHUP);
    assert_eq!(code(&mut child), 129);
    assert_eq!(state(&world)["exit_reason"]["type"], "running");
    assert_eq!(state(&world)["completed"], false);
    assert_eq!(events(&world, "interrupted").len(), 1);
    world.assert_no_survivors();
}

#[test]
fn a_reader_that_is_stuck_or_gone_does_not_hold_the_loop() {
    for gone in [false, true] {
        let world = World::new();
        let script = "flood 3MB lines\ntouch flooded\n@1 print hm\n@2 promise";
        let mut command = start_command(&world, script, &[]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let reader = child.stdout.take().filter(|_| !gone);
        eventually("the end of the loop", SOON, || {
            world.has(".descartes/loop-state.json") && state(&world)["completed"] == true
        });
        if !gone {
            // The view waits for its reader, but not against a signal.
            send(&child, Signal::SIGTERM);
        }
        assert_eq!(code(&mut child), 0, "gone: {gone}");
        drop(reader);
    }
}
