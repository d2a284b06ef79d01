//! Attempts to get out of the sandbox, each with the layer that holds it. What is attacked lies in the world
//! of the test and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};

use descartes_testkit::World;

use crate::sandbox::{has_bwrap, world};
use crate::sandbox_asked::without_bwrap;

const SCRIPT: &str = include_str!("escape.py");

/// What holds an attempt at `workspace`.
const HELD_BY: &[(&str, &str)] = &[
    ("write ~/.bashrc", "read-only root"),
    ("write autostart", "read-only root"),
    ("write authorized_keys", "hidden"),
    ("write ~/.gitconfig", "read-only root"),
    ("write another project", "private /tmp"),
    ("write a program on PATH", "read-only root"),
    ("write through a symlink", "read-only root"),
    ("hard link to a file outside", "another mount"),
    ("read ~/.ssh", "hidden"),
    ("read ~/.netrc", "hidden"),
    ("read another agent's login", "hidden"),
    ("read a token of the environment", "not passed on"),
    ("read through /proc/PID/root", "process namespace"),
    ("read /proc/PID/environ", "process namespace"),
    ("list the state folder", "hidden"),
    ("write the state folder", "hidden"),
    ("gate script in place", "locked"),
    ("gate script by unlink", "locked"),
    ("gate script by rename", "locked"),
    ("gate script by its folder", "pinned"),
    ("gate script by hard link", "locked"),
    ("gate script by chmod", "locked"),
    (".descartes edited", "locked"),
    (".descartes moved", "locked"),
    ("git hook", "locked"),
    ("git config", "locked"),
    ("git config.worktree", "locked"),
    ("git attributes", "locked"),
    (".git moved and made anew", "pinned"),
    ("control socket", "hidden"),
    ("abstract socket", "Landlock"),
    ("signal a process outside", "process namespace"),
    ("ptrace a process outside", "seccomp"),
    ("pidfd of a process outside", "process namespace"),
    ("mount", "seccomp"),
    ("umount a lock", "seccomp"),
    ("keyring", "seccomp"),
    ("io_uring", "seccomp"),
    ("bpf", "seccomp"),
    ("terminal input", "seccomp"),
    ("another terminal", "its own devices"),
    ("core_pattern", "read-only /proc/sys"),
    ("write ~/.profile", "read-only root"),
    ("write ~/.local/bin/cargo", "read-only root"),
    ("write ~/.cargo/config.toml", "read-only root"),
    ("write ~/.config/systemd/user", "read-only root"),
    ("write the agent's ~/.claude/settings.json", "locked"),
    ("write the agent's hooks ~/.claude/hooks", "locked"),
    ("write a crontab", "read-only root"),
    ("leave a file in /tmp", "private /tmp"),
    ("leave a file in /var/tmp", "private /var/tmp"),
    ("leave a file in /dev/shm", "its own devices"),
    ("read ~/.aws", "hidden"),
    ("read ~/.config/gh", "hidden"),
    ("read ~/.npmrc", "hidden"),
    ("read ~/.bash_history", "hidden"),
    ("read ~/.gnupg", "hidden"),
    ("read a journal", "hidden"),
    ("read through /proc/PID/cwd", "process namespace"),
    ("gate script by symlink", "locked"),
    ("gate script by truncation", "locked"),
    ("the work tree moved", "pinned"),
    ("git modules", "locked"),
    ("docker socket", "hidden"),
    ("session bus", "hidden"),
    ("ssh agent", "private /tmp"),
    ("sockets in /run", "private /run"),
    ("systemd-run", "private /run"),
    ("kill a process outside", "process namespace"),
    ("memory of a process outside", "process namespace"),
    ("process_vm_readv", "seccomp"),
    ("a descriptor of a process outside", "process namespace"),
    ("descriptors of the host", "closed before the start"),
    ("a daemon that stays", "process namespace"),
    ("ptrace a child", "seccomp"),
    ("join a namespace", "process namespace"),
    ("setns", "seccomp"),
    ("perf_event_open", "seccomp"),
    ("userfaultfd", "seccomp"),
    ("open_by_handle_at", "seccomp"),
    ("AF_VSOCK", "seccomp"),
    ("chroot", "no capabilities"),
    ("mknod of a disk", "no capabilities"),
    ("sysrq", "read-only /proc"),
    ("ld.so.preload", "read-only root"),
    ("/etc/passwd through a symlink", "read-only root"),
    ("a file of another user", "no capabilities"),
    ("load a module", "no capabilities"),
    ("set the host's name", "no capabilities"),
    ("packet filters", "seccomp"),
    ("packets made by hand", "seccomp"),
    ("a user namespace, then cover a lock", "seccomp"),
    ("a user namespace, then make a lock writable", "seccomp"),
    ("a user namespace, then make the root writable", "seccomp"),
    ("a user namespace, then uncover ~/.ssh", "seccomp"),
    ("a user namespace, then bind the home directory", "seccomp"),
    ("a user namespace, then mount /proc", "seccomp"),
    (
        "a user namespace, then an overlay over git hooks",
        "seccomp",
    ),
    ("a user namespace, then pivot_root", "seccomp"),
    ("a user namespace, then open_tree", "seccomp"),
    ("a user namespace, then open_tree_attr", "seccomp"),
    ("a user namespace, then move_mount", "seccomp"),
    ("a user namespace, then fsopen", "seccomp"),
    ("a user namespace, then mount_setattr", "seccomp"),
    ("a user namespace, then join the first namespace", "seccomp"),
    ("a user namespace, then out of a chroot", "hidden"),
    (
        "a user namespace, then name another user",
        "no capabilities",
    ),
    (
        "a user namespace, then a file of another user",
        "no capabilities",
    ),
    ("a user namespace, then mknod of a disk", "no capabilities"),
    ("a user namespace, then terminal input", "seccomp"),
    (
        "a user namespace, then signal a process outside",
        "process namespace",
    ),
    ("a user namespace, then abstract socket", "Landlock"),
    ("a user namespace, then packet filters", "seccomp"),
    ("a user namespace, then packets made by hand", "seccomp"),
];

