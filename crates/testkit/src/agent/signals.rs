//! Signals without handlers: blocked in every thread, and waited for by one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use super::{Trouble, own_program};

/// The signal of this name, with or without `SIG`.
pub(super) fn by_name(name: &str) -> Result<Signal, Trouble> {
    let full = if name.starts_with("SIG") {
        name.to_owned()
    } else {
        format!("SIG{name}")
    };
    full.parse()
        .map_err(|_| Trouble::Script(format!("no signal is called {name:?}")))
}

/// Ignores a signal for the rest of this process's life.
pub(super) fn ignore(signal: Signal) -> Result<(), Trouble> {
    let mut set = SigSet::empty();
    set.add(signal);
    set.thread_block()
        .map_err(|error| Trouble::system("block a signal", error))
}

/// Lets a signal through again.
pub(super) fn restore(signal: Signal) -> Result<(), Trouble> {
    let mut set = SigSet::empty();
    set.add(signal);
    set.thread_unblock()
        .map_err(|error| Trouble::system("unblock a signal", error))
}

/// Lets every signal through again: the mask is inherited, and a child of an agent that handles a
/// signal has the default of it.
pub(super) fn restore_all() -> Result<(), Trouble> {
    let none = SigSet::empty();
    none.thread_set_mask()
        .map_err(|error| Trouble::system("unblock signals", error))
}

/// A command that starts with every signal let through.
pub(super) fn command(program: &str) -> Result<Command, Trouble> {
    let mut command = own_program()?;
    command.arg("--exec").arg(program);
    Ok(command)
}

/// Turns into the program that the arguments name.
pub(super) fn exec(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, Trouble> {
    let missing = || Trouble::Script("--exec wants a program".into());
    let program = arguments.next().ok_or_else(missing)?;
    restore_all()?;
    let error = Command::new(&program).args(arguments).exec();
    Err(Trouble::system(program.to_string_lossy(), error))
}

/// Does `act` after `delay` each time the signal comes.
pub(super) fn on(
    signal: Signal,
    delay: Duration,
    act: impl Fn() + Send + 'static,
) -> Result<(), Trouble> {
    let failed = |error| Trouble::system("wait for a signal", error);
    // The waiting thread keeps everything blocked; a signal it does not wait for must not end us
    // through it.
    let mut before = SigSet::all()
        .thread_swap_mask(SigmaskHow::SIG_BLOCK)
        .map_err(failed)?;
    std::thread::spawn(move || {
        let mut set = SigSet::empty();
        set.add(signal);
        while set.wait().is_ok() {
            std::thread::sleep(delay);
            act();
        }
    });
    before.add(signal);
    before.thread_set_mask().map_err(failed)
}
