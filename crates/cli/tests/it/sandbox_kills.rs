//! What holds without a sandbox holds in one: ends, grace, orphans, output, detection.

use std::time::Duration;

use descartes_testkit::World;
use descartes_testkit::process;
use descartes_testkit::wait::eventually;
use nix::sys::signal::Signal;

use crate::common::{events, loop_dir, state};
use crate::sandbox::{has_bwrap, world};
use crate::task_common::run;

const SOON: Duration = descartes_testkit::PATIENCE;
const START: [&str; 8] = [
    "loop",
    "start",
    "--command",
    "agent",
    "--prompt",
    "go",
    "--sandbox",
    "workspace",
];
/// Leaves children that know how to get away from their parents, and never ends.
const STAYS: &str = "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 600' &)
     (setsid setsid sleep 600 &)
     echo ready > ready.txt; while :; do sleep 0.1; done";

fn pids(world: &World) -> (i32, i32) {
    let guard = events(world, "run_started")[0]["guard_pid"].as_i64();
    let told = run(world, &["loop", "status", "--json"]).stdout();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let host = told["pid"].as_i64();
    let pid = |pid: Option<i64>| i32::try_from(pid.unwrap()).unwrap();
    (pid(host), pid(guard))
}

#[test]
fn whoever_is_killed_nothing_of_the_agent_survives() {
    if !has_bwrap() {
        return;
    }
    for whom in ["host", "guard", "both at once"] {
        let world = world(STAYS);
        run(&world, &[&START[..], &["--detach", "-m", "1"]].concat()).assert_code(0);
        eventually("the agent works", SOON, || world.has("ready.txt"));
        let (host, guard) = pids(&world);
        if whom != "guard" {
            // A stopped host cannot answer the death of its guard.
            process::stop(host);
        }
        if whom != "host" {
            process::send(guard, Signal::SIGKILL);
        }
        if whom != "guard" {
            process::send(host, Signal::SIGKILL);
        }
        eventually(&format!("nothing is left: {whom}"), SOON, || {
            world.processes().is_empty()
        });
    }
}

#[test]
fn an_agent_that_ignores_the_end_is_killed_after_its_grace() {
    if !has_bwrap() {
        return;
    }
    let world = world(&format!("trap '' TERM INT HUP\n{STAYS}"));
    let limits = ["--timeout", "2s", "--kill-grace", "1s", "-m", "1"];
    run(&world, &[&START[..], &limits].concat()).assert_code(2);
    assert!(world.has("ready.txt"));
    world.assert_no_survivors();
}

#[test]
fn an_agent_that_ends_leaves_no_orphans_and_all_of_its_output_is_kept() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "(setsid sleep 600 &)
         i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i+1)); done
         echo 'to standard error' >&2; echo COMPLETE",
    );
    run(&world, &START).assert_code(0);
    world.assert_no_survivors();
    let log = |name: &str| {
        let file = loop_dir(&world).join("runs/0001").join(name);
        std::fs::read_to_string(file).unwrap()
    };
    let printed = log("stdout.log");
    assert_eq!(
        printed
            .lines()
            .filter(|line| line.starts_with("line "))
            .count(),
        20_000
    );
    assert!(printed.ends_with("COMPLETE\n"));
    assert_eq!(log("stderr.log"), "to standard error\n");
}

#[test]
fn exit_codes_promises_and_gates_count_as_without_one() {
    if !has_bwrap() {
        return;
    }
    for (script, flags, code, reason) in [
        ("exit 3", &["--max-failures", "1"][..], 7, "agent_failed"),
        ("kill -9 $$", &["--max-failures", "1"], 7, "agent_failed"),
        (
            "echo I am not COMPLETE yet",
            &["-m", "1"],
            2,
            "max_iterations_reached",
        ),
        (
            "echo COMPLETE",
            &["--verify", "false", "-m", "1"],
            2,
            "max_iterations_reached",
        ),
        (
            "echo COMPLETE",
            &["--verify", "true"],
            0,
            "completion_promise_detected",
        ),
    ] {
        let world = world(script);
        let ended = run(&world, &[&START[..], flags].concat());
        ended.assert_code(code);
        assert_eq!(state(&world)["exit_reason"]["type"], reason, "{script}");
        world.assert_no_survivors();
    }
}
