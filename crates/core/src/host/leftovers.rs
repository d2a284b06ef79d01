//! What a dead host left behind: a guard that is still ending its tree is waited for, and processes
//! that outlived host and guard are ended before anything new begins.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use descartes_kernel::event::{Event, HostFacts};
use descartes_proc::{Ended, GuardCall, LostSession, MARK, call_guards_holding, sweep_lost};
use descartes_store::IoError;
use descartes_store::catalog::{self, LoopEntry};
use descartes_store::host::{Life, life_of, this_host};
use descartes_store::journal::find_last;
use descartes_store::layout::{LoopDir, StateRoot};
use descartes_store::lock::{Held, holder_of, holder_of_loop, state_lock};
use descartes_store::state_file;
use descartes_text::units::plural;

use super::early_stop::EarlyStop;

/// Leftovers of a dead host get so long to end.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);
/// The guard of a dead host asks, waits and kills: it is gone well before this, or it is killed.
const GUARD_LIMIT: Duration = Duration::from_secs(30);
/// For what a guard left that was killed to let go of the lock.
const AFTER_GUARD: Duration = Duration::from_secs(5);
/// The host of a loop that has ended puts its things away: it too is gone well before this.
const LEAVING_LIMIT: Duration = Duration::from_secs(30);
/// Looks at its lock between two calls of its guards.
const CALL_EVERY: u32 = 25;
/// Between two looks at its lock.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Whether what holds a loop is no host any more: its host is dead, and the guard is ending what it
/// had started.
pub fn is_guard_of_dead_host(held: &Held) -> bool {
    let host = held.holder.as_ref().map(|holder| &holder.host);
    host.is_some_and(|host| life_of(host) == Life::Dead)
}

/// Waits for whoever holds this state file and is about to leave it: the guard of a dead host, or the
/// host of a loop that has ended.
pub fn wait_for_leaving(root: &StateRoot, state_file: &Path) -> Result<(), IoError> {
    wait_until_left(root, state_file, &EarlyStop::default())
}

/// The same, as long as nobody stops it.
pub(super) fn wait_until_left(
    root: &StateRoot,
    state_file: &Path,
    stop: &EarlyStop,
) -> Result<(), IoError> {
    let begun = Instant::now();
    let (mut call, mut looks) = (GuardCall::Wake, 0_u32);
    while let Some(held) = holder_of(root, state_file)? {
        let late = begun.elapsed();
        if is_guard_of_dead_host(&held) {
            if late >= GUARD_LIMIT {
                call = GuardCall::Kill;
            }
            // All processes are looked at: not every time.
            if looks.is_multiple_of(CALL_EVERY) {
                call_guards_holding(&state_lock(root, state_file)?, call);
            }
            looks += 1;
            if late >= GUARD_LIMIT + AFTER_GUARD {
                break;
            }
        } else if late >= LEAVING_LIMIT || !has_ended(state_file) {
            break;
        }
        if stop.is_stopped() {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// As far as the state file tells. It lies in the agent's reach: that costs a wait, and nothing else.
fn has_ended(state_file: &Path) -> bool {
    state_file::load(state_file).is_ok_and(|loaded| loaded.state.completed)
}

/// Ends what is left of a loop that nobody hosts: the caller holds it. The loops of a task loop's
/// tasks belong to it.
pub fn sweep_loop(root: &StateRoot, id: &str) -> Vec<Ended> {
    sweep_all(&catalog::list(root).unwrap_or_default(), &[id])
}

fn sweep_all(all: &[LoopEntry], ids: &[&str]) -> Vec<Ended> {
    let is_meant = |entry: &&LoopEntry| {
        let parent = entry.meta.extra.get("parent").and_then(|id| id.as_str());
        ids.contains(&entry.meta.id.as_str()) || parent.is_some_and(|id| ids.contains(&id))
    };
    let mut marks: BTreeSet<&str> = ids.iter().copied().collect();
    let mut sessions = Vec::new();
    // A copy of a worker's loop: its agents are the worker's, also where that is on this machine.
    let is_here = |entry: &&LoopEntry| !entry.meta.extra.contains_key("mirror");
    for entry in all.iter().filter(is_meant).filter(is_here) {
        marks.insert(&entry.meta.id);
        sessions.extend(lost_session(&entry.dir, &entry.meta.working_dir));
    }
    let marks: Vec<&str> = marks.into_iter().collect();
    sweep_lost(MARK, &marks, &sessions, SWEEP_LIMIT)
}

/// The same for the loop of one task alone.
pub(super) fn sweep_task_loop(dir: &LoopDir, id: &str, within: &Path) -> Vec<Ended> {
    let session: Vec<LostSession> = lost_session(dir, within).into_iter().collect();
    sweep_lost(MARK, &[id], &session, SWEEP_LIMIT)
}

/// The session of the loop's last guard, where it was one of this boot and this pid namespace.
fn lost_session(dir: &LoopDir, within: &Path) -> Option<LostSession> {
    let journal = dir.journal();
    let (mut guard, mut host) = (None, None);
    find_last(&journal, |record| {
        match &record.event {
            Event::RunStarted { guard_pid, .. } if guard.is_none() => guard = Some(*guard_pid),
            Event::HostStarted { host: facts } => host = Some(facts.clone()),
            _ => {}
        }
        host.is_some()
    })
    .ok()?;
    let (leader, host): (u32, HostFacts) = (guard.flatten()?, host?);
    let here = this_host("");
    let same = host.boot_id == here.boot_id && host.pid_ns == here.pid_ns;
    same.then(|| LostSession {
        leader,
        not_before: host.start_time,
        within: within.to_owned(),
    })
}

/// Ends what is left of the loops that this state file had, as its caller has it now.
pub(super) fn sweep_state_file(root: &StateRoot, state_file: &Path, notices: &mut Vec<String>) {
    let all = catalog::list(root).unwrap_or_default();
    let is_dead = |entry: &&LoopEntry| {
        entry.meta.state_file == state_file && matches!(holder_of_loop(&entry.dir), Ok(None))
    };
    let dead: Vec<&str> = all
        .iter()
        .filter(is_dead)
        .map(|entry| entry.meta.id.as_str())
        .collect();
    if !dead.is_empty() {
        tell(&sweep_all(&all, &dead), notices);
    }
}

/// Says what was ended.
pub(super) fn tell(ended: &[Ended], notices: &mut Vec<String>) {
    if !ended.is_empty() {
        notices.push(format!(
            "ended {} left behind by the dead host",
            plural(ended.len() as u64, "process")
        ));
    }
}
