//! Namespaces that programs make inside of the sandbox, as browsers do for their pages; and what is mounted outside
//! while they run. What somebody gains by them stands in `sandbox_escapes`: nothing.

use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::world::Finished;

use crate::sandbox::{has_bwrap, world};

/// What a browser does before it opens a page: users, processes and a network of its own, and a root in which
/// nothing can be opened.
const BROWSER: &str = "import os
os.chroot('/proc/self/fdinfo')
os.chdir('/')
print('uid', os.getuid(), 'closed' if not os.path.exists('/etc/passwd') else 'open')";

fn confined(world: &World, level: &str, user: &[&str], words: &[&str]) -> Finished {
    let program = descartes_testkit::descartes();
    let mut command = match user.split_first() {
        Some((first, rest)) => {
            let mut command: Command = world.command(first);
            command.args(rest).arg(program);
            command
        }
        None => world.command(program),
    };
    command.args(["sandbox", "--sandbox", level, "--"]);
    command.args(words).current_dir(world.project());
    world.run(command)
}

#[test]
fn an_ordinary_user_makes_namespaces_and_root_does_not() {
    if !has_bwrap() {
        return;
    }
    let world = world("");
    let is_root = nix::unistd::geteuid().is_root();
    let mut user: &[&str] = &[];
    if is_root {
        user = &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ];
        let refused = confined(&world, "workspace", &[], &["unshare", "-Ur", "true"]);
        refused.assert_code(1);
        let mut own = world.command("chown");
        own.args(["-R", "65534:65534"]).arg(world.root());
        world.run(own).assert_code(0);
    }
    for level in ["workspace", "strict"] {
        let browser = ["unshare", "-Urnpf", "python3", "-c", BROWSER];
        let ended = confined(&world, level, user, &browser);
        assert_eq!(ended.stdout().trim(), "uid 0 closed", "{level}: {ended}");
        // Nothing can be mounted in them: another `bwrap` says so, and ends with an error.
        let nested = ["bwrap", "--ro-bind", "/", "/", "true"];
        let ended = confined(&world, level, user, &nested);
        ended.assert_code(1);
        let said = ended.stderr();
        assert!(said.contains("Operation not permitted"), "{level}: {said}");
    }
}

/// One of ours inside of one of ours is made of Landlock and seccomp, says so, and holds; `strict` is refused with
/// what to do, which is neither to install nor to allow anything.
#[test]
fn a_sandbox_in_the_sandbox_is_weaker_and_says_so() {
    if !has_bwrap() || descartes_proc::landlock_abi().is_none() {
        return;
    }
    let world = world("");
    std::fs::create_dir(world.project().join("inner")).unwrap();
    let program = descartes_testkit::descartes().display().to_string();
    let nested = |rest: &[&str]| {
        let words = [
            &["env", "-C", "inner", program.as_str(), "sandbox"][..],
            rest,
        ];
        confined(&world, "workspace", &[], &words.concat())
    };
    let ended = nested(&["--", "sh", "-c", "touch mine; touch ../not-mine"]);
    let said = ended.stderr();
    assert!(said.contains("the sandbox is weaker here: "), "{said}");
    assert!(world.has("inner/mine"), "{said}");
    let refused = nested(&["--sandbox", "strict", "--", "true"]);
    refused.assert_code(65);
    let said = refused.stderr();
    assert!(said.contains("inside of a sandbox of descartes"), "{said}");
    assert!(!said.contains("install"), "{said}");
}

/// Where mounts are shared, as on most machines, one that is made later is seen in the sandbox, and writable as far
/// as its view goes: Landlock holds it.
#[test]
fn a_disk_that_is_mounted_while_the_agent_runs_is_read_only() {
    let is_root = nix::unistd::geteuid().is_root();
    if !has_bwrap() || !is_root || descartes_proc::landlock_abi().is_none() {
        return;
    }
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    if target.starts_with("/tmp") {
        eprintln!("NOT TESTED: the build folder lies in /tmp, which is another one in the sandbox");
        return;
    }
    let world = world("");
    let disk = tempfile::tempdir_in(target).unwrap();
    let inside = "echo > ready; read line < go; mountpoint -q $DISK && echo seen; touch $DISK/x && echo written; true";
    let script = "mount --make-rshared / && mkfifo ready go || exit 9
        \"$0\" sandbox --sandbox workspace -- sh -c \"$1\" & read line < ready
        mount -t tmpfs -o mode=1777 disk $DISK && echo > go; wait; umount $DISK";
    let mut command = world.command("unshare");
    command.args(["-m", "sh", "-c", script]);
    command.arg(descartes_testkit::descartes()).arg(inside);
    command
        .current_dir(world.project())
        .env("DISK", disk.path());
    let ended = world.run(command);
    ended.assert_code(0);
    assert_eq!(ended.stdout().trim(), "seen", "{ended}");
    assert!(ended.stderr().contains("Permission denied"), "{ended}");
}
