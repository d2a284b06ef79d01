//! This binary, started with a hidden verb, on the way to the program that is confined.
//!
//! `outer` stands outside: it ignores the signals that ask to end, so that the guard's question reaches the
//! agent and not `bwrap` before it, starts `bwrap`, is its proxy where one is wanted, and stays until every
//! process of the sandbox is gone: else the guard would count those that are about to end as left behind.
//! `inner` is what `bwrap` starts: it hears those signals again, takes rights from itself, and becomes the
//! program.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use descartes_kernel::sandbox::{Confinement, GroupOrder, OuterOrder};
use descartes_proc::{close_all_on_exec, ignore_ending_signals, obey_ending_signals};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout};

use crate::groups::RunGroup;
use crate::{groups, network, probe, rights, syscalls};

/// The hidden verb.
pub const STAGE_VERB: &str = "__sandbox";

/// This binary, whatever became of its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Exit codes as shells have them.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Carries out the words behind the verb; gives the exit code where it comes back at all.
pub fn stage_main(words: &[OsString]) -> i32 {
    let Some((stage, rest)) = words.split_first() else {
        return complain("no stage is named", CANNOT_RUN);
    };
    match (stage.to_str(), rest) {
        (Some("outer"), [order, program @ ..]) => outer(order, program),
        (Some("group"), [order]) => try_group(order),
        (Some("enter"), [group, program @ ..]) => enter_group(group, program),
        (Some("inner"), [order, program @ ..]) => inner(order, program),
        (Some("probe"), [order]) => probe::run(order),
        _ => complain("this stage is not known", CANNOT_RUN),
    }
}

fn outer(order: &OsString, program: &[OsString]) -> i32 {
    ignore_ending_signals();
    let order = order
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(order): Option<OuterOrder> = order else {
        return complain("the order cannot be read", CANNOT_RUN);
    };
    match start_and_wait(&order, program) {
        Ok(code) => code,
        Err(error) => complain(&format!("cannot start: {error}"), CANNOT_RUN),
    }
}

/// Tries whether a control group can be made, and leaves nothing behind.
fn try_group(order: &OsString) -> i32 {
    let order = order
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(order): Option<GroupOrder> = order else {
        return complain("the order cannot be read", CANNOT_RUN);
    };
    let tried = RunGroup::enter(&order).and_then(|group| {
        let left = group.leave();
        group.remove();
        left
    });
    match tried {
        Ok(()) => 0,
        Err(error) => complain(&format!("no control group: {error}"), CANNOT_RUN),
    }
}

/// Moves this process into a control group and becomes the program.
fn enter_group(group: &OsString, program: &[OsString]) -> i32 {
    match groups::move_into(Path::new(group)) {
        Ok(()) => become_program(program, &[]),
        Err(error) => complain(&format!("no control group: {error}"), CANNOT_RUN),
    }
}

fn start_and_wait(order: &OuterOrder, program: &[OsString]) -> io::Result<i32> {
    let (name, args) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    prctl::set_child_subreaper(true)?;
    if std::env::var_os(descartes_proc::MARK).is_some() {
        // In a loop the guard started this. Where it is killed, and the host with it, nobody else ends the
        // tree; `bwrap` ends with this process, and with `bwrap` all that is inside.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
    }
    let group = order.group.as_ref().map(RunGroup::make).transpose()?;
    let mut command = match &group {
        // What is started moves itself: this process stays where it is, since systemd takes away a scope that
        // nobody is left in.
        Some(group) => {
            let mut command = Command::new(THIS_PROGRAM);
            command.args([STAGE_VERB, "enter"]).arg(group.path());
            command.arg(name);
            command
        }
        None => Command::new(name),
    };
    command.args(args);
    let hosts = order.hosts.as_deref();
    let socket = hosts
        .map(|_| network::offer_socket(&mut command))
        .transpose()?;
    let child = command.spawn().inspect_err(|_| {
        if let Some(group) = &group {
            group.remove();
        }
    })?;
    // An agent's output ends with the agent, not with this process.
    close_standard_output()?;
    if let (Some(socket), Some(hosts)) = (socket, hosts) {
        socket.serve(hosts);
    }
    let code = wait_for_all(Pid::from_raw(child.id().cast_signed()));
    if let Some(group) = &group {
        for line in group.reached() {
            // Standard error is the agent's log.
            let _ = writeln!(io::stderr(), "{line}");
        }
        group.remove();
    }
    Ok(code)
}

/// Waits until everything below this process is gone; gives the exit code of the first.
fn wait_for_all(child: Pid) -> i32 {
    let mut code = None;
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, status)) if pid == child => code = Some(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                code = Some(128 + signal as i32);
            }
            Err(Errno::ECHILD) => return code.unwrap_or(CANNOT_RUN),
            // One that died of a signal without a name is reaped all the same.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Standard error stays: the proxy tells there what it refused.
fn close_standard_output() -> io::Result<()> {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    Ok(())
}

/// Variables to set, or to drop.
type EnvironmentChange = (String, Option<String>);

fn inner(order: &OsString, program: &[OsString]) -> i32 {
    obey_ending_signals();
    let order = order
        .to_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some(confinement): Option<Confinement> = order else {
        return complain("the order cannot be read", CANNOT_RUN);
    };
    match confine(&confinement) {
        Ok(changes) => become_program(program, &changes),
        Err(error) => complain(&error.to_string(), CANNOT_RUN),
    }
}

/// Takes rights from this process, in an order in which each step is still allowed.
fn confine(confinement: &Confinement) -> io::Result<Vec<EnvironmentChange>> {
    let mut changes = match confinement.proxy {
        true => network::hand_out_listener()?,
        false => Vec::new(),
    };
    if let Some(caches) = confinement.cache_home.as_deref().and_then(Path::to_str) {
        changes.push(("XDG_CACHE_HOME".to_owned(), Some(caches.to_owned())));
    }
    if let Some(most) = confinement.limits.processes {
        // One that is lower already stays.
        let _ = setrlimit(Resource::RLIMIT_NPROC, most, most);
    }
    close_all_on_exec()?;
    rights::restrict(confinement)?;
    syscalls::restrict(confinement)?;
    Ok(changes)
}

/// Becomes the program; gives an exit code where that fails.
fn become_program(program: &[OsString], changes: &[EnvironmentChange]) -> i32 {
    let Some((name, args)) = program.split_first() else {
        return complain("no program is named", CANNOT_RUN);
    };
    let mut command = Command::new(name);
    command.args(args);
    for (variable, value) in changes {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    let error = command.exec();
    let code = match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    };
    complain(&format!("cannot execute {}: {error}", name.display()), code)
}

/// Says on standard error, which is the agent's log, what went wrong.
pub(crate) fn complain(message: &str, code: i32) -> i32 {
    // Nobody is left to be told where this fails.
    let _ = writeln!(io::stderr(), "descartes sandbox: {message}");
    code
}
