//! M6, M7: signals in the middle of an iteration, with an agent that has children.

use std::thread;
use std::time::{Duration, Instant};

use descartes_testkit::process::{self, Process};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::stage::{Stage, Work};
use super::{Cell, Tool, with_all};
use crate::lab::trial::{Running, alive};
use crate::lab::{Lab, Rows, Trouble};

/// Nobody is waited for longer.
const LIMIT: Duration = Duration::from_secs(5);

/// An agent, a child of it, and a child in a session of its own.
const SCRIPT: &str = "spawn-child plain null kids\nspawn-child setsid null kids\ntouch up\nhang";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Interrupt,
    Terminate,
    Kill,
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 3);
    let mut rows = Vec::new();
    for (ending, what) in [
        (Ending::Interrupt, "Ctrl-C twice: all gone after"),
        (Ending::Terminate, "SIGTERM: all gone after"),
        (Ending::Kill, "SIGKILL of the tool: all gone after"),
    ] {
        let once = |stage: &Stage<'_>| one(stage, ending);
        rows.extend(with_all(lab, "M6", what, rounds, once)?);
    }
    Ok(rows)
}

fn one(stage: &Stage<'_>, ending: Ending) -> Result<Cell, Trouble> {
    let trial = &stage.trial;
    let mut host = trial.spawn(stage.begin(&Work::new(SCRIPT, 3)))?;
    trial.wait_for("up")?;
    let everyone = trial.world.processes();
    let since = Instant::now();
    ask(&host, ending);
    // Peers are not waited for that long: they are shown, not judged.
    let limit = match stage.tool {
        Tool::Descartes => trial.lab.form.deadline(LIMIT),
        _ => LIMIT,
    };
    let took = gone(&everyone, since, limit);
    let cell = match took {
        Some(seconds) => Cell::Right(format!("{seconds:.2} s, none left")),
        None => {
            let left = alive(&everyone);
            let tool = left.iter().any(|one| one.pid == host.pid());
            let others = left.len() - usize::from(tool);
            let itself = if tool { "; runs on itself" } else { "" };
            Cell::Wrong(format!(
                "more than {} s, {others} left{itself}",
                limit.as_secs()
            ))
        }
    };
    trial.world.end_all();
    let _ = host.wait_at_most(LIMIT);
    Ok(cell)
}

/// A terminal's Ctrl-C goes to everybody in the foreground group; `kill` to the tool alone.
fn ask(host: &Running, ending: Ending) {
    match ending {
        Ending::Interrupt => {
            let group = Pid::from_raw(host.pid());
            let _ = killpg(group, Signal::SIGINT);
            thread::sleep(Duration::from_millis(300));
            let _ = killpg(group, Signal::SIGINT);
        }
        Ending::Terminate => host.signal(Signal::SIGTERM),
        Ending::Kill => process::send(host.pid(), Signal::SIGKILL),
    }
}

fn gone(everyone: &[Process], since: Instant, limit: Duration) -> Option<f64> {
    while since.elapsed() < limit {
        if alive(everyone).is_empty() {
            return Some(since.elapsed().as_secs_f64());
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}
