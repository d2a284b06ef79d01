//! The live view on a terminal, its screen read as a person would see it.

use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World};

use crate::common::start_command;

const SOON: Duration = descartes_testkit::PATIENCE;

fn size(rows: u16, columns: u16) -> Size {
    Size { rows, columns }
}

fn on_terminal(world: &World, script: &str, flags: &[&str], size: Size) -> Pty {
    Pty::spawn(&start_command(world, script, flags), size)
}

#[test]
fn output_scrolls_above_a_region_that_tells_where_the_loop_is() {
    let world = World::in_memory();
    let script = "repeat 40 print a line\nprint the last line\nwait-file go\npromise";
    let mut pty = on_terminal(
        &world,
        script,
        &["-m", "7", "--verify", "true"],
        Size::default(),
    );
    let screen = pty.wait_screen(SOON, |screen| {
        screen.contains("the last line") && screen.contains("agent:")
    });
    let lines: Vec<&str> = screen.lines().collect();
    let at = |words: &str| {
        lines
            .iter()
            .position(|line| line.contains(words))
            .unwrap_or_else(|| panic!("{words}:\n{screen}"))
    };
    assert!(
        at("the last line") < at("iteration 1 of at most 7 ["),
        "{screen}"
    );
    assert!(at("iteration 1 of at most 7 [") < at("agent:"), "{screen}");
    assert_eq!(screen.matches("of at most 7 [").count(), 1, "{screen}");
    world.write("go", "");
    assert_eq!(pty.wait(SOON).code(), Some(0));
    let last = pty.screen();
    assert!(last.contains("done: COMPLETE, proven by 1 gate"), "{last}");
    assert!(last.contains("gate green: true"), "{last}");
    assert!(!last.contains("at most 7 ["), "the region is gone: {last}");
    assert!(!pty.is_full_screen());
}

#[test]
fn the_gate_that_runs_is_named() {
    let world = World::in_memory();
    let gate = "while ! test -e go; do sleep 0.02; done";
    let mut pty = on_terminal(&world, "promise", &["--verify", gate], Size::default());
    pty.wait_text("gate: while ! test -e go");
    world.write("go", "");
    assert_eq!(pty.wait(SOON).code(), Some(0));
}

#[test]
fn colours_pass_and_nothing_else_reaches_the_terminal() {
    let world = World::in_memory();
    let script = r"printf \e[2J\e[?1049h\e[31mred words\e[0m\n
        err a complaint
        printf wide \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e unfinished
        wait-file go
        promise";
    let mut pty = on_terminal(&world, script, &[], Size::default());
    let screen = pty.wait_screen(SOON, |screen| {
        let words = ["red words", "unfinished", "a complaint"];
        words.iter().all(|words| screen.contains(words))
    });
    assert!(screen.contains("日本語"), "{screen}");
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(raw.contains("\x1b[31mred words\x1b[0m"), "{raw:?}");
    assert!(raw.contains("\x1b[2ma complaint\x1b[0m"), "{raw:?}");
    assert!(!raw.contains("\x1b[2J") && !raw.contains("1049"), "{raw:?}");
    world.write("go", "");
    pty.wait(SOON);
}

#[test]
fn no_color_and_dumb_terminals_are_respected() {
    let world = World::in_memory();
    let mut command = start_command(&world, r"printf \e[31mred\e[0m\n;; promise", &[]);
    command.env("NO_COLOR", "1");
    let mut pty = Pty::spawn(&command, Size::default());
    pty.wait(SOON);
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(
        raw.contains("red") && !raw.contains("\x1b[31m") && !raw.contains("\x1b[1m"),
        "{raw:?}"
    );
}

#[test]
fn ctrl_c_says_what_the_next_one_does() {
    let world = World::in_memory();
    let mut pty = on_terminal(
        &world,
        "print up\nhang",
        &["--kill-grace", "200ms"],
        Size::default(),
    );
    pty.wait_text("up");
    pty.send("\x03");
    pty.wait_text("Ctrl-C again");
    pty.send("\x03");
    assert_eq!(pty.wait(SOON).code(), Some(130));
    assert!(
        pty.screen().contains("not done: cancelled"),
        "{}",
        pty.screen()
    );
    world.assert_no_survivors();
}

#[test]
fn a_terminal_that_changes_its_size_keeps_one_region() {
    let world = World::in_memory();
    let script = "print before\nwait-file go\nprint after\nwait-file end\npromise";
    let mut pty = on_terminal(&world, script, &["-m", "7"], size(24, 100));
    pty.wait_text("agent:");
    for columns in [30, 20, 120] {
        pty.resize(size(20, columns));
        pty.wait_screen(SOON, |screen| {
            screen
                .lines()
                .any(|line| line.contains("1/7") || line.contains("at most 7"))
        });
    }
    world.write("go", "");
    let screen = pty.wait_screen(SOON, |screen| {
        screen.contains("after") && screen.contains("at most 7 [")
    });
    assert_eq!(screen.matches("at most 7 [").count(), 1, "{screen}");
    world.write("end", "");
    assert_eq!(pty.wait(SOON).code(), Some(0));
}

#[test]
fn a_view_that_falls_behind_skips_ahead_and_says_so() {
    let world = World::in_memory();
    let script = "flood 20MB lines\nprint the last line\nwait-file go\npromise";
    let mut pty = on_terminal(&world, script, &[], Size::default());
    pty.wait_text("the last line");
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert!(
        raw.contains("not shown: descartes loop logs 1"),
        "{}",
        raw.len()
    );
    assert!(raw.len() < 10_000_000, "{}", raw.len());
    world.write("go", "");
    assert_eq!(pty.wait(SOON).code(), Some(0));
}

#[test]
fn a_closed_terminal_leaves_a_loop_to_be_resumed() {
    let world = World::in_memory();
    let mut pty = on_terminal(
        &world,
        "print up\nhang",
        &["--kill-grace", "200ms"],
        Size::default(),
    );
    pty.wait_text("up");
    pty.hang_up();
    assert_eq!(pty.wait(SOON).code(), Some(129));
    assert_eq!(
        crate::common::state(&world)["exit_reason"]["type"],
        "running"
    );
    world.assert_no_survivors();
}

#[test]
fn the_demo_is_pleasant_to_watch() {
    let world = World::in_memory();
    let mut pty = Pty::spawn(&world.descartes(["demo", "--fast"]), size(50, 100));
    assert_eq!(pty.wait(SOON).code(), Some(0));
    let screen = pty.screen();
    assert!(
        screen.contains("── iteration 3 of at most 5 ──"),
        "{screen}"
    );
    assert!(screen.contains("● gate green: sh test.sh"), "{screen}");
    assert!(screen.contains("descartes init"), "{screen}");
}
