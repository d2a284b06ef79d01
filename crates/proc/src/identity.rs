//! Telling one process from a later one with the same number.

use std::os::linux::fs::MetadataExt;

use crate::procfs;

/// When the process started, in clock ticks since boot; `None` when there is no such process.
pub fn start_time(pid: u32) -> Option<u64> {
    procfs::stat(pid.try_into().ok()?).map(|stat| stat.start_time)
}

/// True while the very process that started at `start_time` runs; a zombie does not run.
pub fn process_alive(pid: u32, start_time: u64) -> bool {
    let stat = i32::try_from(pid).ok().and_then(procfs::stat);
    stat.is_some_and(|stat| stat.start_time == start_time && !stat.is_dead())
}

/// The name of this boot: process ids and start times mean nothing beyond it.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// The number of our pid namespace: process ids mean nothing outside of it.
pub fn pid_namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|found| found.st_ino())
}
