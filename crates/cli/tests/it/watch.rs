//! The full-screen view on a real terminal: keys typed, the screen read, loops really steered.

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{descartes, events, loop_dir, loops, start};
use crate::watch_common::{SOON, background, quits, sees, watch, watch_with};

/// An agent that says something, keeps its prompt, and waits for leave to end.
const PATIENT: &str =
    "print words of ${ITERATION}\nsave-prompt prompt-${ITERATION} arg\nwait-file go-${ITERATION}";

#[test]
fn a_loop_is_paused_told_something_and_cancelled() {
    let world = World::in_memory();
    background(
        &world,
        PATIENT,
        &["-m", "7", "--verify", "echo not yet; false"],
    );
    let mut pty = watch(&world);
    sees(&pty, "iteration 1 of at most 7");
    assert!(pty.is_full_screen());
    pty.send("2");
    sees(&pty, "words of 1");
    pty.send("p");
    sees(&pty, "will pause after this iteration");
    world.write("go-1", "");
    sees(&pty, "‖ Paused");
    pty.send("suse jiff");
    sees(&pty, "say: use jiff");
    pty.send("\r");
    sees(&pty, "the next iteration will get the note");
    pty.send("5");
    sees(&pty, "use jiff (waiting for the next prompt)");
    pty.send("p");
    sees(&pty, "given to iteration 2");
    eventually("the prompt", SOON, || world.has("prompt-2"));
    assert!(world.read("prompt-2").contains("use jiff"));
    pty.send("c");
    sees(&pty, "cancel auth and end everything it started? y/n");
    pty.send("n");
    sees(&pty, "not cancelled");
    pty.send("cy");
    sees(&pty, "✗ Cancelled");
    quits(&mut pty);
    assert_eq!(events(&world, "loop_finished").len(), 1);
    world.assert_no_survivors();
}

#[test]
fn gates_history_and_old_output_are_a_key_away() {
    let world = World::in_memory();
    let gate = "echo the gate says no; exit 3";
    let script = "print words of ${ITERATION}\nerr complaint of ${ITERATION}\npromise";
    start(&world, script, &["-m", "3", "--verify", gate]).assert_code(2);
    let mut pty = watch_with(&world, &["loop", "watch"], Size::default());
    sees(&pty, "Iteration limit reached");
    sees(&pty, "refused · red: echo the gate says no");
    pty.send("3");
    sees(&pty, "exit code 3");
    sees(&pty, "  the gate says no");
    pty.send("1k\r");
    sees(&pty, "words of 2");
    pty.send("]");
    sees(&pty, "words of 3");
    pty.send("e");
    sees(&pty, "complaint of 3");
    pty.send("p");
    sees(&pty, "is over");
    pty.resize(Size {
        rows: 8,
        columns: 30,
    });
    sees(&pty, "terminal too small");
    pty.resize(Size {
        rows: 40,
        columns: 140,
    });
    sees(&pty, "complaint of 3");
    pty.send("?");
    sees(&pty, "retry now");
    pty.send("x");
    quits(&mut pty);
}

#[test]
fn the_terminal_is_given_back_on_signals() {
    let world = World::in_memory();
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
    ] {
        let mut pty = watch(&world);
        sees(&pty, "no loops");
        kill(Pid::from_raw(pty.pid()), signal).unwrap();
        assert_eq!(pty.wait(SOON).code(), Some(code), "{signal}");
        assert!(!pty.is_full_screen(), "{signal}");
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        let left = raw.rfind("\x1b[?1049l").expect("left");
        assert!(raw.rfind("\x1b[?25h").unwrap() > left, "{raw:?}");
        assert!(
            raw.contains("\x1b[?1000h") && raw.contains("\x1b[?1000l"),
            "{raw:?}"
        );
    }
    let mut pty = watch_with(&world, &["watch", "--no-mouse"], Size::default());
    sees(&pty, "no loops");
    pty.send("\x03");
    assert_eq!(pty.wait(SOON).code(), Some(0));
    assert!(!String::from_utf8_lossy(&pty.raw()).contains("\x1b[?1000h"));
    let mut gone = watch(&world);
    sees(&gone, "no loops");
    gone.hang_up();
    assert_eq!(gone.wait(SOON).code(), Some(129));
}

