//! An agent of many shapes. Every process of it says its id on a line of its own, so that a test can
//! wait for all of them and later see that none is left.
//!
//! `agent SHAPE` stays until it is ended. With `GATE` in its environment (a FIFO) it leaves as soon as
//! somebody opens that for writing.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test program fails by panicking"
)]

use std::fs::File;
use std::io::{Read, Write, stderr, stdout};
use std::process::{Child, Command};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        // The agent itself.
        ["child"] => agent(|| drop(again(&["sleep"]))),
        ["grandchild"] => agent(|| drop(again(&["nest"]))),
        ["double-fork"] => agent(|| leave(&mut again(&["middle"]))),
        ["setsid"] => agent(|| drop(again(&["setsid-sleep"]))),
        ["setsid-double-fork"] => agent(|| leave(&mut again(&["setsid-middle"]))),
        ["nohup"] => agent(|| drop(again(&["deaf-sleep", "SIGHUP"]))),
        ["ignores-term"] => {
            block(Signal::SIGTERM);
            agent(|| drop(again(&["deaf-sleep", "SIGTERM"])));
        }
        ["fork-bomb"] => agent(|| drop(again(&["bomb", "200"]))),
        ["unmarked"] => {
            agent(|| leave(&mut command(&["setsid-middle"]).env_clear().spawn().unwrap()));
        }
        ["stranger", program] => agent(|| drop(Command::new(program).arg("root").spawn().unwrap())),
        // Parts of its tree.
        ["sleep"] => up_and_sleep(),
        ["nest"] => {
            up();
            again(&["sleep"]).wait().unwrap();
        }
        ["middle"] => {
            up();
            drop(again(&["sleep"]));
        }
        ["setsid-sleep"] => {
            setsid().unwrap();
            up_and_sleep();
        }
        ["setsid-middle"] => {
            setsid().unwrap();
            up();
            drop(again(&["setsid-sleep"]));
        }
        ["deaf-sleep", signal] => {
            block(signal.parse().unwrap());
            up_and_sleep();
        }
        ["root"] => {
            let root = nix::unistd::Uid::from_raw(0);
            nix::unistd::setresuid(root, root, root).unwrap();
            up_and_sleep();
        }
        ["bomb", size] => bomb(size.parse().unwrap()),
        // Other doings.
        ["fds"] => say_fds(),
        ["spin"] => loop {
            std::hint::black_box(());
        },
        ["flood", stdout_bytes, stderr_bytes] => {
            flood(&mut stderr(), stderr_bytes.parse().unwrap());
            flood(&mut stdout(), stdout_bytes.parse().unwrap());
        }
        _ => panic!("unknown shape {args:?}"),
    }
}

fn agent(grow: impl FnOnce()) {
    grow();
    up();
    match std::env::var_os("GATE") {
        Some(gate) => drop(File::open(gate).unwrap().read(&mut [0]).unwrap()),
        None => sleep(),
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args);
    command
}

fn again(args: &[&str]) -> Child {
    command(args).spawn().unwrap()
}

fn leave(child: &mut Child) {
    child.wait().unwrap();
}

fn up() {
    // One write, so that lines of many processes do not mix.
    stdout()
        .write_all(format!("{}\n", std::process::id()).as_bytes())
        .unwrap();
}

fn sleep() {
    loop {
        std::thread::park();
    }
}

fn up_and_sleep() {
    up();
    sleep();
}

/// As good as ignoring it: it is never delivered.
fn block(signal: Signal) {
    let mut set = SigSet::empty();
    set.add(signal);
    set.thread_block().unwrap();
}

/// `size` processes in all, every other one in a session of its own.
fn bomb(size: u32) {
    if size.is_multiple_of(2) {
        let _ = setsid();
    }
    let rest = size - 1;
    for part in [rest / 2, rest - rest / 2] {
        if part > 0 {
            drop(again(&["bomb", &part.to_string()]));
        }
    }
    up_and_sleep();
}

fn say_fds() {
    let mut fds = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        // The folder being read is open, too.
        if !std::fs::read_link(entry.path()).unwrap().ends_with("fd") {
            fds.push(entry.file_name().into_string().unwrap());
        }
    }
    fds.sort();
    stdout().write_all(fds.join(" ").as_bytes()).unwrap();
}

/// Bytes of every value, without any order that a reader could mend.
fn flood(to: &mut impl Write, count: usize) {
    let mut noise = 1_u32;
    let values = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    });
    let block: Vec<u8> = values.take(65_536).collect();
    let mut left = count;
    while left > 0 {
        let part = left.min(block.len());
        to.write_all(&block[..part]).unwrap();
        left -= part;
    }
}
