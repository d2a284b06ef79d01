//! Programs on a terminal.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World, process, wait};
use nix::sys::signal::Signal;

const SOON: Duration = descartes_testkit::PATIENCE;

#[test]
fn a_program_sees_a_terminal_of_its_own() {
    let world = World::new();
    let mut pty = Pty::spawn(
        &world.agent_command("tty-check\ndump-ids ids"),
        Size::default(),
    );
    pty.wait_text("stdin=tty stdout=tty stderr=tty controlling=tty");
    assert!(pty.wait(SOON).success());
    let ids = world.read("ids");
    assert!(ids.contains(&format!("sid={}", pty.pid())), "{ids}");
}

#[test]
fn the_screen_is_what_a_person_sees() {
    let world = World::new();
    let script = "printf one\\r\\ntwo\\x1b[1;1HONE\\x1b[?1049h\\x1b[2;3Hfull\nwait-file go";
    let mut pty = Pty::spawn(
        &world.agent_command(script),
        Size {
            rows: 5,
            columns: 20,
        },
    );
    let screen = pty.wait_text("full");
    assert_eq!(screen, "\n  full");
    assert!(pty.is_full_screen());
    assert!(String::from_utf8_lossy(&pty.raw()).contains("two"));
    world.write("go", "");
    pty.wait(SOON);
}

#[test]
fn keys_and_sizes_reach_the_program() {
    let world = World::new();
    let mut command = world.command("sh");
    command.args([
        "-c",
        "read line; stty size; echo got $line; read again; stty size",
    ]);
    let mut pty = Pty::spawn(
        &command,
        Size {
            rows: 10,
            columns: 33,
        },
    );
    pty.send("hello\r");
    pty.wait_text("10 33");
    pty.wait_text("got hello");
    pty.resize(Size {
        rows: 12,
        columns: 44,
    });
    pty.send("\r");
    pty.wait_text("12 44");
    assert!(pty.wait(SOON).success());
}

#[test]
fn control_c_and_a_closed_window_are_signals() {
    let world = World::new();
    let mut pty = Pty::spawn(&world.agent_command("print ready\nhang"), Size::default());
    pty.wait_text("ready");
    pty.send("\x03");
    assert_eq!(pty.wait(SOON).signal(), Some(Signal::SIGINT as i32));

    let script = "on-signal HUP notes exit 3\nprint ready\nhang";
    let mut pty = Pty::spawn(&world.agent_command(script), Size::default());
    pty.wait_text("ready");
    pty.hang_up();
    assert_eq!(pty.wait(SOON).code(), Some(3));
    assert_eq!(wait::file_text(&world.path("notes"), SOON), "SIGHUP\n");
}

#[test]
fn a_dropped_terminal_ends_its_program() {
    let world = World::new();
    let pty = Pty::spawn(&world.agent_command("print ready\nhang"), Size::default());
    pty.wait_text("ready");
    let pid = pty.pid();
    drop(pty);
    assert!(!process::is_alive(pid));
    let gone = std::fs::metadata(format!("/proc/{pid}"));
    assert!(gone.is_err(), "it was reaped");
}
