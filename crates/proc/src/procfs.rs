//! Reading `/proc`: who is whose child, and what it carries.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

/// Longer than it takes to execute a program.
const EXECUTING: Duration = Duration::from_millis(5);

/// The fields of `/proc/PID/stat` that we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) command: String,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Device number of the controlling terminal; 0 without one.
    pub(crate) terminal: u32,
    /// Clock ticks used by the process itself.
    pub(crate) own_ticks: u64,
    /// Clock ticks used by children it has waited for.
    pub(crate) waited_ticks: u64,
    pub(crate) start_time: u64,
}

impl Stat {
    /// Zombies have ended; they only wait to be reaped.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Stopped by a signal, as nobody of ours does it to a guard.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state == b'T'
    }

    /// The name of the controlling terminal, below `/dev`.
    pub(crate) fn terminal(&self) -> Option<String> {
        // As in proc_pid_stat(5): the minor number is in bits 31 to 20 and 7 to 0.
        let major = (self.terminal >> 8) & 0xfff;
        let minor = (self.terminal & 0xff) | ((self.terminal >> 12) & 0xfff00);
        match major {
            0 => None,
            136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
            4 => Some(format!("tty{minor}")),
            _ => Some(format!("terminal {major}:{minor}")),
        }
    }
}

/// The short name of a guard.
pub(crate) const GUARD_NAME: &CStr = c"descartes-guard";

pub(crate) fn stat(pid: i32) -> Option<Stat> {
    // One read is enough: the line is far shorter, and the kernel gives it in one piece.
    let mut line = [0; 2048];
    let length = File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .read(&mut line)
        .ok()?;
    parse_stat(line.get(..length)?)
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    // The name may hold spaces and parentheses; the last parenthesis is the kernel's.
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?)
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let command = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // `rest` begins with field 3 of proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let id = |field: usize| fields.get(field - 3)?.parse::<i32>().ok();
    Some(Stat {
        pid,
        command,
        state: *fields.first()?.as_bytes().first()?,
        parent: id(4)?,
        group: id(5)?,
        session: id(6)?,
        terminal: id(7)?.cast_unsigned(),
        own_ticks: number(14)? + number(15)?,
        waited_ticks: number(16)? + number(17)?,
        start_time: number(22)?,
    })
}

/// Ids of all processes that can be seen.
pub(crate) fn pids() -> Vec<i32> {
    numbered("/proc")
}

/// All processes that can be seen, read one after the other: no picture of one instant.
pub(crate) fn everyone() -> Vec<Stat> {
    pids().into_iter().filter_map(stat).collect()
}

/// The entries of a folder that are numbers.
pub(crate) fn numbered(folder: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Direct children of this process, zombies among them.
pub(crate) fn own_children() -> Vec<i32> {
    let mut children = Vec::new();
    for thread in numbered("/proc/self/task") {
        match std::fs::read_to_string(format!("/proc/self/task/{thread}/children")) {
            Ok(list) => children.extend(
                list.split_whitespace()
                    .filter_map(|id| id.parse::<i32>().ok()),
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Either the thread just ended, or the kernel was built without this file.
                return children_by_parent();
            }
            Err(_) => {}
        }
    }
    children
}

fn children_by_parent() -> Vec<i32> {
    let own = nix::unistd::getpid().as_raw();
    everyone()
        .into_iter()
        .filter(|stat| stat.parent == own)
        .map(|stat| stat.pid)
        .collect()
}

/// Everything below a process, without itself.
pub(crate) fn descendants(of: i32, everyone: &[Stat]) -> Vec<&Stat> {
    let family = family(BTreeSet::from([of]), everyone);
    everyone
        .iter()
        .filter(|stat| stat.pid != of && family.contains(&stat.pid))
        .collect()
}

/// These processes and everything below them.
pub(crate) fn family(heads: BTreeSet<i32>, everyone: &[Stat]) -> BTreeSet<i32> {
    let mut family = heads;
    // Children mostly have larger ids than their parents, so that few rounds are needed.
    loop {
        let before = family.len();
        for stat in everyone {
            if family.contains(&stat.parent) {
                family.insert(stat.pid);
            }
        }
        if family.len() == before {
            return family;
        }
    }
}

/// This process and all above it.
pub(crate) fn own_line() -> BTreeSet<i32> {
    let mut line = BTreeSet::new();
    let mut pid = nix::unistd::getpid().as_raw();
    while pid > 0 && line.insert(pid) {
        pid = stat(pid).map_or(0, |stat| stat.parent);
    }
    line
}

/// Whether the environment that the process was started with holds all of `entries` (`KEY=VALUE`).
/// One that cannot be read (another user's process) holds nothing. `None` for an empty one, as it
/// also is for a moment while the process executes another program.
pub(crate) fn carries(pid: i32, entries: &[Vec<u8>]) -> Option<bool> {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return Some(false);
    };
    let held = |entry: &Vec<u8>| environ.split(|&byte| byte == 0).any(|held| held == entry);
    (!environ.is_empty()).then(|| entries.iter().all(held))
}

