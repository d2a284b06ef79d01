//! What the agent was given: environment, arguments, descriptors, ids.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::IsTerminal;

use nix::unistd::{getpgrp, getpid, getppid, getsid};

/// `NAME=VALUE` a line, sorted.
pub(super) fn environment() -> String {
    let mut entries: Vec<String> = env::vars_os()
        .map(|(name, value)| format!("{}={}\n", name.to_string_lossy(), value.to_string_lossy()))
        .collect();
    entries.sort();
    entries.concat()
}

/// One argument a line, our own name left out.
pub(super) fn arguments() -> String {
    env::args_os()
        .skip(1)
        .map(|word| format!("{}\n", word.to_string_lossy()))
        .collect()
}

/// `NUMBER TARGET` a line, sorted by number; the descriptor that reads them is left out.
pub(super) fn descriptors() -> String {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return String::new();
    };
    let mut open: Vec<(u32, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path())
                .ok()?
                .to_string_lossy()
                .into_owned();
            Some((number, target))
        })
        .filter(|(_, target)| !target.ends_with("/fd"))
        .collect();
    open.sort_unstable();
    open.iter()
        .fold(String::new(), |mut text, (number, target)| {
            let _ = writeln!(text, "{number} {target}");
            text
        })
}

/// The ids by which a process belongs to others.
pub(super) fn ids() -> String {
    let sid = getsid(None).map_or(0, nix::unistd::Pid::as_raw);
    format!(
        "pid={} ppid={} pgid={} sid={sid}\n",
        getpid(),
        getppid(),
        getpgrp()
    )
}

/// Which of our streams is a terminal, and whether one controls us.
pub(super) fn terminals() -> String {
    let word = |is_terminal: bool| if is_terminal { "tty" } else { "none" };
    format!(
        "stdin={} stdout={} stderr={} controlling={}\n",
        word(std::io::stdin().is_terminal()),
        word(std::io::stdout().is_terminal()),
        word(std::io::stderr().is_terminal()),
        word(File::open("/dev/tty").is_ok()),
    )
}
