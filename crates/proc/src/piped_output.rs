//! Where output goes that is piped: the files that the readers of a pipe write, as `tee` does.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use crate::procfs;

/// How a descriptor was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    ToRead,
    ToWrite,
    ForBoth,
}

/// A descriptor of a process: what it stands for.
struct Descriptor {
    pid: i32,
    number: i32,
    target: PathBuf,
}

impl Descriptor {
    fn opened(&self) -> Option<Opened> {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{}", self.pid, self.number)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        match u32::from_str_radix(flags.trim(), 8).ok()? & 3 {
            0 => Some(Opened::ToRead),
            1 => Some(Opened::ToWrite),
            _ => Some(Opened::ForBoth),
        }
    }

    fn is_pipe(&self) -> bool {
        self.target.to_string_lossy().starts_with("pipe:[")
    }
}

/// The files that take what this process writes to a descriptor, where that is a pipe or a FIFO: those that its
/// readers only write, and those of whoever reads from these readers in turn. Empty for a descriptor of
/// another kind, and where a reader belongs to somebody else.
pub fn files_behind_pipe(descriptor: RawFd) -> Vec<PathBuf> {
    let Ok(first) = fs::read_link(format!("/proc/self/fd/{descriptor}")) else {
        return Vec::new();
    };
    if first.is_file() || first.is_dir() || first.starts_with("/dev") {
        return Vec::new();
    }
    let own = nix::unistd::getpid().as_raw();
    let others = procfs::pids().into_iter().filter(|pid| *pid != own);
    let open: Vec<Descriptor> = others.flat_map(descriptors).collect();
    let mut pipes = vec![first];
    let (mut seen, mut files) = (BTreeSet::new(), Vec::new());
    while let Some(pipe) = pipes.pop() {
        if !seen.insert(pipe.clone()) {
            continue;
        }
        let reads = |at: &&Descriptor| at.target == pipe && at.opened() == Some(Opened::ToRead);
        let readers: BTreeSet<i32> = open.iter().filter(reads).map(|at| at.pid).collect();
        let of_readers = open.iter().filter(|at| readers.contains(&at.pid));
        // What is open for both is a database, or a terminal: no log.
        for written in of_readers.filter(|at| at.opened() == Some(Opened::ToWrite)) {
            if written.is_pipe() {
                pipes.push(written.target.clone());
            } else if written.target.is_file() && !files.contains(&written.target) {
                files.push(written.target.clone());
            }
        }
    }
    files
}

fn descriptors(pid: i32) -> Vec<Descriptor> {
    let folder = format!("/proc/{pid}/fd");
    let target = |number: i32| fs::read_link(Path::new(&folder).join(number.to_string())).ok();
    let found = procfs::numbered(&folder).into_iter();
    let found = found.filter_map(|number| {
        let target = target(number)?;
        Some(Descriptor {
            pid,
            number,
            target,
        })
    });
    found.collect()
}