/// What gets through at `workspace`, as the book says; `strict` holds the first two.
const OUT: [&str; 3] = [
    "service on loopback",
    "service on loopback by UDP",
    "a stale .git/config.lock",
];

/// Who tries to get out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attacker {
    /// Whoever runs the tests.
    Tester,
    /// An ordinary user; the tests run as root.
    Nobody,
}

/// A program of the attacker's.
fn command_as(world: &World, attacker: Attacker, program: &str) -> Command {
    match attacker {
        Attacker::Tester => world.command(program),
        Attacker::Nobody => {
            let mut command = world.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
            command
        }
    }
}

/// A service that answers every datagram.
fn echo_datagrams() -> u16 {
    let service = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut byte = [0];
        while let Ok((_, from)) = service.recv_from(&mut byte) {
            let _ = service.send_to(&byte, from);
        }
    });
    port
}

/// What is seen outside of what an attempt left there; it is taken away.
fn seen_outside(kind: &str, what: &str) -> bool {
    match kind {
        "file" => std::fs::remove_file(what).is_ok(),
        _ => {
            let mut wanted = what.replace(' ', "\0").into_bytes();
            wanted.push(0);
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let mut lines =
                processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
            lines.any(|line| line == wanted)
        }
    }
}

/// Files that are attacked.
const FILES: [(&str, &str); 16] = [
    ("project/ci/check.sh", "exit 1\n"),
    ("project/.descartes/config.toml", "# mine\n"),
    ("project/.git/modules/keep", ""),
    ("other/file", "mine\n"),
    ("home/.config/autostart/keep", ""),
    ("home/.config/systemd/user/keep", ""),
    ("home/.config/gh/hosts.yml", "a login\n"),
    ("home/.local/bin/cargo", "mine\n"),
    ("home/.cargo/config.toml", "# mine\n"),
    ("home/.aws/credentials", "a key\n"),
    ("home/.gnupg/secring.gpg", "a key\n"),
    ("home/.npmrc", "a key\n"),
    ("home/.bash_history", "a word\n"),
    ("home/.profile", "# mine\n"),
    ("bin/tool", "mine\n"),
    ("state/loops/keep", "a journal\n"),
];

/// What holds the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// bwrap, with Landlock and seccomp inside.
    Whole,
    /// Landlock and seccomp alone.
    Weaker,
}

