//! A tree as its guard sees it: every orphan becomes the guard's child, so that nothing can get away.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid, getpgrp, getpid};

use crate::events::{Exit, Survivor};
use crate::procfs;
use crate::run_lifecycle::Tree;
use crate::sys::{self, Waited};

/// Who leaves for a group of its own between the look and the signal is found by looking again, at
/// most so often; who is quicker than that is killed after its grace.
const ASK_ROUNDS: usize = 8;

/// The children of this process, which must be single-threaded and a child subreaper.
#[derive(Default)]
pub(crate) struct ChildProcesses {
    agent: i32,
    ending: bool,
    /// No child at all is left, by the kernel's own word.
    childless: bool,
    /// Everybody but the agent who was signalled, or died after signals were sent.
    ended: BTreeSet<i32>,
    /// Survivors of earlier runs: reported once, then left alone.
    given_up: BTreeSet<i32>,
}

impl ChildProcesses {
    /// The tree of the next run.
    pub(crate) fn adopt(&mut self, agent: i32) {
        self.agent = agent;
        self.ending = false;
        self.childless = false;
        self.ended.clear();
    }

    /// Reaps survivors of earlier runs that ended after all.
    pub(crate) fn reap_idle(&mut self) {
        while let Waited::Dead(pid, _) = sys::wait_any() {
            self.given_up.remove(&pid);
        }
    }

    /// Direct children that belong to this run.
    fn children(&self) -> Vec<i32> {
        let mut children = procfs::own_children();
        children.retain(|child| !self.given_up.contains(child));
        children
    }

    /// The groups of everybody alive below this process, without those already `asked`.
    fn groups_but(&mut self, asked: &BTreeSet<i32>) -> BTreeSet<i32> {
        let everyone = procfs::everyone();
        let mut groups = BTreeSet::new();
        for stat in procfs::descendants(getpid().as_raw(), &everyone) {
            if !stat.is_dead() && !self.given_up.contains(&stat.pid) && !asked.contains(&stat.group)
            {
                self.note(stat.pid);
                groups.insert(stat.group);
            }
        }
        groups
    }

    /// Stops everybody below this process.
    pub(crate) fn hold(&self) {
        let mut held = BTreeSet::new();
        for _ in 0..ASK_ROUNDS {
            let everyone = procfs::everyone();
            let below = procfs::descendants(getpid().as_raw(), &everyone).into_iter();
            let running = below.filter(|stat| !stat.is_dead());
            let groups: BTreeSet<i32> = running.map(|stat| stat.group).collect();
            let new: Vec<i32> = groups.difference(&held).copied().collect();
            if new.is_empty() {
                return;
            }
            for group in new {
                signal_group(group, Signal::SIGSTOP);
                held.insert(group);
            }
        }
    }

    /// Lets everybody below this process go on.
    pub(crate) fn let_go(&self) {
        let everyone = procfs::everyone();
        let below = procfs::descendants(getpid().as_raw(), &everyone).into_iter();
        let groups: BTreeSet<i32> = below.map(|stat| stat.group).collect();
        for group in groups {
            signal_group(group, Signal::SIGCONT);
        }
    }

    fn note(&mut self, pid: i32) {
        if pid != self.agent {
            self.ended.insert(pid);
        }
    }
}

impl Tree for ChildProcesses {
    fn reap(&mut self) -> Option<Exit> {
        let mut agent_exit = None;
        loop {
            match sys::wait_any() {
                Waited::Dead(pid, exit) if pid == self.agent => {
                    agent_exit = Some(exit);
                    // The number may now be given to somebody else.
                    self.agent = 0;
                }
                Waited::Dead(pid, _) if self.given_up.remove(&pid) => {}
                Waited::Dead(pid, _) if self.ending => self.note(pid),
                Waited::Dead(..) => {}
                Waited::Alive => break,
                Waited::Childless => {
                    self.childless = true;
                    break;
                }
            }
        }
        agent_exit
    }

    fn is_empty(&mut self) -> bool {
        // The file in /proc is read only where the kernel's answer does not settle it.
        self.childless || (!self.given_up.is_empty() && self.children().is_empty())
    }

    fn ask(&mut self) {
        self.ending = true;
        let mut asked = BTreeSet::new();
        for _ in 0..ASK_ROUNDS {
            let new = self.groups_but(&asked);
            if new.is_empty() {
                break;
            }
            // By group, because a group cannot fork its way out between two signals, and once for
            // each, because agents take a second signal for impatience. SIGCONT wakes those that are
            // stopped.
            for group in new {
                signal_group(group, Signal::SIGTERM);
                signal_group(group, Signal::SIGCONT);
                asked.insert(group);
            }
        }
    }

    fn kill(&mut self) {
        self.ending = true;
        let mut groups = BTreeSet::new();
        for child in self.children() {
            // A child that is not reaped keeps both its own number and its group's from being used
            // again, so neither signal can hit a stranger.
            if let Ok(group) = getpgid(Some(Pid::from_raw(child)))
                && groups.insert(group.as_raw())
            {
                signal_group(group.as_raw(), Signal::SIGKILL);
            }
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
            self.note(child);
        }
    }

    fn survivors(&mut self) -> Vec<Survivor> {
        let left = self.children();
        self.given_up.extend(&left);
        let named = left
            .into_iter()
            .filter_map(procfs::stat)
            .filter(|stat| !stat.is_dead());
        named.map(Survivor::from).collect()
    }

    fn killed(&self) -> u32 {
        u32::try_from(self.ended.len()).unwrap_or(u32::MAX)
    }

    fn watch_every(&self) -> Option<Duration> {
        None // SIGCHLD tells of every death.
    }
}

impl From<procfs::Stat> for Survivor {
    fn from(stat: procfs::Stat) -> Self {
        Self {
            pid: stat.pid.cast_unsigned(),
            command: stat.command,
        }
    }
}

/// Signals a group, never our own. Failure means that it is gone, or another user's.
pub(crate) fn signal_group(group: i32, signal: Signal) {
    if group > 1 && group != getpgrp().as_raw() {
        let _ = kill(Pid::from_raw(-group), signal);
    }
}
