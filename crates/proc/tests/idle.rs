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
    // Past the one wake-up that tells the sink of the silence.
    std::thread::sleep(Duration::from_millis(300));
    let guard = watched.supervisor.guard_pid().unwrap();
    let before = (sleeps(guard), sleeps(std::process::id()));
    std::thread::sleep(Duration::from_secs(2));
    let after = (sleeps(guard), sleeps(std::process::id()));
    assert_eq!(after.0 - before.0, 0, "the guard woke up");
    // This thread itself slept, and the test harness may.
    assert!(
        after.1 - before.1 <= 4,
        "the host woke up {} times",
        after.1 - before.1
    );
    assert!(
        private_kilobytes(guard) < 2048,
        "{} kB",
        private_kilobytes(guard)
    );
}
