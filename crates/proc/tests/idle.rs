//! Waiting costs nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::time::Duration;

use common::{LONG, Watched, sh};

/// Times that the threads of a process went to sleep, which is once for each time they woke up.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_task = |path: std::path::PathBuf| -> u64 {
        let status = fs::read_to_string(path.join("status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    tasks.map(|task| of_task(task.unwrap().path())).sum()
}

/// Kilobytes that would be free if the process were not there.
fn private_kilobytes(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let fields = rollup
        .lines()
        .filter_map(|line| line.strip_prefix("Private_"));
    fields
        .map(|field| {
            field
                .split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        })
        .sum()
}

#[test]
fn a_silent_agent_wakes_neither_guard_nor_pump_and_the_guard_is_small() {
    let mut watched = Watched::guarded();
    watched.start(1, &sh("echo up; exec sleep 600"));
    watched.output.recv_timeout(LONG).unwrap();
    let guard = watched.supervisor.guard_pid().unwrap();
    let woken = || {
        let before = (sleeps(guard), sleeps(std::process::id()));
        std::thread::sleep(Duration::from_secs(2));
        (
            sleeps(guard) - before.0,
            sleeps(std::process::id()) - before.1,
        )
    };
    // They come to rest: the sink is told of the silence once, and on a busy machine that may take a while.
    // This thread itself slept, and the test harness may.
    let rests = |(guard, host): &(u64, u64)| *guard == 0 && *host <= 4;
    let woken: Vec<(u64, u64)> = (0..5)
        .map(|_| woken())
        .take_while(|one| !rests(one))
        .collect();
    assert!(woken.len() < 5, "guard and host woke up {woken:?} times");
    assert!(
        private_kilobytes(guard) < 2048,
        "{} kB",
        private_kilobytes(guard)
    );
}
