//! Processes found by what they carry in their environment: leftovers of a host that was killed
//! together with its guard, and in direct mode whatever has left the agent's group.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tracing::info;

use crate::procfs::{self, Stat};
use crate::sys;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);
/// Longer than a guard without a host takes to end what it guards.
const GUARDED: Duration = Duration::from_secs(25);
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
    let mark = ProcessMark {
        entries: vec![format!("{key}={mark}").into_bytes()],
        not_before,
    };
    sweep(|stat, _| mark.is_on(stat), limit)
}

/// The session of a guard that is gone. Its agents and gates were in it, and whatever they started
/// stays in it, unless it makes a session of its own: that finds those that dropped the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostSession {
    /// The guard's process id: it led the session.
    pub leader: u32,
    /// Older processes (clock ticks since boot) are others'.
    pub not_before: u64,
    /// Where the agents worked. A process that works elsewhere is left alone: the number may have
    /// been another's session since.
    pub within: PathBuf,
}

impl LostSession {
    fn has(&self, stat: &Stat, everyone: &[Stat]) -> bool {
        let leader = self.leader.cast_signed();
        stat.session == leader
            && stat.start_time >= self.not_before
            // A living leader is a guard at work, or another process that got its number.
            && !everyone.iter().any(|other| other.pid == leader)
            && works_in(stat.pid, &self.within)
    }
}

fn is_guard(stat: &Stat) -> bool {
    !stat.is_dead() && stat.command.as_bytes() == procfs::GUARD_NAME.to_bytes()
}

fn works_in(pid: i32, folder: &Path) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let ours =
        std::fs::metadata(&process).is_ok_and(|meta| meta.uid() == nix::unistd::getuid().as_raw());
    ours && std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

/// As [`sweep_marked`], for several marks at once, and for those that are found by their session.
pub fn sweep_lost(
    key: &str,
    marks: &[&str],
    sessions: &[LostSession],
    limit: Duration,
) -> Vec<Ended> {
    let marks: Vec<ProcessMark> = marks
        .iter()
        .map(|mark| ProcessMark {
            entries: vec![format!("{key}={mark}").into_bytes()],
            not_before: 0,
        })
        .collect();
    let is_lost = |stat: &Stat, everyone: &[Stat]| {
        if sessions.iter().any(|lost| lost.has(stat, everyone)) {
            return Some(true);
        }
        let found: Vec<_> = marks.iter().map(|mark| mark.is_on(stat)).collect();
        match found.contains(&Some(true)) {
            true => Some(true),
            false if found.contains(&None) => None,
            false => Some(false),
        }
    };
    sweep(is_lost, limit)
}

/// What is done to guards whose host is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardCall {
    /// Those that somebody has stopped go on.
    Wake,
    /// They are killed; what they guarded is found by its mark.
    Kill,
}

/// Calls the guards that hold this file open: the lock of a loop whose host is dead. Only such a lock may
/// be named.
pub fn call_guards_holding(lock: &Path, call: GuardCall) {
    let Ok(lock) = lock.canonicalize() else {
        return;
    };
    let Some(lock) = lock.to_str() else {
        return;
    };
    let guards = procfs::everyone().into_iter().filter(is_guard);
    for guard in guards.filter(|guard| procfs::holds(guard.pid, lock) == Some(true)) {
        match call {
            GuardCall::Wake => wake(&guard),
            GuardCall::Kill => {
                info!(
                    pid = guard.pid,
                    "the guard of a dead host does not end: killed"
                );
                signal(&guard, Signal::SIGKILL);
            }
        }
    }
}

fn wake(guard: &Stat) {
    if guard.is_stopped() {
        signal(guard, Signal::SIGCONT);
    }
}

/// Waits for living guards that end leftovers themselves: what they guard may be about to finish.
fn await_guards(is_lost: &impl Fn(&Stat, &[Stat]) -> Option<bool>) {
    let begun = Instant::now();
    while begun.elapsed() < GUARDED {
        let left = family(is_lost);
        let leaders: BTreeSet<i32> = left.iter().map(|stat| stat.session).collect();
        let leaders = leaders.into_iter().filter_map(procfs::stat);
        let guards: Vec<Stat> = leaders.filter(is_guard).collect();
        if guards.is_empty() {
            return;
        }
        // One whose host lives is woken by that.
        guards.iter().for_each(wake);
        std::thread::sleep(PAUSE);
    }
}

fn sweep(is_lost: impl Fn(&Stat, &[Stat]) -> Option<bool>, limit: Duration) -> Vec<Ended> {
    await_guards(&is_lost);
    let begun = Instant::now();
    let mut asked = BTreeSet::new();
    let mut met: BTreeMap<(i32, u64), Ended> = BTreeMap::new();
    loop {
        // Who was met once stays known: its line to the mark is gone when those above it have ended.
        let left = family(
            |stat, everyone| match met.contains_key(&(stat.pid, stat.start_time)) {
                true => Some(true),
                false => is_lost(stat, everyone),
            },
        );
        for ended in met.values_mut() {
            ended.fate = Fate::Gone;
        }
        for stat in &left {
            met.insert((stat.pid, stat.start_time), Ended::surviving(stat));
        }
        if left.is_empty() || begun.elapsed() >= limit {
            if !met.is_empty() {
                info!(
                    found = met.len(),
                    left = left.len(),
                    "leftover processes ended"
                );
            }
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
pub(crate) struct ProcessMark {
    pub(crate) entries: Vec<Vec<u8>>,
    pub(crate) not_before: u64,
}

impl ProcessMark {
    /// Living processes that carry the mark or are `known` to belong to them, and those below them.
    pub(crate) fn family(&self, known: impl Fn(&Stat) -> bool) -> Vec<Stat> {
        family(|stat, _| match known(stat) {
            true => Some(true),
            false => self.is_on(stat),
        })
    }

    fn is_on(&self, stat: &Stat) -> Option<bool> {
        if stat.start_time < self.not_before {
            return Some(false);
        }
        procfs::carries(stat.pid, &self.entries)
    }
}

/// Living processes for which `belongs` holds, and those below them: an agent may start a child with
/// another environment, or a loop of its own. Never this process and those above it. What cannot be
/// told yet is asked again once.
fn family(belongs: impl Fn(&Stat, &[Stat]) -> Option<bool>) -> Vec<Stat> {
    let spared = procfs::own_line();
    let mut looked_again = false;
    loop {
        let mut everyone = procfs::everyone();
        everyone.retain(|stat| !stat.is_dead());
        let mut heads = BTreeSet::new();
        let mut unsure = false;
        for stat in everyone.iter().filter(|stat| !spared.contains(&stat.pid)) {
            let belongs = belongs(stat, &everyone);
            if belongs == Some(true) {
                heads.insert(stat.pid);
            }
            unsure |= belongs.is_none();
        }
        if !unsure || std::mem::replace(&mut looked_again, true) {
            everyone.retain(|stat| !spared.contains(&stat.pid));
            let family = procfs::family(heads, &everyone);
            everyone.retain(|stat| family.contains(&stat.pid));
            return everyone;
        }
        std::thread::sleep(EXECUTING);
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
