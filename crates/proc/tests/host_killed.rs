//! A host that is killed leaves nothing behind: its guard sees to it, or the next start does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{AGENT, GUARD, HOST, LONG, Processes, SHAPES, carriers_after, fresh_mark};
use descartes_proc::{
    Fate, GuardCall, MARK, call_guards_holding, process_alive, start_time, sweep_marked,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

struct Host {
    process: Child,
    guard: (u32, u64),
    processes: Processes,
}

fn host(shape: &str, count: usize, mark: &str) -> Host {
    host_with(shape, count, mark, "/dev/null")
}

fn host_with(shape: &str, count: usize, mark: &str, lock: &str) -> Host {
    let mut command = Command::new(HOST);
    command
        .args([GUARD, AGENT, shape])
        .envs([(MARK, mark), ("LOCK", lock)])
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let guard = lines.next().unwrap().unwrap();
    let guard: u32 = guard.strip_prefix("guard ").unwrap().parse().unwrap();
    let lines: Vec<String> = lines.take(count).map(Result::unwrap).collect();
    let processes = Processes::from_lines(&lines.join("\n"));
    Host {
        process,
        guard: (guard, start_time(guard).unwrap()),
        processes,
    }
}

impl Host {
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn guard_left_after(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while process_alive(self.guard.0, self.guard.1) && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        process_alive(self.guard.0, self.guard.1)
    }
}

/// Stops a process, and waits until all its threads have.
fn stop(pid: u32) {
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP).unwrap();
    let stopped = |status: String| status.lines().any(|line| line.starts_with("State:\tT"));
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap().path().join("status"));
        if tasks.all(|path| stopped(std::fs::read_to_string(path).unwrap())) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn its_guard_ends_the_tree_and_then_itself() {
    for (name, count) in SHAPES {
        let mut host = host(name, count, "x");
        assert!(host.processes.alive() > 1, "{name}");
        host.kill();
        assert_eq!(host.processes.left_after(LONG), 0, "{name}");
        assert!(!host.guard_left_after(LONG), "{name}");
    }
}

#[test]
fn its_guard_ends_the_tree_even_where_it_was_stopped_before() {
    let mut host = host("ignores-term", 2, "x");
    for pid in [host.process.id(), host.guard.0] {
        stop(pid);
    }
    host.kill();
    assert_eq!(host.processes.left_after(LONG), 0);
    assert!(!host.guard_left_after(LONG));
}

/// The host is stopped, too, and so neither wakes its guard nor dies.
#[test]
fn guards_that_hold_a_lock_are_woken_and_killed_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mark = fresh_mark();
    let [lock, other] = ["lock", "other"].map(|name| dir.path().join(name));
    let hosts = [&lock, &other].map(|path| {
        std::fs::write(path, "").unwrap();
        host_with("child", 2, &mark, path.to_str().unwrap())
    });
    for host in &hosts {
        stop(host.process.id());
        stop(host.guard.0);
    }
    let stopped = |host: &Host| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.guard.0)).unwrap();
        status.lines().any(|line| line.starts_with("State:\tT"))
    };
    call_guards_holding(&lock, GuardCall::Wake);
    let begun = Instant::now();
    while stopped(&hosts[0]) && begun.elapsed() < LONG {
        std::thread::yield_now();
    }
    assert!(!stopped(&hosts[0]));
    assert!(stopped(&hosts[1]));
    call_guards_holding(&lock, GuardCall::Kill);
    assert!(!hosts[0].guard_left_after(LONG));
    assert!(stopped(&hosts[1]));
    for mut host in hosts {
        host.kill();
    }
    sweep_marked(MARK, &mark, 0, LONG);
    assert!(carriers_after(&mark, LONG).is_empty());
}

#[test]
fn a_run_with_time_to_finish_is_signalled_by_nobody_before_that() {
    // What it is given, and whether it finishes.
    for (finish_ms, finishes) in [("60000", true), ("0", false)] {
        let dir = tempfile::tempdir().unwrap();
        let mark = fresh_mark();
        let said = dir.path().join("said");
        // A word of the shell's on its standard error would end it: the host that read it is gone.
        let script = format!(
            "exec 2> /dev/null; trap 'echo asked >> {0}; exit' TERM; echo $$; i=0; while [ $i -lt 40 ]; do sleep 0.01; i=$((i+1)); done; \
             echo finished >> {0}",
            said.display()
        );
        let mut command = Command::new(HOST);
        command
            .args([GUARD, "sh", "-c", &script])
            .env(MARK, &mark)
            .env("FINISH_MS", finish_ms)
            .stdout(Stdio::piped());
        let mut host = command.spawn().unwrap();
        // The guard, then the run.
        let lines = BufReader::new(host.stdout.take().unwrap()).lines();
        assert_eq!(lines.take(2).map(Result::unwrap).count(), 2);
        host.kill().unwrap();
        host.wait().unwrap();
        // As the next start does it.
        sweep_marked(MARK, &mark, 0, LONG);
        let said = std::fs::read_to_string(said).unwrap();
        let expected = if finishes { "finished\n" } else { "asked\n" };
        assert_eq!(said, expected);
    }
}

#[test]
fn killed_at_any_instant_it_leaves_nothing_behind() {
    for step in 0..40 {
        let mark = fresh_mark();
        let mut command = Command::new(HOST);
        command
            .args([GUARD, AGENT, "setsid-double-fork"])
            .env(MARK, &mark);
        let mut host = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 * step));
        host.kill().unwrap();
        host.wait().unwrap();
        let left = carriers_after(&mark, LONG);
        assert!(left.is_empty(), "killed after step {step}: {left:?}");
    }
}

#[test]
fn with_its_guard_the_next_start_ends_the_tree() {
    for (name, count) in SHAPES {
        let mark = fresh_mark();
        let mut host = host(name, count, &mark);
        let begun = start_time(host.guard.0).unwrap();
        // Stopped first, so that neither has the time to act on the other's death; the host lets no guard
        // stay stopped.
        for pid in [host.process.id(), host.guard.0] {
            stop(pid);
        }
        kill(Pid::from_raw(host.guard.0.cast_signed()), Signal::SIGKILL).unwrap();
        host.kill();
        assert!(!host.guard_left_after(LONG));
        assert!(host.processes.alive() > 1, "{name}");
        assert_eq!(sweep_marked(MARK, "another", begun, LONG), []);
        assert_eq!(
            sweep_marked(MARK, &mark, u64::MAX, LONG),
            [],
            "older than the mark's"
        );
        let ended = sweep_marked(MARK, &mark, begun, LONG);
        assert_eq!(host.processes.left_after(Duration::ZERO), 0, "{name}");
        assert!(
            ended.len() > 1 && ended.iter().all(|ended| ended.fate == Fate::Gone),
            "{ended:?}"
        );
        assert_eq!(sweep_marked(MARK, &mark, begun, LONG), []);
    }
}
