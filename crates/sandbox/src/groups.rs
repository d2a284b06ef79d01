//! Control groups: which this user may make, and one around a run. Everything goes through files, below
//! the folder where the kernel shows them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use descartes_kernel::sandbox::{GroupFacts, GroupOrder, LIMIT_REACHED, LimitFacts};
use nix::unistd::{AccessFlags, access, geteuid};

/// Where the kernel shows them, as distributions mount it.
const MOUNTED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Begins the names of ours.
const NAME: &str = "descartes-";

/// Looks at this machine.
pub(crate) fn look() -> LimitFacts {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut mounted = MOUNTED.iter().map(Path::new);
    let root = mounted.find(|folder| folder.join("cgroup.controllers").is_file());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    LimitFacts {
        groups: root.and_then(|root| groups(root, &own)),
        is_root: geteuid().is_root(),
        memory: total_memory(&memory),
        has_session: std::env::var_os("XDG_RUNTIME_DIR")
            .is_some_and(|folder| Path::new(&folder).join("systemd/private").exists()),
    }
}

fn total_memory(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// The group that this process is in, and all above it.
fn groups(root: &Path, own: &str) -> Option<Vec<GroupFacts>> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Of a container that sees more than its own groups, the path leads out of what is mounted.
    if Path::new(own)
        .components()
        .any(|part| part.as_os_str() == "..")
    {
        return None;
    }
    let folder = root.join(own);
    let all = folder.ancestors().take_while(|path| path.starts_with(root));
    Some(all.map(facts_of).collect())
}

fn facts_of(path: &Path) -> GroupFacts {
    let can = |file: &Path| access(file, AccessFlags::W_OK).is_ok();
    let controllers = fs::read_to_string(path.join("cgroup.subtree_control"));
    let controllers = controllers.unwrap_or_default();
    GroupFacts {
        path: path.to_owned(),
        writable: can(path) && can(&path.join("cgroup.procs")),
        controllers: controllers.split_whitespace().map(str::to_owned).collect(),
    }
}

/// A control group around a run.
#[derive(Debug)]
pub(crate) struct RunGroup {
    path: PathBuf,
    own: PathBuf,
}

