//! What the tests of the full-screen view share.

use std::process::Command;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World};

use crate::common::start;

pub const SOON: Duration = descartes_testkit::PATIENCE;

/// A loop named `auth` in the background.
#[track_caller]
pub fn background(world: &World, script: &str, flags: &[&str]) {
    let all = [flags, &["--detach", "--name", "auth"]].concat();
    start(world, script, &all).assert_code(0);
}

/// A command on a terminal of its own.
pub fn on_terminal(command: &mut Command, size: Size) -> Pty {
    command.env("LC_ALL", "C.UTF-8");
    Pty::spawn(command, size)
}

/// The view of all loops.
pub fn watch(world: &World) -> Pty {
    watch_with(world, &["watch"], Size::default())
}

/// A view, on a terminal of some size.
pub fn watch_with(world: &World, arguments: &[&str], size: Size) -> Pty {
    on_terminal(&mut world.descartes(arguments), size)
}

#[track_caller]
pub fn sees(pty: &Pty, words: &str) {
    pty.wait_screen(SOON, |screen| screen.contains(words));
}

#[track_caller]
pub fn quits(pty: &mut Pty) {
    pty.send("q");
    assert_eq!(pty.wait(SOON).code(), Some(0));
    assert!(!pty.is_full_screen());
}
