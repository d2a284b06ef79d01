//! Which programs work where.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::geteuid;

use crate::procfs::{self, Stat};

/// Whether a process of this user lives that is called `command` (or `command-part`, as git's own
/// helpers are), has lived for at least `lived`, and works in one of these folders. One whose folder
/// cannot be told counts.
///
/// Ages are told by the kernel's own clock, which no one sets.
pub fn is_at_work(command: &str, folders: &[PathBuf], lived: Duration) -> bool {
    let Some(uptime) = uptime() else {
        return true;
    };
    let is_old = |stat: &Stat| uptime.saturating_sub(procfs::ticks(stat.start_time)) >= lived;
    procfs::everyone()
        .iter()
        .filter(|stat| is_called(stat, command) && !stat.is_dead() && is_old(stat))
        .any(|stat| works_in(stat.pid, folders))
}

fn is_called(stat: &Stat, command: &str) -> bool {
    let rest = stat.command.strip_prefix(command);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn works_in(pid: i32, folders: &[PathBuf]) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    match std::fs::read_link(process.join("cwd")) {
        Ok(cwd) => folders.iter().any(|folder| cwd.starts_with(folder)),
        // Ended meanwhile, or somebody else's; else it hides itself from its own user.
        Err(_) => {
            let owner = std::fs::metadata(process).map(|meta| meta.uid());
            owner.is_ok_and(|owner| owner == geteuid().as_raw())
        }
    }
}

fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_by_name_age_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let here = [dir.path().canonicalize().unwrap()];
        let mut child = Command::new("sleep")
            .arg("60")
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let found = is_at_work("sleep", &here, Duration::ZERO);
        let elsewhere = is_at_work("sleep", &[here[0].join("in")], Duration::ZERO);
        let older = is_at_work("sleep", &here, Duration::from_secs(3600));
        let part_of_name = is_at_work("slee", &here, Duration::ZERO);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        assert!(!elsewhere);
        assert!(!part_of_name);
        assert!(!older);
        assert!(!is_at_work("sleep", &here, Duration::ZERO));
    }
}
