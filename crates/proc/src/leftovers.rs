//! Processes found by what they carry in their environment: leftovers of a host that was killed
//! together with its guard, and in direct mode whatever has left the agent's group.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::procfs::{self, Stat};
use crate::sys;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// Between two looks at who is left.
const PAUSE: Duration = Duration::from_millis(5);
/// Longer than it takes to execute a program.
const EXECUTING: Duration = Duration::from_millis(2);

/// A leftover and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Its short name, as `ps` shows it.
    pub command: String,
    /// Whether it could be ended.
    pub fate: Fate,
}

/// What became of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is gone.
    Gone,
    /// It would not end in time.
    Survived,
}

/// Ends every process whose environment holds `key=mark` and that started at `not_before` (clock
/// ticks since boot) or later, with everything below it, except for this process and those above it:
/// SIGTERM, half a second, SIGKILL, until none is found, for at most `limit`.
///
/// Only meaningful for a mark of this boot and this pid namespace ([`boot_id`](crate::boot_id),
/// [`pid_namespace`](crate::pid_namespace)), and while no host serves the loop: the caller holds its
/// lock.
pub fn sweep_marked(key: &str, mark: &str, not_before: u64, limit: Duration) -> Vec<Ended> {
    let mark = Mark {
        entries: vec![format!("{key}={mark}").into_bytes()],
        not_before,
    };
    let begun = Instant::now();
    let mut asked = BTreeSet::new();
    let mut met: BTreeMap<(i32, u64), Ended> = BTreeMap::new();
    loop {
        // Who was met once stays known: its line to the mark is gone when those above it have ended.
        let left = mark.family(|stat| met.contains_key(&(stat.pid, stat.start_time)));
        for ended in met.values_mut() {
            ended.fate = Fate::Gone;
        }
        for stat in &left {
            met.insert((stat.pid, stat.start_time), Ended::surviving(stat));
        }
        if left.is_empty() || begun.elapsed() >= limit {
            return met.into_values().collect();
        }
        let kill = begun.elapsed() >= GRACE;
        let first = asked.is_empty();
        let alive: BTreeSet<i32> = left.iter().map(|stat| stat.pid).collect();
        for stat in &left {
            // A newcomer whose parent lives may be what that parent cleans up with.
            let is_due = first || !alive.contains(&stat.parent);
            if kill {
                signal(stat, Signal::SIGKILL);
            } else if is_due && asked.insert((stat.pid, stat.start_time)) {
                signal(stat, Signal::SIGTERM);
                signal(stat, Signal::SIGCONT);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

impl Ended {
    fn surviving(stat: &Stat) -> Self {
        Self {
            pid: stat.pid.cast_unsigned(),
            start_time: stat.start_time,
            command: stat.command.clone(),
            fate: Fate::Survived,
        }
    }
}

/// What tells processes from others: `KEY=VALUE` in their environment, and when they may have started.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) entries: Vec<Vec<u8>>,
    pub(crate) not_before: u64,
}

impl Mark {
    /// Living processes that carry the mark or are `known` to belong to them, and those below them:
    /// an agent may start a child with another environment, or a loop of its own. Never this process
    /// and those above it.
    pub(crate) fn family(&self, known: impl Fn(&Stat) -> bool) -> Vec<Stat> {
        let spared = procfs::own_line();
        let mut looked_again = false;
        loop {
            let mut everyone = procfs::everyone();
            everyone.retain(|stat| !stat.is_dead() && !spared.contains(&stat.pid));
            let mut heads = BTreeSet::new();
            let mut unsure = false;
            for stat in &everyone {
                let belongs = if known(stat) {
                    Some(true)
                } else {
                    self.is_on(stat)
                };
                if belongs == Some(true) {
                    heads.insert(stat.pid);
                }
                unsure |= belongs.is_none();
            }
            if !unsure || std::mem::replace(&mut looked_again, true) {
                let family = procfs::family(heads, &everyone);
                everyone.retain(|stat| family.contains(&stat.pid));
                return everyone;
            }
            std::thread::sleep(EXECUTING);
        }
    }

    fn is_on(&self, stat: &Stat) -> Option<bool> {
        if stat.start_time < self.not_before {
            return Some(false);
        }
        procfs::carries(stat.pid, &self.entries)
    }
}

/// Signals this very process, never a later one with the same number.
pub(crate) fn signal(to: &Stat, signal: Signal) {
    let Ok(pidfd) = sys::pidfd_open(to.pid) else {
        return;
    };
    if procfs::stat(to.pid).is_some_and(|now| now.start_time == to.start_time) {
        // Failure means that it is gone, or another user's.
        let _ = sys::pidfd_signal(pidfd.as_fd(), signal);
    }
}
