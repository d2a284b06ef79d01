//! Whose command is it? The line of processes from one up to the first of the system, read such that
//! no process that ended meanwhile, and no later one with its number, is taken for a part of it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::procfs::{self, Stat};
use crate::{MARK, sys};

/// The name that a guard gives itself, and the first word that it is started with.
pub(crate) const GUARD_NAME: &str = "descartes-guard";
/// The hidden verb that a guard of the `descartes` binary is executed with.
pub const GUARD_VERB: &str = "__guard";

/// A line that changes while it is read is read again, so often.
const TRIES: usize = 8;
/// Longer lines are nobody's.
const LONGEST: usize = 4096;

/// One process on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Its short name, as `ps` shows it.
    pub program: String,
    /// Its controlling terminal.
    pub terminal: Option<String>,
    /// Whether it is a guard, and of which loop where it says so.
    pub guard: Option<Option<String>>,
    /// The loop whose mark its environment carries; an environment that cannot be read carries none.
    pub mark: Option<String>,
}

/// A process at the other end of a socket.
#[derive(Debug)]
pub struct Peer {
    /// Its id in our pid namespace.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Holds the number: it cannot be given to another process meanwhile.
    pidfd: Option<OwnedFd>,
}

impl Peer {
    /// Who connected this socket.
    pub fn of(stream: &UnixStream) -> io::Result<Self> {
        let credentials = getsockopt(stream, PeerCredentials)?;
        let pid = credentials.pid();
        let pidfd = match sys::peer_pidfd(stream.as_fd()) {
            Some(pidfd) => Some(pidfd),
            // An older kernel: the number may be another's by now, if its process is gone already.
            None if pid > 0 => sys::pidfd_open(pid).ok(),
            None => None,
        };
        Ok(Self {
            pid: u32::try_from(pid).unwrap_or(0),
            uid: credentials.uid(),
            pidfd,
        })
    }

    /// The line from it up, itself first; why not, where it cannot be told.
    pub fn lineage(&self) -> Result<Vec<Ancestor>, String> {
        let Some(pidfd) = &self.pidfd else {
            return Err("its process is gone, or in another pid namespace".to_owned());
        };
        let line = lineage(self.pid)?;
        let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::ZERO) {
            Ok(0) => Ok(line),
            _ => Err(format!("process {} is already gone", self.pid)),
        }
    }
}

/// The line from this process up, itself first.
pub fn own_lineage() -> Result<Vec<Ancestor>, String> {
    // In a pid namespace of its own a process may still see the /proc of the one above, where it has
    // another number.
    let own = std::fs::read_link("/proc/self").ok();
    let own = own.and_then(|own| own.to_str()?.parse().ok());
    lineage(own.unwrap_or_else(std::process::id))
}

pub(crate) fn lineage(pid: u32) -> Result<Vec<Ancestor>, String> {
    let mut trouble = String::new();
    for _ in 0..TRIES {
        match walk(pid.cast_signed()) {
            Ok(line) => return Ok(line),
            Err(why) => trouble = why,
        }
    }
    Err(trouble)
}

/// A child that still has the same parent proves that the parent was read, and no one else.
fn walk(pid: i32) -> Result<Vec<Ancestor>, String> {
    let gone = |pid: i32| format!("process {pid} cannot be read");
    let mut line = Vec::new();
    let mut below: Option<Stat> = None;
    let mut at = pid;
    while at > 0 && line.len() < LONGEST {
        let Some(stat) = procfs::stat(at) else {
            // Where /proc hides the processes of others the line ends at the first of them: guards
            // are of the same user as what is below them.
            return match &below {
                Some(below) if is_child_of(below, at) => Ok(line),
                _ => Err(gone(at)),
            };
        };
        if below.is_none() && stat.is_dead() {
            return Err(format!("process {pid} is already gone"));
        }
        line.push(Ancestor {
            pid: at.cast_unsigned(),
            start_time: stat.start_time,
            terminal: stat.terminal(),
            guard: guard_of(at, &stat),
            mark: procfs::variable(at, MARK),
            program: stat.command.clone(),
        });
        if let Some(below) = &below
            && !is_child_of(below, at)
        {
            return Err(format!("process {} got another parent", below.pid));
        }
        at = stat.parent;
        below = Some(stat);
    }
    Ok(line)
}

/// Whether the process that was read is still there, and this one its parent.
fn is_child_of(child: &Stat, parent: i32) -> bool {
    let now = procfs::stat(child.pid);
    now.is_some_and(|now| now.parent == parent && now.start_time == child.start_time)
}

/// Whether it is a guard. Who makes itself look like one only takes rights away from what is below it.
fn guard_of(pid: i32, stat: &Stat) -> Option<Option<String>> {
    let words = procfs::command_line(pid);
    let verb = words.get(1).is_some_and(|word| word == GUARD_VERB);
    let named = stat.command == GUARD_NAME;
    (named || verb).then(|| words.get(2).cloned().filter(|id| !id.is_empty()))
}

/// Processes of this host's own that run commands which a person trusts: number and start time.
static NOTIFIERS: Mutex<BTreeSet<(u32, u64)>> = Mutex::new(BTreeSet::new());

/// Remembers a child of this process as one that runs commands which a person trusts; forgotten
/// when the answer is dropped. To be called before it is reaped.
pub fn trust_child(pid: u32) -> TrustedChild {
    let start_time = crate::start_time(pid).unwrap_or(0);
    let key = (pid, start_time);
    notifiers().insert(key);
    TrustedChild(key)
}

/// Whether this very process was given to [`trust_child`].
pub fn is_trusted_child(pid: u32, start_time: u64) -> bool {
    notifiers().contains(&(pid, start_time))
}

/// Keeps the trust in a child; see [`trust_child`].
#[derive(Debug)]
pub struct TrustedChild((u32, u64));

impl Drop for TrustedChild {
    fn drop(&mut self) {
        notifiers().remove(&self.0);
    }
}

fn notifiers() -> std::sync::MutexGuard<'static, BTreeSet<(u32, u64)>> {
    NOTIFIERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_line_begins_with_the_process_and_goes_up_to_its_parent() {
        let line = own_lineage().unwrap();
        assert_eq!(line[0].pid, std::process::id());
        assert_eq!(line[1].pid, std::os::unix::process::parent_id());
        assert!(line.iter().all(|one| one.guard.is_none()));
    }

    #[test]
    fn a_mark_in_the_environment_of_a_child_is_seen() {
        let mut child = Command::new("sleep")
            .arg("60")
            .env(MARK, "loop-1")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let line = lineage(child.id()).unwrap();
        assert_eq!(line[0].mark.as_deref(), Some("loop-1"));
        assert_eq!(
            (line[1].pid, line[1].mark.clone()),
            (std::process::id(), None)
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lineage(child.id()).is_err());
    }

    #[test]
    fn the_peer_of_a_socket_is_traced_while_it_lives() {
        let (here, _there) = UnixStream::pair().unwrap();
        let peer = Peer::of(&here).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.lineage().unwrap()[0].pid, std::process::id());
        let lost = Peer {
            pidfd: None,
            ..peer
        };
        assert!(lost.lineage().is_err());
    }

    #[test]
    fn trust_in_a_child_ends_with_its_token() {
        let pid = std::process::id();
        let start = crate::start_time(pid).unwrap();
        let token = trust_child(pid);
        assert!(is_trusted_child(pid, start));
        assert!(!is_trusted_child(pid, start + 1));
        drop(token);
        assert!(!is_trusted_child(pid, start));
    }
}