#[test]
fn trouble_is_a_line_and_the_view_goes_on() {
    let world = World::in_memory();
    background(&world, PATIENT, &["-m", "7"]);
    let mut pty = watch(&world);
    sees(&pty, "iteration 1 of at most 7");
    // The loop dies while it is watched.
    let host = descartes(&world, &["loop", "list", "--json"]).stdout();
    let host: serde_json::Value = serde_json::from_str(&host).unwrap();
    let pid = i32::try_from(host[0]["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    sees(&pty, "! Interrupted");
    sees(&pty, "descartes loop resume");
    // Its log is deleted.
    pty.send("2");
    sees(&pty, "words of 1");
    let dir = loop_dir(&world);
    std::fs::remove_dir_all(dir.join("runs")).unwrap();
    sees(&pty, "! the output of iteration 1 is gone");
    // Its journal is damaged, or from a newer version.
    let journal = dir.join("journal.jsonl");
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, b"garbage\nmore\n").unwrap();
    start(
        &world,
        "promise",
        &["--state-file", "other.json", "--name", "other"],
    )
    .assert_code(0);
    sees(&pty, "other");
    pty.send("\x1b[D");
    pty.send("g");
    pty.send("j");
    sees(&pty, "is damaged at byte");
    // Mended, it is shown again.
    std::fs::write(&journal, whole).unwrap();
    sees(&pty, "iteration 1 of at most 7");
    pty.send("/oth");
    sees(&pty, "filter: oth");
    pty.send("\r");
    sees(&pty, "Completed (promise)");
    quits(&mut pty);
    assert_eq!(loops(&world).len(), 2);
}

#[test]
fn without_a_terminal_it_says_what_to_type() {
    let world = World::in_memory();
    for arguments in [&["watch"][..], &["loop", "watch"][..]] {
        let run = descartes(&world, arguments);
        run.assert_code(64);
        assert!(run.stderr().contains("needs a terminal"), "{run}");
        assert!(run.stderr().contains("descartes loop list"), "{run}");
    }
}

#[test]
fn a_pager_shows_the_log_and_the_terminal_comes_back() {
    let world = World::in_memory();
    start(&world, "print words of ${ITERATION}\npromise", &[]).assert_code(0);
    let pager = world.program(
        "pager",
        "#!/bin/sh\necho shown: here\ncat\nread answer </dev/tty\n",
    );
    let mut command = world.descartes(["watch"]);
    command.env("PAGER", pager);
    let mut pty = Pty::spawn(&command, Size::default());
    sees(&pty, "Completed (promise)");
    pty.send("o");
    sees(&pty, "shown: here");
    sees(&pty, "words of 1");
    assert!(!pty.is_full_screen());
    pty.send("\n");
    sees(&pty, "Completed (promise)");
    eventually("the other screen", SOON, || pty.is_full_screen());
    pty.send("d");
    sees(&pty, "git");
    quits(&mut pty);
}

#[test]
fn a_task_loop_shows_its_waves_its_graph_and_what_its_tasks_print() {
    let world = World::in_memory();
    world.git_init();
    let tasks = "# SCUD Graph v1\n# Phase: auth\n\n@nodes\n\
        1 | Model | P | 3 | H\n2 | Store | P | 2 | M\n3 | Wire up | P | 5 | M\n\n\
        @edges\n3 -> 1\n3 -> 2\n";
    world.write(".scud/tasks/tasks.scg", tasks);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
    let go = world.path("go-on");
    let script = format!(
        "print at work on ${{DESCARTES_TASK_ID}}\nwait-file {}\nwrite done-${{DESCARTES_TASK_ID}}.txt x\npromise",
        go.display()
    );
    let agent = world.agent(&script);
    let arguments = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--command",
        &agent,
        "--verify",
        "true",
        "--name",
        "auth",
        "--detach",
    ];
    descartes(&world, &arguments).assert_code(0);
    let size = Size {
        rows: 40,
        columns: 120,
    };
    let mut pty = watch_with(&world, &["watch", "auth"], size);
    sees(&pty, "0 of 3 tasks done");
    sees(&pty, "at work on 1");
    pty.send("6");
    sees(&pty, "In Progress (0/2 tasks)");
    sees(&pty, "Pending (1 task)");
    sees(&pty, "after 1, 2");
    sees(&pty, "1 Model (attempt 1");
    // The loop of the task stands below it in the list; a click chooses it.
    let screen = pty.wait_screen(SOON, |screen| screen.contains("└ ● 1"));
    let row = screen
        .lines()
        .position(|line| line.contains("└ ● 1"))
        .unwrap();
    pty.send(format!("\x1b[<0;5;{}M", row + 1));
    sees(&pty, "auth/1");
    world.write("go-on", "");
    sees(&pty, "3/3");
    pty.send("\x1b[Dg");
    sees(&pty, "3 of 3 tasks done");
    pty.send("6");
    sees(&pty, "Complete (2 tasks)");
    quits(&mut pty);
}
