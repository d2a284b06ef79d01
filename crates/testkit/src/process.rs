//! Who is alive: processes found by a mark in their environment or by descent, through `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::wait;

/// A live process, as `/proc` told it. Zombies are not alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// Its parent's id.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    pub sid: i32,
    /// When it started, in clock ticks since boot: with the id, its identity.
    pub start_time: u64,
    /// Its command line, words joined by spaces.
    pub command: String,
}

/// The process with this id, if it is alive.
pub fn find(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so fields are counted from its end.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 2..)?.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some(Process {
        pid,
        ppid: i32::try_from(number(1)?).ok()?,
        pgid: i32::try_from(number(2)?).ok()?,
        sid: i32::try_from(number(3)?).ok()?,
        start_time: u64::try_from(number(19)?).ok()?,
        command: command_line(pid),
    })
}

/// Stops a process and waits until every thread of it is: the signal reaches one thread, and the others
/// run on until that one has got the processor.
pub fn stop(pid: i32) {
    send(pid, Signal::SIGSTOP);
    wait::eventually("every thread stopped", Duration::from_secs(60), || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
        threads.flatten().flatten().all(|thread| {
            // A thread that has just ended has no status.
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            status.is_empty() || status.contains("State:\tT")
        })
    });
}

/// True while a process with this id runs; a zombie does not.
pub fn is_alive(pid: i32) -> bool {
    find(pid).is_some()
}

/// All live processes.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(find)
        .collect()
}

/// The live processes whose environment holds exactly `key=value`, such as
/// `DESCARTES_LOOP_ID=…`.
pub fn marked(key: &str, value: impl AsRef<OsStr>) -> Vec<Process> {
    let mark = [key.as_bytes(), b"=", value.as_ref().as_bytes()].concat();
    let has_mark = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == mark)
    };
    all().into_iter().filter(has_mark).collect()
}

/// The children of a process, their children, and so on; itself left out.
pub fn descendants(pid: i32) -> Vec<Process> {
    let everyone = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let children = everyone.iter().filter(|process| process.ppid == parent);
        for child in children {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// Sends a signal; a process that is already gone is no trouble.
pub fn send(pid: i32, signal: Signal) {
    if pid > 1 {
        let _ = signal::kill(Pid::from_raw(pid), signal);
    }
}

/// Waits until the process is gone.
///
/// # Panics
/// When it still lives after `within`.
#[track_caller]
pub fn assert_gone(pid: i32, within: Duration) {
    wait::eventually(&format!("end of process {pid}"), within, || !is_alive(pid));
}

/// Waits until no process carries the mark, and lists those that still do.
///
/// # Panics
/// When some are left after `within`.
#[track_caller]
pub fn assert_no_survivors(key: &str, value: impl AsRef<OsStr>, within: Duration) {
    let value = value.as_ref();
    let mut left = Vec::new();
    let gone = wait::poll(within, &mut || {
        left = marked(key, value);
        left.is_empty().then_some(())
    });
    assert!(gone.is_some(), "survivors after {within:?}: {left:#?}");
}

/// Kills everything that carries the mark, again and again until nothing does or `within` is over;
/// gives what is left.
pub fn end_marked(key: &str, value: impl AsRef<OsStr>, within: Duration) -> Vec<Process> {
    let value = value.as_ref();
    let mut left = Vec::new();
    wait::poll(within, &mut || {
        left = marked(key, value);
        for process in &left {
            send(process.pid, Signal::SIGKILL);
        }
        left.is_empty().then_some(())
    });
    left
}

fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    words
        .map(String::from_utf8_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
