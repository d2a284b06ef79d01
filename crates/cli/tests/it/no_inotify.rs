//! Other programs have taken all that the kernel has to watch files with: every view looks now and
//! then instead, says so once, and ends when the loop ends.
//!
//! Tried in a user namespace of the test's own, whose limit is nothing. Where such a namespace
//! cannot be made, there is nothing to try.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use descartes_testkit::pty::Size;
use descartes_testkit::world::Finished;
use descartes_testkit::{Pty, World, eventually};

use crate::common::{descartes, start_command};
use crate::task_common;

const LONG: Duration = descartes_testkit::PATIENCE;

const POLLING: &str = "polling files every";

/// What is taken away.
#[derive(Clone, Copy, Debug)]
enum Nothing {
    Instances,
    Watches,
}

const BOTH: [Nothing; 2] = [Nothing::Instances, Nothing::Watches];

/// The same command where nothing can be watched.
fn blind(world: &World, nothing: Nothing, command: &Command) -> Command {
    let file = match nothing {
        Nothing::Instances => "/proc/sys/user/max_inotify_instances",
        Nothing::Watches => "/proc/sys/user/max_inotify_watches",
    };
    let mut blind = world.command("unshare");
    let script = format!("echo 0 > {file} && exec \"$@\"");
    blind.args(["--user", "--map-root-user", "sh", "-c", &script, "sh"]);
    blind.arg(command.get_program()).args(command.get_args());
    blind
}

fn can_be_tried(world: &World, nothing: Nothing) -> bool {
    let run = world.run(blind(world, nothing, &Command::new("true")));
    run.code() == Some(0)
}

#[track_caller]
fn assert_said_once(run: &Finished) {
    let said = run.stderr();
    assert_eq!(said.matches(POLLING).count(), 1, "{run}");
    assert!(said.contains("out of inotify"), "{run}");
}

#[test]
fn a_start_shows_everything_and_ends() {
    for nothing in BOTH {
        let world = World::in_memory();
        if !can_be_tried(&world, nothing) {
            continue;
        }
        let script = "print first words\nsleep 300ms\nprint last words\npromise";
        let command = start_command(&world, script, &["--verify", "true"]);
        let run = world.run_within(blind(&world, nothing, &command), LONG);
        run.assert_code(0);
        for words in ["first words", "last words", "done: COMPLETE"] {
            assert!(run.stdout().contains(words), "{nothing:?} {words}: {run}");
        }
        assert_said_once(&run);
    }
}

#[test]
fn a_live_view_does_not_burn_a_core() {
    let world = World::in_memory();
    if !can_be_tried(&world, Nothing::Instances) {
        return;
    }
    let command = start_command(&world, "print words\nwait-file go\npromise", &[]);
    let mut command = blind(&world, Nothing::Instances, &command);
    command.env("TERM", "xterm-256color");
    let mut pty = Pty::spawn(&command, Size::default());
    pty.wait_text("words");
    let (before, begun) = (cpu(pty.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let (used, passed) = (cpu(pty.pid()) - before, begun.elapsed());
    assert!(used < passed / 3, "{used:?} of CPU in {passed:?}");
    world.write("go", "");
    assert_eq!(pty.wait(LONG).code(), Some(0));
}

/// CPU time of a process.
fn cpu(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
fn those_who_look_on_see_the_end() {
    for nothing in BOTH {
        let world = World::in_memory();
        if !can_be_tried(&world, nothing) {
            continue;
        }
        let script = "print words\nwait-file go\nprint more words\npromise";
        let started = descartes_start(&world, script);
        started.assert_code(0);
        eventually("the run", LONG, || {
            descartes(&world, &["loop", "logs"])
                .stdout()
                .contains("words")
        });
        let (logs, status) = (world.root().join("logs"), world.root().join("status"));
        let follow = |words: &[&str], to: &Path| {
            let to = std::fs::File::create(to).unwrap();
            let mut command = blind(&world, nothing, &world.descartes(words));
            command.stdout(to.try_clone().unwrap()).stderr(to);
            command.spawn().unwrap()
        };
        let mut both = [
            follow(&["loop", "logs", "-f"], &logs),
            follow(&["loop", "status", "--watch"], &status),
        ];
        let text = |of: &Path| std::fs::read_to_string(of).unwrap();
        eventually("both look on", LONG, || {
            [&logs, &status]
                .map(|of| text(of))
                .iter()
                .all(|said| said.contains(POLLING))
        });
        world.write("go", "");
        for child in &mut both {
            assert_eq!(child.wait().unwrap().code(), Some(0), "{nothing:?}");
        }
        for (of, words) in [(&logs, "more words"), (&status, "Completed: Yes")] {
            let said = text(of);
            assert!(said.contains(words), "{nothing:?}: {said}");
            assert!(said.contains("out of inotify"), "{nothing:?}: {said}");
            assert_eq!(said.matches(POLLING).count(), 1, "{nothing:?}: {said}");
        }
        world.assert_no_survivors();
    }
}

fn descartes_start(world: &World, script: &str) -> Finished {
    world.run(start_command(world, script, &["--detach"]))
}

#[test]
fn a_full_screen_shows_what_changes() {
    let world = World::in_memory();
    if !can_be_tried(&world, Nothing::Instances) {
        return;
    }
    descartes_start(&world, "print words\nwait-file go\npromise").assert_code(0);
    let mut command = blind(&world, Nothing::Instances, &world.descartes(["watch"]));
    command.env("TERM", "xterm-256color");
    let mut pty = Pty::spawn(&command, Size::default());
    pty.wait_text("out of inotify");
    pty.wait_text("Running");
    world.write("go", "");
    pty.wait_screen(LONG, |screen| {
        screen.contains("Done") || screen.contains("Complete")
    });
    pty.send("q");
    pty.wait(LONG);
}

#[test]
fn tasks_are_run_and_shown_and_their_file_is_looked_at() {
    let world = task_common::repository(
        "ROADMAP.md",
        "# Roadmap: R\n\n## Tasks\n- [ ] **a**: First\n- [ ] **b**: Second\n",
    );
    if !can_be_tried(&world, Nothing::Instances) {
        return;
    }
    let agent =
        world.agent("print words of ${DESCARTES_TASK_ID}\nwrite ${DESCARTES_TASK_ID}.txt x");
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let command = blind(&world, Nothing::Instances, &world.descartes(words));
    let run = world.run_within(command, LONG * 2);
    run.assert_code(0);
    assert!(run.stdout().contains("words of a"), "{run}");
    assert!(run.stdout().contains("words of b"), "{run}");
    assert_said_once(&run);
}
