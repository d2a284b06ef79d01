//! The children a scripted agent leaves, and the helpers that find and end them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use descartes_testkit::process::{self, Process};
use descartes_testkit::world::MARK;
use descartes_testkit::{World, eventually};
use nix::sys::signal::Signal;

const SOON: Duration = descartes_testkit::PATIENCE;

/// Starts the agent with this child and gives the agent's id and the processes it left.
fn with_child(world: &World, kind: &str) -> (std::process::Child, Vec<Process>) {
    let script = format!("spawn-child {kind} null pids\ntouch ready\nhang");
    let agent = world.agent_command(&script).spawn().unwrap();
    eventually("the agent is ready", SOON, || world.has("ready"));
    let pids = world.read("pids");
    (
        agent,
        pids.lines()
            .map(|pid| process::find(pid.parse().unwrap()).unwrap())
            .collect(),
    )
}

#[test]
fn every_kind_has_its_shape() {
    type Shape = fn(i32, &[Process]) -> bool;
    let shapes: [(&str, usize, Shape); 8] = [
        ("plain", 1, |agent, left| left[0].ppid == agent),
        ("grandchild", 2, |agent, left| {
            let child = left.iter().find(|one| one.ppid == agent).unwrap();
            left.iter().any(|one| one.ppid == child.pid)
        }),
        ("double-fork", 1, |agent, left| {
            left[0].ppid != agent && left[0].sid != left[0].pid
        }),
        ("setsid", 1, |agent, left| {
            left[0].ppid == agent && left[0].sid == left[0].pid
        }),
        ("setsid-double-fork", 1, |agent, left| {
            left[0].ppid != agent && left[0].sid != process::find(agent).unwrap().sid
        }),
        ("nohup", 1, |_, left| {
            survives(left[0].pid, &[Signal::SIGHUP])
        }),
        ("ignore-term", 1, |_, left| {
            survives(left[0].pid, &[Signal::SIGTERM, Signal::SIGINT])
        }),
        ("fork-bomb=20", 20, |_, _| true),
    ];
    for (kind, count, shape) in shapes {
        let world = World::new();
        let (mut agent, left) = with_child(&world, kind);
        assert_eq!(left.len(), count, "{kind}");
        assert!(
            shape(i32::try_from(agent.id()).unwrap(), &left),
            "{kind}: {left:#?}"
        );
        let ours = world.processes();
        assert!(
            left.iter().all(|one| ours.contains(one)),
            "{kind} is marked"
        );
        world.end_all();
        agent.wait().unwrap();
        world.assert_no_survivors();
    }
}

/// True when the process keeps the signals waiting instead of dying of them.
fn survives(pid: i32, signals: &[Signal]) -> bool {
    for signal in signals {
        process::send(pid, *signal);
    }
    eventually("the signals arrive", SOON, || match waiting(pid) {
        Some(mask) => signals
            .iter()
            .all(|signal| mask & (1 << (*signal as u32 - 1)) != 0),
        None => true,
    });
    process::is_alive(pid)
}

/// The signals that wait for a process; none when it is gone.
fn waiting(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("ShdPnd:"))?;
    process::find(pid)?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[test]
fn a_plain_child_dies_of_hangup_even_if_its_parent_handles_it() {
    let world = World::new();
    let script = "on-signal HUP - stay\nspawn-child plain null pids\ntouch ready\nhang";
    let mut agent = world.agent_command(script).spawn().unwrap();
    eventually("the agent is ready", SOON, || world.has("ready"));
    let child: i32 = world.read("pids").trim().parse().unwrap();
    process::send(child, Signal::SIGHUP);
    process::assert_gone(child, SOON);
    world.end_all();
    agent.wait().unwrap();
}

#[test]
fn a_child_holds_the_pipe_or_lets_it_go() {
    for (pipe, holds) in [("pipe", true), ("null", false)] {
        let world = World::new();
        let (reading, writing) = std::io::pipe().unwrap();
        let mut command = world.agent_command(&format!("spawn-child setsid {pipe} pids"));
        let mut agent = command
            .stdout(writing)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(command);
        agent.wait().unwrap();
        let mut fds = [nix::poll::PollFd::new(
            std::os::fd::AsFd::as_fd(&reading),
            nix::poll::PollFlags::POLLIN,
        )];
        nix::poll::poll(&mut fds, 0u16).unwrap();
        let ended = fds[0]
            .revents()
            .unwrap()
            .contains(nix::poll::PollFlags::POLLHUP);
        assert_eq!(ended, !holds, "{pipe}");
    }
}

#[test]
fn descendants_are_found_through_living_parents() {
    let world = World::new();
    let (mut agent, left) = with_child(&world, "grandchild");
    let found = process::descendants(i32::try_from(agent.id()).unwrap());
    assert!(left.iter().all(|one| found.contains(one)), "{found:#?}");
    world.end_all();
    agent.wait().unwrap();
}

#[test]
fn dropping_a_world_ends_its_processes_alone() {
    let (world, other) = (World::new(), World::new());
    let (mut agent, left) = with_child(&world, "setsid-double-fork");
    let (mut stranger, _) = with_child(&other, "plain");
    let mark = world.mark().to_owned();
    drop(world);
    agent.wait().unwrap();
    assert!(process::marked(MARK, &mark).is_empty());
    assert!(!process::is_alive(left[0].pid));
    assert_eq!(other.processes().len(), 2);
    other.end_all();
    stranger.wait().unwrap();
}

#[test]
fn survivors_fail_a_test_by_name() {
    let world = World::new();
    let (mut agent, _) = with_child(&world, "plain");
    let found = std::panic::catch_unwind(|| {
        process::assert_no_survivors(MARK, world.mark(), Duration::from_millis(20));
    });
    let message = *found.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("--child plain"), "{message}");
    world.end_all();
    agent.wait().unwrap();
}
