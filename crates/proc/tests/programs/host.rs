//! A host to be killed: `host GUARD PROGRAM ARG…` runs the program under a guard, says `guard PID` and
//! then whatever the program says, and ends when the tree is swept. `host signals` says which signals
//! it gets. A guard holds the file open that `LOCK` names.
#![expect(clippy::unwrap_used, reason = "a test program fails by panicking")]
#![expect(clippy::print_stdout, reason = "a test program speaks to its test")]

use std::io::{Write, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;

use descartes_proc::{
    BootTime, Channel, HostSignal, Launch, Signals, Sink, Stdin, Supervisor, TreeEvent, TreeLease,
};

struct Through;

impl Sink for Through {
    fn chunk(&mut self, _: Channel, bytes: &[u8]) {
        stdout().write_all(bytes).unwrap();
        stdout().flush().unwrap();
    }
}

/// Says `ready`, then each signal that comes, until SIGTERM.
fn say_signals() {
    let (sender, arrived) = mpsc::channel();
    let wanted = [HostSignal::ENDINGS.as_slice(), &[HostSignal::Resize]].concat();
    let on_signal = Box::new(move |signal| sender.send(signal).unwrap());
    let signals = Signals::receive(&wanted, on_signal).unwrap();
    println!("ready");
    for signal in &arrived {
        println!("{signal:?}");
        if signal == HostSignal::Terminate {
            break;
        }
    }
    drop(signals);
    // Blocked still, so that it does no harm after the receiver has gone.
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT).unwrap();
    assert!(arrived.recv().is_err());
    println!("end");
}

fn main() {
    let mut args = std::env::args_os().skip(1);
    let guard = args.next().unwrap();
    if guard == "signals" {
        return say_signals();
    }
    // As a real host does it: what is blocked here must not be blocked in the agent.
    let _signals = Signals::receive(&HostSignal::ENDINGS, Box::new(|_| {})).unwrap();
    let (sender, events) = mpsc::channel();
    let on_event = Box::new(move |event| sender.send(event).unwrap());
    let lock = std::env::var_os("LOCK").unwrap_or("/dev/null".into());
    let lock = std::fs::File::open(lock).unwrap();
    let guard = Path::new(&guard);
    let mut supervisor = Supervisor::guarded(guard, &[], &[lock.as_fd()], on_event).unwrap();
    println!("guard {}", supervisor.guard_pid().unwrap());
    if let Ok(lease) = std::env::var("LEASE_MS") {
        supervisor.set_lease(TreeLease {
            until: BootTime::now() + std::time::Duration::from_millis(lease.parse().unwrap()),
            kill_after: std::time::Duration::from_secs(1800),
        });
    }
    let finish = std::env::var("FINISH_MS").map_or(0, |text| text.parse().unwrap());
    let finish = std::time::Duration::from_millis(finish);
    let launch = Launch {
        argv: args.collect(),
        env: std::env::vars_os().collect(),
        cwd: "/".into(),
        stdin: Stdin::Null,
        finish,
    };
    supervisor.start(1, &launch, Box::new(Through)).unwrap();
    while !matches!(events.recv().unwrap(), TreeEvent::Swept { .. }) {}
    supervisor.collect(std::time::Duration::from_secs(5));
}
