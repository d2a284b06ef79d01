//! A tree whose lease has ended stands still, whatever its host does, until the lease is renewed.
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use common::{LONG, Watched, sh};
use descartes_proc::{BootTime, Ending, Exit, LeaseClock, RunClock, TreeLease};

/// One process in the agent's own session and one in another; both talk all the time.
const TALKERS: &str = "setsid sh -c 'while :; do echo a; sleep 0.02; done' &
    while :; do echo b; sleep 0.02; done";

/// Longer than any pause of the talkers.
const SILENCE: Duration = Duration::from_millis(700);

fn lease(left: Duration) -> TreeLease {
    TreeLease {
        until: BootTime::now() + left,
        kill_after: Duration::from_secs(1800),
    }
}

/// Waits until nothing is said any more.
fn falls_silent(watched: &Watched) {
    let begun = Instant::now();
    loop {
        match watched.output.recv_timeout(SILENCE) {
            Err(RecvTimeoutError::Timeout) => return,
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(begun.elapsed() < LONG, "it goes on talking"),
        }
    }
}

fn hears(watched: &Watched, words: &[&str]) {
    let mut heard = String::new();
    while !words.iter().all(|word| heard.contains(word)) {
        let bytes = watched.output.recv_timeout(LONG);
        heard.push_str(&String::from_utf8_lossy(&bytes.unwrap_or_default()));
    }
}

#[test]
fn a_tree_stands_still_past_its_lease_and_goes_on_when_it_is_renewed() {
    let mut watched = Watched::guarded();
    watched.supervisor.set_lease(lease(LONG));
    watched.start(1, &sh(TALKERS));
    hears(&watched, &["a", "b"]);
    for _ in 0..2 {
        watched
            .supervisor
            .set_lease(lease(Duration::from_millis(200)));
        // From here on nobody tells the guard anything: it stops the tree by itself.
        falls_silent(&watched);
        watched.supervisor.set_lease(lease(LONG));
        hears(&watched, &["a", "b"]);
    }
    watched.supervisor.terminate(Ending::Kill);
    assert_eq!(watched.end(1).0, Exit::Signal(9));
}

#[test]
fn an_agent_that_is_started_past_the_lease_does_not_get_to_work() {
    let mut watched = Watched::guarded();
    watched.supervisor.set_lease(lease(Duration::ZERO));
    watched.start(1, &sh("sleep 0.3; echo worked"));
    falls_silent(&watched);
    watched.supervisor.terminate(Ending::Kill);
    watched.end(1);
    assert!(!watched.collect().0.text().contains("worked"));
}

#[test]
fn a_tree_that_stood_still_for_too_long_is_killed() {
    let mut watched = Watched::guarded();
    watched.supervisor.set_lease(TreeLease {
        until: BootTime::now() + Duration::from_millis(100),
        kill_after: Duration::from_millis(300),
    });
    watched.start(1, &sh(TALKERS));
    assert_eq!(watched.end(1).0, Exit::Signal(9));
}

#[test]
fn a_tree_past_its_lease_is_not_woken_to_be_ended() {
    let mut watched = Watched::guarded();
    watched
        .supervisor
        .set_lease(lease(Duration::from_millis(200)));
    watched.start(
        1,
        &sh("trap 'echo woken; exit 0' TERM; while :; do echo a; sleep 0.02; done"),
    );
    hears(&watched, &["a"]);
    falls_silent(&watched);
    watched.supervisor.terminate(Ending::Ask { grace: LONG });
    assert_eq!(watched.end(1).0, Exit::Signal(9));
    assert!(!watched.collect().0.text().contains("woken"));
}

#[test]
fn time_stands_still_with_the_tree() {
    let leases = LeaseClock::default();
    let clock = RunClock::start(&leases);
    leases.renew(lease(Duration::ZERO));
    let stood = clock.elapsed();
    std::thread::sleep(Duration::from_millis(30));
    assert!(leases.is_frozen() && clock.elapsed() - stood < Duration::from_millis(5));
    leases.renew(lease(LONG));
    std::thread::sleep(Duration::from_millis(30));
    assert!(!leases.is_frozen());
    assert!(clock.elapsed() - stood >= Duration::from_millis(30));
    assert!(leases.frozen() >= Duration::from_millis(30));
}

/// All its processes are stopped and its clock moves on, as in suspend; then they go on.
#[cfg(feature = "faults")]
#[test]
fn a_machine_that_slept_for_three_leases_wakes_up_with_its_agents_standing_still() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let state_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        rest.and_then(|rest| rest.chars().next())
    };
    let are_stopped = |pid: Pid| {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < LONG, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let [slept, stamps] = ["slept", "stamps"].map(|name| dir.path().join(name));
        std::fs::write(&slept, "0").unwrap();
        let script = format!(
            "echo $$; while :; do echo >> {}; sleep 0.01; done",
            stamps.display()
        );
        let mut host = Command::new(common::HOST);
        host.args([common::GUARD, "sh", "-c", &script]);
        host.env("DESCARTES_SLEPT", &slept).env("LEASE_MS", "60000");
        let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
        let mut number = || -> u32 {
            let line = lines.next().unwrap().unwrap();
            line.trim_start_matches("guard ").parse().unwrap()
        };
        let [guard, agent] = [number(), number()];
        let size = || std::fs::metadata(&stamps).map_or(0, |found| found.len());
        until("the agent works", &|| size() > 0);
        let all = [host.id(), guard, agent].map(|pid| Pid::from_raw(pid.cast_signed()));
        // One after the other: a host that still runs lets a stopped guard go on.
        for (pid, name) in all.into_iter().zip(["host", "guard", "agent"]) {
            kill(pid, Signal::SIGSTOP).unwrap();
            // A shell that waits for a child to begin does not show as stopped.
            let stopped = || name == "agent" || are_stopped(pid);
            until(&format!("the {name} is stopped"), &stopped);
        }
        std::fs::write(&slept, "180000").unwrap();
        for pid in all.into_iter().rev() {
            kill(pid, Signal::SIGCONT).unwrap();
        }
        // It writes every few milliseconds.
        until(&format!("the agent stands still in round {round}"), &|| {
            let before = size();
            std::thread::sleep(Duration::from_millis(200));
            size() == before
        });
        host.kill().unwrap();
        host.wait().unwrap();
        until("nothing is left", &|| state_of(agent).is_none());
    }
}
