//! A host that is killed while gates run: the next one judges what the agent left, and nothing else.

use std::process::{Command, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{events, start_command};
use crate::task_common::{repository, run, said};

const SOON: Duration = Duration::from_secs(60);
const TOLD: &str = "the work tree changed while descartes was not running";

/// Kills the host of this command in its first gate, which says that it is up by a file.
fn killed_in_its_gate(mut command: Command, is_up: impl Fn() -> bool) {
    let mut host = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the gate", SOON, is_up);
    host.kill().unwrap();
    host.wait().unwrap();
}

/// A loop whose agent has written `out.txt` and claimed, and whose gate is green on any tree, left by a host
/// that was killed in that gate.
fn left_in_its_gate() -> World {
    let world = repository("base.txt", "base\n");
    let gate = "touch gate-up; test -e go || sleep 1000; test -s base.txt";
    let command = start_command(&world, "write out.txt work ;; promise", &["--verify", gate]);
    killed_in_its_gate(command, || world.has("gate-up"));
    world
}

#[test]
fn a_promise_for_work_that_was_cleaned_away_no_longer_stands() {
    for clean in [
        &["clean", "-fdq"][..],
        &["stash", "--include-untracked", "--quiet"],
    ] {
        let world = left_in_its_gate();
        world.git(clean);
        assert!(!world.has("out.txt"));
        world.write("go", "");
        let resumed = run(&world, &["loop", "resume"]);
        resumed.assert_code(0);
        assert!(
            said(&resumed).contains(&format!("{TOLD} (out.txt): the agent runs again")),
            "{resumed}"
        );
        assert_eq!(events(&world, "run_started").len(), 2);
        assert_eq!(world.read("out.txt").trim(), "work");
    }
}

#[test]
fn a_promise_stands_while_the_files_of_its_agent_do() {
    let world = left_in_its_gate();
    // Written by the gate, or by a person.
    world.write("go", "");
    world.write("base.txt", "edited\n");
    let resumed = run(&world, &["loop", "resume"]);
    resumed.assert_code(0);
    assert!(!said(&resumed).contains(TOLD), "{resumed}");
    assert_eq!(events(&world, "run_started").len(), 1);
    assert!(world.has("out.txt"));
}

#[test]
fn work_that_an_earlier_iteration_did_is_missed_too() {
    let world = repository("base.txt", "base\n");
    let gate = "touch gate-up; test -e go || sleep 1000; test -s base.txt";
    let script = "@1 write out.txt work\n@2 promise\n@3- write out.txt work\n   promise";
    let command = start_command(&world, script, &["--verify", gate]);
    killed_in_its_gate(command, || world.has("gate-up"));
    std::fs::remove_file(world.path("out.txt")).unwrap();
    world.write("go", "");
    let resumed = run(&world, &["loop", "resume"]);
    resumed.assert_code(0);
    assert!(said(&resumed).contains(TOLD), "{resumed}");
    assert_eq!(events(&world, "run_started").len(), 3);
    assert!(world.has("out.txt"));
}

#[test]
fn a_task_whose_worktree_is_gone_is_done_again_on_the_newest_base() {
    let world = World::new();
    world.git_init();
    let up = world.root().join("gate-up");
    let gate = format!("touch {0}; test -e {0}.go || sleep 1000", up.display());
    let tasks = format!("# Roadmap: X\n\n## Tasks\n- [ ] **a**: make a\n  - check: {gate}\n");
    world.write("ROADMAP.md", tasks);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    let agent = world.agent("write out.txt work ;; promise");
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    killed_in_its_gate(world.descartes(words), || up.exists());
    let worktrees = world.state().join("worktrees");
    eventually("nothing is left", SOON, || {
        drop(std::fs::remove_dir_all(&worktrees));
        !worktrees.exists()
    });
    world.write("new.txt", "of a person\n");
    world.git(["add", "new.txt"]);
    world.git(["commit", "--quiet", "--message", "more"]);
    std::fs::write(world.root().join("gate-up.go"), "").unwrap();
    let resumed = run(&world, &["loop", "resume"]);
    resumed.assert_code(0);
    let files = world.git(["ls-tree", "--name-only", "HEAD"]);
    assert!(
        files.contains("out.txt") && files.contains("new.txt"),
        "{files}\n{resumed}"
    );
}
