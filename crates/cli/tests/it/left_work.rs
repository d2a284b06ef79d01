//! A host that is killed or stopped while gates run: the next one judges what the agent left, and nothing else.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{descartes, events, start_command, state};
use crate::task_common::{repository, run, said};

const SOON: Duration = descartes_testkit::PATIENCE;
const TOLD: &str = "the work tree changed while descartes was not running";

/// The host of this command in its first gate, which says that it is up by a file.
fn in_its_gate(mut command: Command, is_up: impl Fn() -> bool) -> Child {
    let host = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the gate", SOON, is_up);
    host
}

/// Kills it there.
fn killed_in_its_gate(command: Command, is_up: impl Fn() -> bool) {
    let mut host = in_its_gate(command, is_up);
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
    let world = World::in_memory();
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

fn send(host: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(host.id()).unwrap()), signal).unwrap();
}

#[test]
fn a_claim_whose_loop_is_stopped_in_the_gates_is_judged_by_the_next_resume() {
    type Stop = fn(&World, &Child);
    let stops: [(&str, i32, Stop); 5] = [
        ("SIGTERM", 143, |_, host| send(host, Signal::SIGTERM)),
        ("Ctrl-C, twice", 130, |world, host| {
            send(host, Signal::SIGINT);
            eventually("the wish", SOON, || {
                !events(world, "stop_requested").is_empty()
            });
            send(host, Signal::SIGINT);
        }),
        ("cancel", 130, |world, _| {
            descartes(world, &["loop", "cancel"]).assert_code(0);
        }),
        ("cancel --now", 130, |world, _| {
            descartes(world, &["loop", "cancel", "--now"]).assert_code(0);
        }),
        ("killed, then cancel", -1, |world, host| {
            send(host, Signal::SIGKILL);
            eventually("the cancel", SOON, || {
                descartes(world, &["loop", "cancel"]).code() == Some(0)
            });
        }),
    ];
    for (how, code, stop) in stops {
        let world = repository("base.txt", "base\n");
        let gate = "touch gate-up; test -e go || exec sleep 1000; test -s out.txt";
        let flags = ["--verify", "true", "--verify", gate, "-m", "1"];
        let command = start_command(&world, "write out.txt work ;; promise", &flags);
        let mut host = in_its_gate(command, || world.has("gate-up"));
        stop(&world, &host);
        assert_eq!(host.wait().unwrap().code().unwrap_or(-1), code, "{how}");
        assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
        let status = descartes(&world, &["loop", "status"]);
        assert!(
            said(&status).contains("Not judged yet: iteration 1"),
            "{how}: {status}"
        );
        world.write("go", "");
        descartes(&world, &["loop", "resume"]).assert_code(0);
        assert_eq!(events(&world, "run_started").len(), 1, "{how}");
        // The gate that was green stays so.
        assert_eq!(events(&world, "gate_finished").len(), 2, "{how}");
        world.assert_no_survivors();
    }
}

#[test]
fn an_attempt_at_a_task_that_is_stopped_in_its_gates_is_judged_by_the_next_resume() {
    for how in ["SIGTERM", "cancel", "cancel --now"] {
        let world = World::in_memory();
        world.git_init();
        let (up, runs) = (world.root().join("gate-up"), world.root().join("runs"));
        let gate = format!(
            "test -s out.txt || exit 1; touch {0}; test -e {0}.go || exec sleep 1000",
            up.display()
        );
        let tasks = format!("# Roadmap: X\n\n## Tasks\n- [ ] **a**: make a\n  - check: {gate}\n");
        world.write("ROADMAP.md", tasks);
        world.git(["add", "."]);
        world.git(["commit", "--quiet", "--message", "tasks"]);
        let script = format!(
            "sh echo x >> {}\nwrite out.txt work ;; promise",
            runs.display()
        );
        let agent = world.agent(&script);
        let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
        let mut host = in_its_gate(world.descartes(words), || up.exists());
        match how {
            "SIGTERM" => send(&host, Signal::SIGTERM),
            "cancel" => drop(descartes(&world, &["loop", "cancel"]).assert_code(0)),
            _ => drop(descartes(&world, &["loop", "cancel", "--now"]).assert_code(0)),
        }
        let code = if how == "SIGTERM" { 143 } else { 130 };
        assert_eq!(host.wait().unwrap().code(), Some(code), "{how}");
        let status = descartes(&world, &["loop", "status"]);
        assert!(said(&status).contains("Exit reason: Cancelled"), "{status}");
        std::fs::write(world.root().join("gate-up.go"), "").unwrap();
        let resumed = run(&world, &["loop", "resume"]);
        resumed.assert_code(0);
        let runs = std::fs::read_to_string(&runs).unwrap();
        assert_eq!(runs.lines().count(), 1, "{how}: {resumed}");
        assert!(world.has("out.txt"), "{how}");
        world.assert_no_survivors();
    }
}
