//! Orphans of a guard that was killed: the host is a child subreaper too, so they become its own
//! children. It must tell them from children that it started itself.

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid, getsid};

use crate::events::Survivor;
use crate::procfs::{self, Stat};
use crate::sys;
use crate::tree::signal_group;
use crate::waiting::{Waiting, wait_for_exit};

/// Living guards of this process. The lock is also held while orphans are looked at and reaped, so
/// that no thread signals a number that another has just set free.
static GUARDS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Longer than it takes a guard that has closed its sockets to be gone.
const LAST_STEP: Duration = Duration::from_secs(5);
/// Between two rounds of killing.
const PAUSE: Duration = Duration::from_millis(2);

fn guards() -> MutexGuard<'static, BTreeSet<i32>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of orphans below it. [`Supervisor::guarded`](crate::Supervisor::guarded)
/// does it by itself.
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// What [`sweep_children`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrphanSweep {
    /// Processes that would not end in time.
    pub survivors: Vec<Survivor>,
    /// How many were killed.
    pub killed: u32,
}

/// Kills orphans that this process inherited from guards that are gone, and all that follow from
/// them, for at most `limit`. Children of this process's own session are its own and are left alone,
/// and so are living guards.
pub fn sweep_children(limit: Duration) -> OrphanSweep {
    sweep_since(0, limit)
}

/// As [`sweep_children`], for orphans that started at `since` or later (clock ticks since boot).
pub(crate) fn sweep_since(since: u64, limit: Duration) -> OrphanSweep {
    let give_up_at = Instant::now() + limit;
    let mut killed = BTreeSet::new();
    loop {
        let left = kill_round(since, &mut killed);
        if left.is_empty() || Instant::now() >= give_up_at {
            let survivors = left.into_iter().map(Survivor::from).collect();
            return OrphanSweep {
                survivors,
                killed: killed.len().try_into().unwrap_or(u32::MAX),
            };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills and reaps what is in reach; gives who was still alive.
fn kill_round(since: u64, killed: &mut BTreeSet<i32>) -> Vec<Stat> {
    let guards = guards();
    let mut left = orphans(&guards);
    left.retain(|orphan| orphan.start_time >= since);
    for orphan in &left {
        if orphan.is_dead() {
            sys::wait_for(orphan.pid);
            if !killed.is_empty() {
                killed.insert(orphan.pid); // with the group of another
            }
            continue;
        }
        // Unreaped, so neither number can belong to anybody else.
        if let Ok(group) = getpgid(Some(Pid::from_raw(orphan.pid))) {
            signal_group(group.as_raw(), Signal::SIGKILL);
        }
        let _ = kill(Pid::from_raw(orphan.pid), Signal::SIGKILL);
        killed.insert(orphan.pid);
    }
    left
}

/// Children of ours in another session that are no guard of ours.
fn orphans(guards: &BTreeSet<i32>) -> Vec<Stat> {
    let own = getsid(None).map_or(0, Pid::as_raw);
    let children = procfs::own_children()
        .into_iter()
        .filter(|child| !guards.contains(child));
    children
        .filter_map(procfs::stat)
        .filter(|stat| stat.session != own)
        .collect()
}

/// Reaps orphans that ended by themselves, such as daemons of commands that the host ran.
pub(crate) fn reap_dead_orphans() {
    if !sys::has_zombie() {
        return;
    }
    let guards = guards();
    for orphan in orphans(&guards).iter().filter(|orphan| orphan.is_dead()) {
        sys::wait_for(orphan.pid);
    }
}

/// Starts a guard such that no sweep takes it for an orphan.
pub(crate) fn register(start: impl FnOnce() -> std::io::Result<Child>) -> std::io::Result<Child> {
    let mut guards = guards();
    let child = start()?;
    guards.insert(child.id().cast_signed());
    Ok(child)
}

/// Reaps a guard that has ended or is about to; true if it went of its own will, and so has left
/// nothing behind.
pub(crate) fn unregister(child: &mut Child) -> bool {
    // The lock must not be held while it ends: that may take as long as a sweep.
    if wait_for_exit(child.id(), LAST_STEP, None) == Waiting::Late {
        signal_guard(child.id(), Signal::SIGKILL);
        // One that hangs in the kernel is not waited for: it is reaped as an orphan when it ends.
        wait_for_exit(child.id(), LAST_STEP, None);
    }
    let mut guards = guards();
    guards.remove(&child.id().cast_signed());
    let ended = child.try_wait().ok().flatten();
    ended.is_some_and(|status| status.success())
}

/// Signals every guard of this process.
pub(crate) fn signal_guards(signal: Signal) {
    for pid in guards().iter() {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// Signals a guard if it has not been reaped.
pub(crate) fn signal_guard(pid: u32, signal: Signal) {
    let pid = pid.cast_signed();
    if guards().contains(&pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