/// Moves this process into a group: what it starts begins there.
pub(crate) fn move_into(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

impl RunGroup {
    /// Makes it, and moves this process into it.
    pub(crate) fn enter(order: &GroupOrder) -> io::Result<Self> {
        let group = Self::make(order)?;
        match move_into(&group.path) {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    /// Makes it, with its limits.
    pub(crate) fn make(order: &GroupOrder) -> io::Result<Self> {
        remove_those_of_the_dead(&order.parent);
        let path = order.parent.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path)?;
        let group = Self {
            path,
            own: order.own.clone(),
        };
        let set = |file: &str, value: Option<u64>| match value {
            Some(value) => fs::write(group.path.join(file), value.to_string()),
            None => Ok(()),
        };
        let made = set("pids.max", order.processes)
            .and_then(|()| set("memory.max", order.memory))
            .inspect(|()| {
                // Else what is over the limit fills the swap first. Not every kernel counts that.
                let _ = set("memory.swap.max", order.memory.map(|_| 0));
            });
        match made {
            Ok(()) => Ok(group),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves this process back: it is not counted, and can take the group away.
    pub(crate) fn leave(&self) -> io::Result<()> {
        move_into(&self.own)
    }

    /// What was denied, as lines for the log.
    pub(crate) fn reached(&self) -> Vec<String> {
        let events = |file: &str, key: &str| {
            let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|count| count.trim().parse::<u64>().ok())
                .filter(|count| *count > 0)
        };
        let memory = events("memory.events", "oom_kill ");
        let processes = events("pids.events", "max ");
        let memory = memory.map(|_| format!("{LIMIT_REACHED}memory"));
        let processes = processes.map(|_| format!("{LIMIT_REACHED}processes"));
        memory.into_iter().chain(processes).collect()
    }

    /// Takes it away, once nothing is in it.
    pub(crate) fn remove(&self) {
        // The next run removes what stays.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Groups of runs whose first stage was killed.
fn remove_those_of_the_dead(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let pid = pid.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // One with processes in it cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    use super::*;

    /// A folder that looks like a tree of control groups.
    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("user");
        fs::create_dir_all(user.join("session")).unwrap();
        for (group, controllers) in [(folder.path(), "memory pids\n"), (&user, "memory pids\n")] {
            fs::write(group.join("cgroup.subtree_control"), controllers).unwrap();
            fs::write(group.join("cgroup.procs"), "").unwrap();
        }
        fs::write(user.join("session/cgroup.procs"), "").unwrap();
        folder
    }

    #[test]
    fn the_groups_above_this_process_are_found_and_a_run_gets_one_of_its_own() {
        let folder = tree();
        let found = groups(folder.path(), "3:memory:/x\n0::/user/session\n").unwrap();
        let paths: Vec<&Path> = found.iter().map(|group| group.path.as_path()).collect();
        let (root, user) = (folder.path(), folder.path().join("user"));
        assert_eq!(paths, [&user.join("session"), &user, root]);
        assert_eq!(found[1].controllers, ["memory", "pids"]);
        let facts = LimitFacts {
            groups: Some(found),
            is_root: false,
            memory: Some(4 << 30),
            has_session: false,
        };
        let order = facts.limits().group.unwrap();
        let dead = user.join("descartes-4194999");
        fs::create_dir(&dead).unwrap();
        let made = RunGroup::make(&order).unwrap();
        let moved = made.path.join("cgroup.procs").exists();
        assert!(!moved, "for a run, what is started moves itself");
        fs::remove_dir_all(&made.path).unwrap();
        let group = RunGroup::enter(&order).unwrap();
        assert!(!dead.exists(), "a group of a dead run is removed");
        let read = |file: &str| fs::read_to_string(group.path.join(file)).unwrap();
        assert_eq!(group.path.parent(), Some(user.as_path()));
        assert_eq!(
            (&*read("pids.max"), &*read("memory.max")),
            ("4096", "3221225472")
        );
        assert_eq!(read("cgroup.procs"), "0", "it moved itself");
        group.leave().unwrap();
        let own = fs::read_to_string(user.join("session/cgroup.procs")).unwrap();
        assert_eq!(own, "0", "and back");
        assert!(group.reached().is_empty());
        fs::write(group.path.join("memory.events"), "low 0\noom_kill 2\n").unwrap();
        fs::write(group.path.join("pids.events"), "max 0\n").unwrap();
        assert_eq!(group.reached(), [format!("{LIMIT_REACHED}memory")]);
    }

    /// A program in a group that was made for real, with these limits; how it ended and what is told of it.
    /// Whatever it left is ended.
    fn run_within(order: &GroupOrder, script: &str) -> (ExitStatus, Vec<String>) {
        let group = RunGroup::make(order).unwrap();
        let script = format!("echo 0 > \"$0/cgroup.procs\"; {script}");
        let mut command = Command::new("sh");
        let ended = command.args(["-c", &script]).arg(&group.path).status();
        let ended = ended.unwrap();
        let told = group.reached();
        fs::write(group.path.join("cgroup.kill"), "1").unwrap();
        while group.path.exists() {
            // Until the last one in it is gone.
            group.remove();
            std::thread::yield_now();
        }
        (ended, told)
    }

    #[test]
    fn what_takes_too_much_is_ended_where_groups_can_be_made() {
        let order = look().limits().group;
        let order = order.filter(|order| order.memory.is_some() && order.processes.is_some());
        let Some(order) = order else {
            eprintln!(
                "NOT TESTED: no control group can be made here that limits memory and processes"
            );
            return;
        };
        let small = GroupOrder {
            memory: Some(64 << 20),
            processes: Some(40),
            ..order
        };
        let (ended, told) = run_within(&small, "exec tail /dev/zero");
        assert_eq!(ended.signal(), Some(9), "{ended:?}");
        assert_eq!(told, [format!("{LIMIT_REACHED}memory")]);
        let bomb = "i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done";
        let (_, told) = run_within(&small, bomb);
        assert_eq!(told, [format!("{LIMIT_REACHED}processes")]);
        let (ended, told) = run_within(&small, "true");
        assert!(ended.success() && told.is_empty(), "{ended:?} {told:?}");
    }

    #[test]
    fn without_groups_of_version_2_there_are_none() {
        let folder = tree();
        assert_eq!(groups(folder.path(), "3:memory:/x\n"), None);
        assert_eq!(groups(folder.path(), "0::/../other\n"), None);
        assert_eq!(total_memory("MemTotal:    1024 kB\n"), Some(1 << 20));
        assert_eq!(total_memory(""), None);
    }
}
