//! Who hosts a loop: enough to find the process again and to tell it from another that got
//! the same number.

use crate::layout::LoopDir;
use crate::ops::{self, IoError, Sync};
use descartes_kernel::event::HostFacts;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The content of `host.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    #[serde(flatten)]
    pub facts: HostFacts,
    /// Where it takes commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub socket: Option<PathBuf>,
}

/// Whether a process that was written down is still the one with that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It is gone.
    Dead,
    /// It belongs to another pid namespace: nothing can be said from here.
    Elsewhere,
}

/// What can be written down about this process.
pub fn this_host(version: &str) -> HostFacts {
    let pid = std::process::id();
    HostFacts {
        pid,
        start_time: start_time(pid).unwrap_or(0),
        boot_id: boot_id(),
        pid_ns: pid_ns(),
        version: version.to_owned(),
    }
}

/// Whether the host that was written down still runs.
pub fn life_of(host: &HostFacts) -> Life {
    if host.boot_id.is_some() && host.boot_id != boot_id() {
        return Life::Dead;
    }
    if host.pid_ns.is_some() && host.pid_ns != pid_ns() {
        return Life::Elsewhere;
    }
    match start_time(host.pid) {
        Some(start) if start == host.start_time => Life::Alive,
        _ => Life::Dead,
    }
}

/// When a process started, in clock ticks since boot; `None` if there is none, or a zombie.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold any character, brackets too.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// Whether a process is stopped: by Ctrl-Z, SIGSTOP or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['T', 't']))
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// The number that the kernel gives to the first pid namespace.
const FIRST_PID_NS: u64 = 0xEFFF_FFFC;

/// Whether this process may have ancestors that it cannot see: it is in a pid namespace of its own.
pub fn may_have_hidden_ancestors() -> bool {
    pid_ns() != Some(FIRST_PID_NS)
}

fn pid_ns() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid")
        .ok()
        .map(|meta| meta.ino())
}

impl HostInfo {
    /// Writes `host.json`.
    pub fn write(&self, dir: &LoopDir) -> Result<(), IoError> {
        let path = dir.host();
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| IoError::new("write", &path, error.into()))?;
        ops::replace(&path, &text, Sync::Lazy)
    }

    /// Reads `host.json`; `None` where there is none that can be read.
    pub fn read(dir: &LoopDir) -> Option<Self> {
        Self::read_from(&dir.host())
    }

    fn read_from(path: &Path) -> Option<Self> {
        serde_json::from_slice(&crate::safe_open::read(path).ok()?).ok()
    }
}