/// Runs all attempts at a level; what came of each.
fn attempts(level: &str, attacker: Attacker, held: Held) -> BTreeMap<String, String> {
    let world = world("");
    for (file, text) in FILES {
        let path = world.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir_all(world.root().join("tmp")).unwrap();
    let script = world.bin().join("escape.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let abstract_name = format!("{}-abstract", world.mark());
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let sockets = [
        "runtime/service.sock",
        "runtime/bus",
        "runtime/docker.sock",
        "tmp/ssh-agent.sock",
    ];
    let _sockets = sockets.map(|path| UnixListener::bind(world.root().join(path)).unwrap());
    if attacker == Attacker::Nobody {
        let mut own = world.command("chown");
        own.args(["-R", "65534:65534"]).arg(world.root());
        world.run(own).assert_code(0);
    }
    if nix::unistd::geteuid().is_root() {
        let foreign = world.path("foreign");
        std::fs::write(&foreign, "of another\n").unwrap();
        std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&foreign, Some(65533), Some(65533)).unwrap();
    }
    let mut outside = command_as(&world, attacker, "sleep");
    let mut outside = outside.arg("600").stdin(Stdio::null()).spawn().unwrap();
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port().to_string();
    let confined = |words: &[&str]| {
        let program = descartes_testkit::descartes();
        let mut command = command_as(&world, attacker, program.to_str().unwrap());
        let flags = ["--backend", "claude", "--verify", "sh ci/check.sh"];
        command.arg("sandbox").args(flags);
        command.args(["--sandbox", level, "--sandbox-read"]);
        command.arg(&script).arg("--").args(words);
        command
            .current_dir(world.project())
            .env("GITHUB_TOKEN", "t0ken");
        if held == Held::Weaker {
            command.env("PATH", without_bwrap(&world));
        }
        command
    };
    // Makes what it protects and what is missing.
    world.run(confined(&["true"])).assert_code(0);
    let before = listing(&world);
    let mut command = confined(&["python3"]);
    command.arg(&script).arg(world.root());
    command.args([&outside.id().to_string(), &port, &abstract_name]);
    command.arg(echo_datagrams().to_string());
    let ended = world.run(command);
    ended.assert_code(0);
    assert_eq!(outside.try_wait().unwrap(), None, "it was killed");
    let _ = outside.kill();
    let _ = outside.wait();
    if held == Held::Whole {
        assert_eq!(listing(&world), before, "files outside were changed");
    }
    let lines = ended.stdout();
    let rows = lines.lines().map(|line| {
        let (name, came) = line.split_once('\t').expect(line);
        let came = match came.split_once('\t') {
            Some((kind @ ("file" | "process"), what)) => match seen_outside(kind, what) {
                true => "out".to_owned(),
                false => "held, not seen outside".to_owned(),
            },
            _ => came.to_owned(),
        };
        (name.to_owned(), came)
    });
    rows.collect()
}

/// Files outside of the work tree, and those in it that are locked, with what they hold.
fn listing(world: &World) -> Vec<(String, String)> {
    let mut command = world.command("sh");
    let find = "find home other bin state/loops project/ci project/.descartes project/.git/hooks \
         project/.git/config project/.git/info -type f ! -path '*/__pycache__/*' \
         -exec sha256sum {} + | sort -k2";
    command.args(["-c", find]).current_dir(world.root());
    let text = world.run(command).stdout();
    let rows = text.lines().filter_map(|line| line.split_once("  "));
    rows.map(|(hash, file)| (file.to_owned(), hash.to_owned()))
        .collect()
}

#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn can_be_tested() -> bool {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !python.is_ok_and(|output| output.status.success()) || cfg!(not(target_arch = "x86_64")) {
        eprintln!("NOT TESTED: the attempts need python3 and an x86-64 processor");
        return false;
    }
    has_bwrap()
}

