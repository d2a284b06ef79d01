//! What this machine can do.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use descartes_kernel::sandbox::{Mechanism, NamespaceFacts};
use descartes_proc::landlock_abi;
use nix::unistd::geteuid;

/// The program that draws the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bwrap {
    /// Where it is.
    pub path: PathBuf,
    /// `0.8.0`.
    pub version: String,
}

/// What a sandbox can be made of here. That it works is found out by running it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// `None` where it is not installed.
    pub bwrap: Option<Bwrap>,
    /// The version of Landlock's interface; `None` where the kernel has none.
    pub landlock: Option<u32>,
    /// Whether programs are started as root.
    pub is_root: bool,
    /// What may keep `bwrap` from working.
    pub namespaces: NamespaceFacts,
}

/// Folders in which programs of the system are, wherever the PATH leads.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

impl Machine {
    /// Looks at this machine. `bwrap` is taken from the PATH of whoever starts the loop, but never from
    /// a folder that an agent can write (`avoid`).
    pub fn examine(path: Option<&OsStr>, avoid: &[PathBuf]) -> Self {
        let fallback = std::env::join_paths(SYSTEM_FOLDERS).unwrap_or_default();
        let path = path.unwrap_or(&fallback);
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let candidates = folders.map(|folder| folder.join("bwrap"));
        let real = candidates.filter_map(|file| std::fs::canonicalize(file).ok());
        let mut safe = real.filter(|file| !avoid.iter().any(|folder| file.starts_with(folder)));
        Self {
            bwrap: safe.find_map(|path| bwrap_at(&path)),
            landlock: landlock_abi(),
            is_root: geteuid().is_root(),
            namespaces: namespace_facts(),
        }
    }

    /// What a mechanism is made of here, for people.
    pub fn version(&self, mechanism: Mechanism) -> String {
        let bwrap = self
            .bwrap
            .as_ref()
            .filter(|_| mechanism == Mechanism::Bwrap);
        let bwrap = bwrap.map(|bwrap| format!("bwrap {}", bwrap.version));
        let landlock = self.landlock.map(|abi| format!("Landlock ABI {abi}"));
        let parts: Vec<String> = bwrap.into_iter().chain(landlock).collect();
        format!("{}, seccomp", parts.join(", "))
    }
}

fn namespace_facts() -> NamespaceFacts {
    let is = |switch: &str, value: &str| {
        let file = Path::new("/proc/sys").join(switch);
        std::fs::read_to_string(file).is_ok_and(|text| text.trim() == value)
    };
    let is_root = geteuid().is_root();
    NamespaceFacts {
        within: false,
        apparmor_restricts: !is_root && is("kernel/apparmor_restrict_unprivileged_userns", "1"),
        needs_root: !is_root && is("kernel/unprivileged_userns_clone", "0"),
        none_allowed: is("user/max_user_namespaces", "0"),
        container: is_in_container(),
    }
}

/// Told by the files and variables that are put into containers.
fn is_in_container() -> bool {
    const FILES: [&str; 4] = [
        "/run/.containerenv",
        "/.dockerenv",
        "/run/systemd/container",
        "/var/run/secrets/kubernetes.io",
    ];
    FILES.iter().any(|file| Path::new(file).exists()) || std::env::var_os("container").is_some()
}

fn bwrap_at(path: &Path) -> Option<Bwrap> {
    let output = Command::new(path).arg("--version").env_clear().output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(Bwrap {
        path: path.to_owned(),
        version: text.split_whitespace().last()?.to_owned(),
    })
}
