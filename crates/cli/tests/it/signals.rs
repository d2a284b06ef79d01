//! Signals to a loop in the foreground.

use std::process::{Child, Stdio};
use std::time::Duration;

use descartes_testkit::{World, eventually, process};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{descartes, events, loops, start_command, state};
use crate::landing_statuses::git_that;
use crate::task_common::{graph, scud_project, statuses};

const SOON: Duration = descartes_testkit::PATIENCE;

/// A loop whose agent has begun.
fn running(world: &World, script: &str) -> Child {
    let script = format!("touch up\n{script}");
    let mut command = start_command(world, &script, &["--kill-grace", "200ms"]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the agent", SOON, || world.has("up"));
    child
}

pub fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[track_caller]
pub fn code(child: &mut Child) -> i32 {
    child.wait().unwrap().code().expect("an exit code")
}

#[test]
fn ctrl_c_once_finishes_the_iteration_and_starts_nothing_new() {
    let world = World::in_memory();
    let mut child = running(&world, "wait-file go\nprint done with this one");
    send(&child, Signal::SIGINT);
    eventually("the wish", SOON, || {
        !events(&world, "stop_requested").is_empty()
    });
    world.write("go", "");
    assert_eq!(code(&mut child), 130);
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "exit");
    assert_eq!(events(&world, "run_started").len(), 1);
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    world.assert_no_survivors();
}

#[test]
fn ctrl_c_twice_ends_the_agent_and_three_times_kills_it() {
    for (presses, script) in [(2, "hang"), (3, "ignore INT\nignore TERM\nhang")] {
        let world = World::in_memory();
        let mut child = running(&world, script);
        for press in 1..=presses {
            send(&child, Signal::SIGINT);
            eventually("the wish", SOON, || {
                !events(&world, "stop_requested").is_empty() || press > 1
            });
            std::thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(code(&mut child), 130);
        assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "cancel");
        world.assert_no_survivors();
    }
}

#[test]
fn sigterm_ends_the_loop_with_143_and_sighup_leaves_it_to_be_resumed() {
    let world = World::in_memory();
    let mut child = running(&world, "hang");
    send(&child, Signal::SIGTERM);
    assert_eq!(code(&mut child), 143);
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    let world = World::in_memory();
    let mut child = running(&world, "hang");
    send(&child, Signal::SIGHUP);
    assert_eq!(code(&mut child), 129);
    assert_eq!(state(&world)["exit_reason"]["type"], "running");
    assert_eq!(state(&world)["completed"], false);
    assert_eq!(events(&world, "interrupted").len(), 1);
    world.assert_no_survivors();
}