/// Nothing but what the book says.
#[track_caller]
fn check_workspace(attacker: Attacker) {
    let came = attempts("workspace", attacker, Held::Whole);
    let mut wrong = Vec::new();
    for (name, layer) in HELD_BY {
        match came.get(*name) {
            Some(came) if came.starts_with("held") => {}
            other => wrong.push(format!("{name}: {other:?}, though {layer} should hold it")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for name in OUT {
        assert!(came[name].starts_with("out"), "{name} is held: say so");
    }
    assert_eq!(came.len(), HELD_BY.len() + OUT.len(), "{came:#?}");
    assert!(
        came.len() >= 73 + 9,
        "the attempts of the trial, and those of a root"
    );
}

#[track_caller]
fn check_strict(attacker: Attacker) {
    let came = attempts("strict", attacker, Held::Whole);
    // In a home directory that is hidden, what is written is thrown away.
    let out = came.iter().filter(|(_, came)| came.starts_with("out"));
    let out: Vec<&str> = out.map(|(name, _)| name.as_str()).collect();
    let harmless = |name: &&&str| !name.contains("~/") && !name.contains("a symlink");
    let out: Vec<&&str> = out.iter().filter(harmless).collect();
    assert_eq!(out, [&"a stale .git/config.lock"]);
}

#[test]
fn nothing_gets_out_of_workspace_but_what_the_book_says() {
    if can_be_tested() {
        check_workspace(Attacker::Tester);
    }
}

#[test]
fn strict_holds_services_on_loopback_too() {
    if can_be_tested() {
        check_strict(Attacker::Tester);
    }
}

#[test]
fn an_ordinary_user_gets_no_further() {
    if can_be_tested() && nix::unistd::geteuid().is_root() {
        check_workspace(Attacker::Nobody);
        check_strict(Attacker::Nobody);
    }
}

/// What gets through Landlock and seccomp alone, for an ordinary user.
const OUT_OF_LANDLOCK: &[&str] = &[
    "write the agent's ~/.claude/settings.json",
    "write the agent's hooks ~/.claude/hooks",
    "leave a file in /var/tmp",
    "leave a file in /dev/shm",
    "gate script by symlink",
    "gate script by truncation",
    "git modules",
    "docker socket",
    "session bus",
    "ssh agent",
    "a daemon that stays",
    "service on loopback by UDP",
    "gate script in place",
    "gate script by unlink",
    "gate script by rename",
    "gate script by its folder",
    "gate script by hard link",
    "gate script by chmod",
    ".descartes edited",
    ".descartes moved",
    "git hook",
    "git config",
    "git config.worktree",
    "git attributes",
    ".git moved and made anew",
    "control socket",
    "pidfd of a process outside",
    "service on loopback",
    "a stale .git/config.lock",
];

#[test]
fn the_fallback_lets_through_what_the_book_says_and_nothing_else() {
    if !can_be_tested() || descartes_proc::landlock_abi().is_none_or(|abi| abi < 6) {
        return;
    }
    let attacker = match nix::unistd::geteuid().is_root() {
        true => Attacker::Nobody,
        false => Attacker::Tester,
    };
    let came = attempts("workspace", attacker, Held::Weaker);
    let out = came.iter().filter(|(_, came)| came.starts_with("out"));
    let out: BTreeSet<&str> = out.map(|(name, _)| name.as_str()).collect();
    let told: BTreeSet<&str> = OUT_OF_LANDLOCK.iter().copied().collect();
    assert_eq!(out, told);
}

/// What the agent leaves for its gates: a library that is loaded first, programs that are found first, files that
/// shells read.
#[test]
fn nothing_that_an_agent_leaves_is_loaded_into_its_gates() {
    if !has_bwrap() {
        return;
    }
    let world = world(
        "export LD_PRELOAD=$PWD/evil.so BASH_ENV=$PWD/evil.sh ENV=$PWD/evil.sh PATH=$PWD:$PATH
         touch done.txt evil.so; echo 'touch stolen' > evil.sh; cp evil.sh cat; chmod +x cat
         for place in ~/.profile ~/.bashrc ~/.pam_environment ~/.config/environment.d/x.conf; do
           echo LD_PRELOAD=$PWD/evil.so >> $place; done
         mkdir -p ~/.local/bin; cp cat ~/.local/bin/cat; IFS=:; for place in $PATH; do cp cat $place/cat; done
         echo COMPLETE",
    );
    let gate = "env | grep -E 'LD_PRELOAD|BASH_ENV|evil' && exit 1; cat done.txt; test ! -e stolen";
    let words = ["loop", "start", "--command", "agent", "--prompt", "go"];
    let flags = ["--sandbox", "workspace", "--verify", gate];
    let ended = crate::task_common::run(&world, &[&words[..], &flags].concat());
    ended.assert_code(0);
    assert!(world.has("evil.so") && !world.has("stolen"));
    assert!(!world.bin().join("cat").exists(), "nothing is on the PATH");
    assert!(!world.home().join(".local/bin/cat").exists());
    for file in [".profile", ".pam_environment"] {
        assert!(!world.home().join(file).exists(), "{file}");
    }
}

const BOOK: &str = include_str!("../../../../docs/sandbox.md");

#[test]
fn the_book_lists_every_attempt_that_gets_through() {
    for name in OUT {
        assert!(BOOK.contains(&format!("| {name} |")), "{name}");
    }
    let weaker = BOOK
        .lines()
        .find(|line| line.starts_with("| gets through |"));
    let weaker = names_in(weaker.unwrap());
    let told: BTreeSet<&str> = OUT_OF_LANDLOCK.iter().copied().collect();
    assert_eq!(weaker, told);
}

/// The names in the second column of a row.
fn names_in(row: &str) -> BTreeSet<&str> {
    let column = row.trim_matches('|').split(" | ").nth(1).unwrap();
    let names = column.trim().split("; ");
    names.map(|name| name.trim_matches('`')).collect()
}

#[test]
fn the_book_names_every_attempt_with_the_layer_that_holds_it() {
    let layers: BTreeSet<&str> = HELD_BY.iter().map(|(_, layer)| *layer).collect();
    for layer in layers {
        let row = BOOK
            .lines()
            .rev()
            .find(|line| line.starts_with(&format!("| {layer} | ")));
        let told = names_in(row.unwrap_or_else(|| panic!("no row for {layer}")));
        let held = HELD_BY.iter().filter(|(_, held)| *held == layer);
        let held: BTreeSet<&str> = held.map(|(name, _)| *name).collect();
        assert_eq!(told, held, "{layer}");
    }
}
