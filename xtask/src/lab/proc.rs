//! Numbers of a live process, out of `/proc`.

use std::fs;

use descartes_testkit::process;

fn number(pid: i32, file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The most memory it ever held, in KiB.
pub fn peak_kib(pid: i32) -> Option<u64> {
    number(pid, "status", "VmHWM:")
}

/// Its share of memory, pages it shares divided fairly, in KiB.
pub fn pss_kib(pid: i32) -> Option<u64> {
    number(pid, "smaps_rollup", "Pss:")
}

/// How often its threads woke up and went to sleep again.
pub fn wakeups(pid: i32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    tasks
        .flatten()
        .filter_map(|task| {
            let file = format!("task/{}/status", task.file_name().to_string_lossy());
            number(pid, &file, "voluntary_ctxt_switches:")
        })
        .sum()
}

/// Processor time it used, in seconds.
pub fn cpu_seconds(pid: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().collect());
    let tick = |index: usize| fields.get(index).and_then(|word| word.parse::<f64>().ok());
    // Fields 14 and 15 of the line, counted after the name; a tick is 10 ms.
    (tick(11).unwrap_or(0.0) + tick(12).unwrap_or(0.0)) / 100.0
}

/// The guard that this host started.
pub fn guard_of(host: i32) -> Option<i32> {
    let ours = |child: &process::Process| child.ppid == host && child.command.contains("__guard");
    process::descendants(host)
        .into_iter()
        .find(ours)
        .map(|child| child.pid)
}