#[test]
fn a_reader_that_is_stuck_or_gone_does_not_hold_the_loop() {
    for gone in [false, true] {
        let world = World::in_memory();
        let script = "flood 3MB lines\ntouch flooded\n@1 print hm\n@2 promise";
        let mut command = start_command(&world, script, &[]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let reader = child.stdout.take().filter(|_| !gone);
        eventually("the end of the loop", SOON, || {
            world.has(".descartes/loop-state.json") && state(&world)["completed"] == true
        });
        if !gone {
            // The view waits for its reader, but not against a signal.
            send(&child, Signal::SIGTERM);
        }
        assert_eq!(code(&mut child), 0, "gone: {gone}");
        drop(reader);
    }
}

/// Every git call of a start may be the one that hangs, long before the loop listens.
#[test]
fn a_signal_ends_a_start_whose_git_hangs() {
    const INTERRUPT: (Signal, i32) = (Signal::SIGINT, 130);
    const TERMINATE: (Signal, i32) = (Signal::SIGTERM, 143);
    const HANGUP: (Signal, i32) = (Signal::SIGHUP, 129);
    for (tasks, call, (signal, expected)) in [
        (false, 1, INTERRUPT),
        (false, 2, TERMINATE),
        (false, 3, HANGUP),
        (true, 1, INTERRUPT),
        (true, 2, TERMINATE),
        (true, 3, HANGUP),
        (true, 5, INTERRUPT),
        (true, 8, TERMINATE),
    ] {
        let case = format!("task loop: {tasks}, call {call}, {signal}");
        let world = scud_project(graph("1 | A | P | 1 | M", ""));
        let at = world.root().join("reached");
        let calls = world.root().join("calls");
        let (at, calls) = (at.display(), calls.display());
        let hang = format!(
            "echo x >> {calls}; [ $(wc -l < {calls}) != {call} ] || {{ : > {at}; exec sleep 600; }}"
        );
        git_that(&world, &hang);
        let mut command = match tasks {
            true => {
                let agent = world.agent("promise");
                world.descartes(["loop", "start", "--scud-tag", "auth", "--command", &agent])
            }
            false => start_command(&world, "promise", &[]),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Duration::from_secs(60);
        eventually(&case, patience, || world.root().join("reached").exists());
        send(&child, signal);
        // Less than what git itself is given.
        eventually(&case, patience, || child.try_wait().unwrap().is_some());
        assert_eq!(code(&mut child), expected, "{case}");
        world.assert_no_survivors();
        assert_eq!(statuses(&world), "P", "{case}");
        if !loops(&world).is_empty() {
            // It had begun: it is over, or was interrupted.
            let reason = &state(&world)["exit_reason"]["type"];
            let wanted = if signal == Signal::SIGHUP {
                "running"
            } else {
                "user_cancelled"
            };
            assert_eq!(reason, wanted, "{case}");
        }
    }
}

/// Nobody was told that there is a loop: it runs no agent.
#[test]
fn ctrl_c_before_a_loop_is_in_the_background_keeps_it_from_starting() {
    let world = World::in_memory();
    let (at, go) = (world.root().join("reached"), world.root().join("go"));
    let (at, go) = (at.display(), go.display());
    git_that(
        &world,
        &format!(
            "cat /proc/$PPID/cmdline /proc/$(host)/cmdline | grep -q __host && {{ : > {at}; \
             while [ ! -e {go} ]; do sleep 0.02; done; }}"
        ),
    );
    let mut parent = start_command(&world, "touch ran\npromise", &["--detach"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the host in the background", SOON, || {
        world.root().join("reached").exists()
    });
    send(&parent, Signal::SIGINT);
    assert!(!parent.wait().unwrap().success());
    std::fs::write(world.root().join("go"), "").unwrap();
    world.assert_no_survivors();
    assert!(!world.has("ran"), "{:?}", events(&world, "run_started"));
    let resumed = descartes(&world, &["loop", "resume"]);
    resumed.assert_code(0);
    assert!(world.has("ran"), "{resumed}");
}

#[test]
fn a_claim_whose_gate_was_cancelled_is_called_not_judged_everywhere() {
    let world = World::in_memory();
    let gate = "touch gate-up; sleep 1000";
    let flags = ["--verify", gate, "--kill-grace", "200ms"];
    let host = start_command(&world, "promise", &flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the gate", SOON, || world.has("gate-up"));
    send(&host, Signal::SIGTERM);
    let output = host.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let live = [output.stdout, output.stderr].concat();
    let live = String::from_utf8_lossy(&live).into_owned();
    assert!(live.contains("not judged"), "{live}");
    let words = |words: &[&str]| descartes(&world, words).stdout();
    descartes(&world, &["report", "--output", "page.html"]).assert_code(0);
    let page = world.read("page.html");
    let status = words(&["loop", "status"]);
    assert!(status.contains("Not judged yet: iteration 1"), "{status}");
    assert!(page.contains(">not judged<"), "{page}");
    let history = words(&["loop", "history"]);
    assert!(history.contains("not judged"), "{history}");
    for shown in [live, status, history, page] {
        assert!(!shown.contains("timed out"), "{shown}");
        assert!(!shown.contains(">lost<"), "{shown}");
        assert!(
            !shown.contains("red,") && !shown.contains(" red "),
            "{shown}"
        );
    }
    world.assert_no_survivors();
}

/// As daemons of perl and PHP do it, and `trap '' CHLD`.
#[test]
fn a_program_that_ignores_the_ends_of_its_children_may_start_everything() {
    let world = scud_project(graph("1 | first | P | 1 | M\n", ""));
    let agent = world.agent("write work-${DESCARTES_TASK_ID} x ;; promise");
    let list = "- [ ] one\n";
    std::fs::write(world.path("list.md"), list).unwrap();
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "a list"]);
    let gate = ["--verify", "git status"];
    let command = ["--command", &agent, "--prompt", "go", "--force"];
    for words in [
        &[&["loop", "start", "--auto-commit"], &command[..], &gate].concat()[..],
        &[
            &["loop", "start", "--scud-tag", "auth", "--force"],
            &command[..2],
            &gate,
        ]
        .concat(),
        &[&["roadmap", "run", "list.md"], &command[..2], &gate].concat(),
        &["report"],
        &["doctor"],
    ] {
        let shell = started_by(&world, "trap '' CHLD", words);
        world.run(shell).assert_code(0);
    }
    world.assert_no_survivors();
}

/// `descartes` with these words, as a shell starts it that has done this before.
fn started_by(world: &World, before: &str, words: &[&str]) -> std::process::Command {
    let program = world.descartes(words);
    let mut shell = world.command("sh");
    shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\"")]);
    shell.arg(program.get_program()).args(program.get_args());
    shell
}

/// As some machines limit everybody's programs.
#[test]
fn a_task_loop_fits_into_a_small_address_space() {
    let rows = "1 | first | P | 1 | M\n2 | second | P | 1 | M\n3 | third | P | 1 | M\n";
    let world = scud_project(graph(rows, ""));
    let agent = world.agent("write work-${DESCARTES_TASK_ID} x ;; promise");
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let words = [&words[..], &["--verify", "true", "--parallel", "3"]].concat();
    let run = world.run(started_by(&world, "ulimit -v 300000", &words));
    run.assert_code(0);
    assert_eq!(statuses(&world), "DDD");
}

/// By an agent outside of any sandbox, say.
#[test]
fn a_task_loop_whose_guards_are_stopped_goes_on_and_ends() {
    let world = scud_project(graph("1 | first | P | 1 | M\n2 | second | P | 1 | M\n", ""));
    let agent = world.agent(
        "touch ../../../up\nwait-file ../../../go\nwrite work-${DESCARTES_TASK_ID} x ;; promise",
    );
    let words = ["loop", "start", "--scud-tag", "auth", "--command", &agent];
    let mut command = world.descartes(words);
    command.args(["--verify", "sleep 0.3"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut host = command.stderr(Stdio::null()).spawn().unwrap();
    let pid = host.id().cast_signed();
    let stop_guards = move || {
        let below = process::descendants(pid);
        let guards = below.iter().filter(|one| one.command.contains("__guard"));
        guards
            .map(|one| process::send(one.pid, Signal::SIGSTOP))
            .count()
    };
    eventually("guards", SOON, || stop_guards() > 1);
    eventually("an agent", SOON, || world.state().join("up").exists());
    assert!(stop_guards() > 1);
    std::fs::write(world.state().join("go"), "").unwrap();
    let mut code = None;
    eventually("the end", SOON, || {
        stop_guards();
        std::thread::sleep(Duration::from_millis(50));
        code = host.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(0));
    assert_eq!(statuses(&world), "DD");
    world.assert_no_survivors();
}