/// A variable of the environment that the process was started with; `None` where it has none, or
/// where its environment cannot be read.
pub(crate) fn variable(pid: i32, name: &str) -> Option<String> {
    let path = format!("/proc/{pid}/environ");
    let mut environ = std::fs::read(&path).ok()?;
    if environ.is_empty() {
        // As it also is for a moment while the process executes another program.
        std::thread::sleep(EXECUTING);
        environ = std::fs::read(&path).ok()?;
    }
    let entries = environ.split(|&byte| byte == 0);
    let value = |entry: &[u8]| {
        let rest = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(rest).into_owned())
    };
    entries
        .filter_map(value)
        .next()
        .filter(|value| !value.is_empty())
}

/// The words that the process was started with; none of a zombie.
pub(crate) fn command_line(pid: i32) -> Vec<String> {
    let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else {
        return Vec::new();
    };
    let words = line.split(|&byte| byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Whether a descriptor of the process is this file; `None` where its descriptors cannot be read.
pub(crate) fn holds(pid: i32, link: &str) -> Option<bool> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let is_it = |entry: std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == link)
    };
    Some(entries.flatten().any(is_it))
}

/// The user who started the process.
pub(crate) fn real_uid(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Clock ticks as time.
pub(crate) fn ticks(count: u64) -> Duration {
    let rate = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let rate = rate
        .and_then(|rate| u64::try_from(rate).ok())
        .filter(|&rate| rate > 0)
        .unwrap_or(100);
    Duration::from_millis(count.saturating_mul(1000) / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) b (c) S 7 8 9 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 555 1 2 3";
        let stat = parse_stat(line).unwrap();
        assert_eq!(
            (stat.pid, stat.command.as_str(), stat.state),
            (42, "a) b (c", b'S')
        );
        assert_eq!((stat.parent, stat.group, stat.session), (7, 8, 9));
        assert_eq!(
            (stat.own_ticks, stat.waited_ticks, stat.start_time),
            (23, 27, 555)
        );
    }

    #[test]
    fn a_torn_line_is_no_process() {
        assert_eq!(parse_stat(b"42 (sleep"), None);
        assert_eq!(parse_stat(b"42 (sleep) S 1 2"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let of = |pid, parent| {
            let mut stat = stat(std::process::id() as i32).unwrap();
            (stat.pid, stat.parent) = (pid, parent);
            stat
        };
        let everyone = [of(5, 9), of(9, 2), of(2, 1), of(3, 1), of(8, 5)];
        let found: Vec<i32> = descendants(2, &everyone)
            .iter()
            .map(|stat| stat.pid)
            .collect();
        assert_eq!(found, [5, 9, 8]);
    }

    #[test]
    fn own_line_reaches_up_to_the_parent() {
        let line = own_line();
        assert!(line.contains(&nix::unistd::getpid().as_raw()));
        assert!(line.contains(&nix::unistd::getppid().as_raw()));
    }
}
