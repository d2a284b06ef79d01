//! Attempts to get out of the sandbox, each with the layer that holds it. What is attacked lies in the world
//! of the test and nowhere else.

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;

use descartes_testkit::World;

use crate::sandbox::{has_bwrap, world};

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
    ("new user namespace", "seccomp"),
    ("user namespace by a tool", "seccomp"),
    ("keyring", "seccomp"),
    ("io_uring", "seccomp"),
    ("bpf", "seccomp"),
    ("terminal input", "seccomp"),
    ("another terminal", "its own devices"),
    ("core_pattern", "read-only /proc/sys"),
];

/// What gets through at `workspace`, as the book says; `strict` holds the first.
const OUT: [&str; 2] = ["service on loopback", "a stale .git/config.lock"];

/// Runs all attempts at a level; what came of each.
fn attempts(level: &str) -> (World, BTreeMap<String, String>) {
    let world = world("");
    for (file, text) in [
        ("project/ci/check.sh", "exit 1\n"),
        ("project/.descartes/config.toml", "# mine\n"),
        ("other/file", "mine\n"),
        ("home/.config/autostart/keep", ""),
        ("bin/tool", "mine\n"),
        ("state/loops/keep", ""),
    ] {
        let path = world.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(world.bin().join("escape.py"), SCRIPT).unwrap();
    let mut outside = world.command("sleep");
    let mut outside = outside.arg("600").stdin(Stdio::null()).spawn().unwrap();
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port().to_string();
    let abstract_name = format!("{}-abstract", world.mark());
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let _control = UnixListener::bind(world.runtime().join("service.sock")).unwrap();
    let before = listing(&world);
    let script = world.bin().join("escape.py");
    let mut command = world.descartes([
        "sandbox",
        "--backend",
        "generic",
        "--sandbox",
        level,
        "--verify",
        "sh ci/check.sh",
        "--sandbox-read",
    ]);
    command
        .arg(&script)
        .args(["--", "python3"])
        .arg(&script)
        .arg(world.root())
        .args([&outside.id().to_string(), &port, &abstract_name])
        .env("GITHUB_TOKEN", "t0ken");
    let ended = world.run(command);
    ended.assert_code(0);
    let _ = outside.kill();
    let _ = outside.wait();
    assert_eq!(listing(&world), before, "files outside were changed");
    let lines = ended.stdout();
    let rows = lines.lines().map(|line| {
        let (name, came) = line.split_once('\t').expect(line);
        (name.to_owned(), came.to_owned())
    });
    (world, rows.collect())
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

#[test]
fn nothing_gets_out_of_workspace_but_what_the_book_says() {
    if !can_be_tested() {
        return;
    }
    let (_world, came) = attempts("workspace");
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
}

#[test]
fn strict_holds_services_on_loopback_too() {
    if !can_be_tested() {
        return;
    }
    let (_world, came) = attempts("strict");
    // In a home directory that is hidden, what is written is thrown away.
    let out = came.iter().filter(|(_, came)| came.starts_with("out"));
    let out: Vec<&str> = out.map(|(name, _)| name.as_str()).collect();
    let harmless = |name: &&&str| !name.contains("~/") && !name.contains("symlink");
    let out: Vec<&&str> = out.iter().filter(harmless).collect();
    assert_eq!(out, [&"a stale .git/config.lock"]);
}
