//! Machines that can and machines that cannot: an ordinary user, root, a container without namespaces, one that
//! lets nobody mount `/proc`, AppArmor's limit on user namespaces, a read-only home. What is there is used and
//! said; nothing is silently off.

use std::process::Command;

use descartes_testkit::World;

use crate::sandbox::{has_bwrap, world};
use crate::sandbox_asked::without_bwrap;

/// Tries to write outside of its work tree and to read a key, and does its work.
const STEALS: &str =
    "touch done.txt; cat ~/.ssh/id_rsa; echo stolen >> ~/.bashrc; echo \"got $?\"; echo COMPLETE";

const START: [&str; 8] = [
    "loop",
    "start",
    "--command",
    "agent",
    "--prompt",
    "go",
    "--verify",
    "sh check.sh",
];

fn has_landlock() -> bool {
    descartes_proc::landlock_abi().is_some()
}

/// `descartes` inside of a view that bwrap draws, which stands for a container.
fn contained(world: &World, view: &[&str], words: &[&str]) -> Command {
    let mut command = world.command("bwrap");
    command.args(["--bind", "/", "/", "--dev-bind", "/dev", "/dev"]);
    command.args(["--unshare-user", "--unshare-pid", "--die-with-parent"]);
    command.args(view).arg("--");
    command.arg(descartes_testkit::descartes()).args(words);
    command
}

/// No user namespace can be made in it, as in a container with the usual seccomp rules.
const NO_NAMESPACES: &[&str] = &["--proc", "/proc", "--disable-userns", "--cap-drop", "ALL"];
/// Parts of `/proc` are covered, so that no new one can be mounted.
const COVERED_PROC: &[&str] = &[
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--cap-add",
    "ALL",
];

/// The fallback holds what it can, says what it is, and `strict` is refused.
#[track_caller]
fn check_fallback(world: &World, start: &dyn Fn(&[&str]) -> Command, why: &[&str]) {
    let level = |level: &'static str| [&START[..], &["--sandbox", level, "--force"]].concat();
    let ended = world.run(start(&level("workspace")));
    ended.assert_code(0);
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains("workspace, weaker (Landlock ABI"), "{said}");
    assert!(why.iter().any(|why| said.contains(why)), "{said}");
    assert!(!said.contains("a key") && said.contains("got 2"), "{said}");
    let bashrc = std::fs::read_to_string(world.home().join(".bashrc")).unwrap();
    assert_eq!(bashrc, "# mine\n");
    let strict = world.run(start(&level("strict")));
    strict.assert_code(65);
    let said = strict.stderr();
    assert!(said.contains("this sandbox needs bwrap"), "{said}");
    assert!(said.contains("hint: "), "{said}");
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
    let hint = hint.and_then(|hint| hint.strip_suffix("; or use --sandbox workspace"));
    assert!(hint.is_some(), "{said}");
    let hint = hint.unwrap_or_default();
    // `bwrap` is there: neither is it to be installed, nor is the reader to be sent in a circle.
    assert!(!hint.contains("install bubblewrap"), "{said}");
    assert!(!hint.contains("doctor"), "{said}");
    // `doctor` says the same.
    let told = world.run(start(&["doctor"])).stdout();
    assert!(
        told.contains("workspace works here, weaker, and strict does not"),
        "{told}"
    );
    assert!(told.contains(hint), "{told}");
    // So does a command that is tried.
    let tried = world.run(start(&["sandbox", "--", "true"]));
    tried.assert_code(0);
    let said = tried.stderr();
    assert!(said.contains("the sandbox is weaker here: "), "{said}");
}

#[test]
fn in_a_container_without_namespaces_landlock_holds_and_that_is_said() {
    if !has_bwrap() || !has_landlock() {
        return;
    }
    let world = world(STEALS);
    check_fallback(
        &world,
        &|words| contained(&world, NO_NAMESPACES, words),
        &[
            "No space left on device",
            "Operation not permitted",
            "namespace",
        ],
    );
}

#[test]
fn where_proc_cannot_be_mounted_landlock_holds_and_that_is_said() {
    if !has_bwrap() || !has_landlock() {
        return;
    }
    let world = world(STEALS);
    check_fallback(
        &world,
        &|words| contained(&world, COVERED_PROC, words),
        // Whoever is not root gets not even so far.
        &["mount proc", "uid map"],
    );
}

#[test]
fn where_apparmor_keeps_bwrap_from_namespaces_landlock_holds_and_that_is_said() {
    if !has_landlock() {
        return;
    }
    let world = world(STEALS);
    // What it says there, word for word.
    world.program(
        "bwrap",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.9.0 && exit 0\n\
         echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n",
    );
    let path = without_bwrap(&world);
    let start = |words: &[&str]| {
        let mut command = world.descartes(words);
        command.env("PATH", &path);
        command
    };
    check_fallback(&world, &start, &["setting up uid map: Permission denied"]);
}

#[test]
fn an_ordinary_user_gets_both_levels() {
    if !has_bwrap() || !nix::unistd::geteuid().is_root() {
        return;
    }
    for level in ["workspace", "strict"] {
        let world = world(
            "touch done.txt; git add -A; git commit -qm work || exit 9
             cat ~/.ssh/id_rsa; echo stolen >> ~/.bashrc; echo COMPLETE",
        );
        let mut own = world.command("chown");
        own.args(["-R", "65534:65534"]).arg(world.root());
        world.run(own).assert_code(0);
        let mut command = world.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(descartes_testkit::descartes());
        command.args(START).args(["--sandbox", level]);
        let ended = world.run(command);
        ended.assert_code(0);
        let said = ended.stdout() + &ended.stderr();
        assert!(said.contains(&format!("sandbox: {level} (bwrap")), "{said}");
        assert!(!said.contains("a key"), "{said}");
        let bashrc = std::fs::read_to_string(world.home().join(".bashrc")).unwrap();
        assert_eq!(bashrc, "# mine\n", "{level}");
        world.assert_no_survivors();
    }
}

#[test]
fn a_home_that_cannot_be_written_is_told_at_once() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    let claude = world.home().join(".claude");
    std::fs::create_dir(&claude).unwrap();
    let mode = |mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    world.program("claude", "#!/bin/sh\ntouch started\n");
    mode(0o555);
    let words = ["loop", "start", "--command", "claude", "--prompt", "go"];
    let flags = ["--permissions", "all", "--sandbox", "workspace"];
    let began = std::time::Instant::now();
    let refused = world.run(world.descartes([&words[..], &flags].concat()));
    let took = began.elapsed();
    mode(0o755);
    refused.assert_code(65);
    let said = refused.stderr();
    assert!(said.contains(".claude"), "{said}");
    assert!(said.contains("hint: "), "{said}");
    assert!(!world.has("started"), "the agent was not started");
    // A second on a quiet machine; far from the minutes that agents hang.
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
