//! M7: whatever an agent leaves behind is gone two seconds after the end, whatever the end was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use descartes_testkit::process::{self, Process};
use nix::sys::signal::Signal;

use crate::lab::trial::gone_ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const SHAPES: [&str; 8] = [
    "plain",
    "grandchild",
    "double-fork",
    "setsid",
    "setsid-double-fork",
    "nohup",
    "ignore-term",
    "fork-bomb=200",
];

/// All must be gone so soon after the end.
const LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Normal,
    Timeout,
    Interrupt,
    Terminate,
    KillHost,
    KillGuard,
    KillBoth,
}

impl Ending {
    const ALL: [(Self, &str); 7] = [
        (Self::Normal, "agent exits"),
        (Self::Timeout, "timeout"),
        (Self::Interrupt, "SIGINT ×2"),
        (Self::Terminate, "SIGTERM"),
        (Self::KillHost, "SIGKILL of the host"),
        (Self::KillGuard, "SIGKILL of the guard"),
        (Self::KillBoth, "SIGKILL of both, swept at the next start"),
    ];
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 20);
    Ok(rows(lab, "M7", &SHAPES, rounds))
}

/// The same in a sandbox; there nothing has to be swept.
pub fn in_sandbox(lab: &Lab) -> Vec<Row> {
    let (shapes, rounds) = lab.form.pick((&SHAPES[3..], 1), (&SHAPES[..], 13));
    rows(lab, "sandbox", shapes, rounds)
}

fn rows(lab: &Lab, measure: &'static str, shapes: &[&'static str], rounds: u64) -> Vec<Row> {
    let cells: Vec<(Ending, &str)> = (0..rounds)
        .flat_map(|_| Ending::ALL)
        .flat_map(|(ending, _)| shapes.iter().map(move |shape| (ending, *shape)))
        .collect();
    let lost = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    // Most of a trial is waiting.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((ending, shape)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(trouble) = one(lab, *ending, shape) {
                        let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                        lost.push((*ending, format!("{shape}: {trouble}")));
                    }
                }
            });
        }
    });
    let lost = lost.into_inner().unwrap_or_else(PoisonError::into_inner);
    let row = |(ending, name): (Ending, &str)| {
        let mine: Vec<String> = lost
            .iter()
            .filter(|(of, _)| *of == ending)
            .map(|(_, what)| what.clone())
            .collect();
        Row::count(
            measure,
            format!("{name}, {} shapes", shapes.len()),
            rounds * shapes.len() as u64,
            &mine,
        )
    };
    Ending::ALL.map(row).into()
}

fn one(lab: &Lab, ending: Ending, shape: &str) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    // An agent that ends by itself waits until its children were seen: they are swept right after it.
    let stay = if ending == Ending::Normal {
        "wait-file seen\npromise"
    } else {
        "hang"
    };
    let script = format!(
        "if-file swept promise\nif-file swept exit 0\nspawn-child {shape} pipe kids\ntouch up\n{stay}"
    );
    let mut flags = vec!["--kill-grace", "200ms", "--max-iterations", "1"];
    if ending == Ending::Timeout {
        // Time enough for 200 processes to be born on a busy machine.
        flags.extend(["--timeout", "2s"]);
    }
    let mut host = trial.spawn(trial.start(&script, &flags))?;
    trial.wait_for("up")?;
    // Found by the ids they wrote themselves, so that none is missed; dead ones are not there. In a sandbox
    // those ids mean nothing outside.
    let kids = match lab.sandbox {
        None => kids(&trial),
        Some(_) => trial.world.processes(),
    };
    if kids.is_empty() {
        return Err("no process was found".to_owned());
    }
    let guard = if matches!(ending, Ending::KillGuard | Ending::KillBoth) {
        host.guard()?
    } else {
        0
    };
    match ending {
        Ending::Normal => {
            trial.world.write("seen", "");
        }
        Ending::Timeout => {}
        Ending::Interrupt => {
            host.signal(Signal::SIGINT);
            trial.wait_for_events("stop_requested", 1)?;
            host.signal(Signal::SIGINT);
        }
        Ending::Terminate => host.signal(Signal::SIGTERM),
        Ending::KillHost => host.signal(Signal::SIGKILL),
        Ending::KillGuard => process::send(guard, Signal::SIGKILL),
        Ending::KillBoth => {
            process::send(guard, Signal::SIGKILL);
            host.signal(Signal::SIGKILL);
        }
    }
    host.code()?;
    let limit = lab.form.deadline(LIMIT);
    if ending == Ending::KillBoth && lab.sandbox.is_some() {
        // Here nobody has to come and sweep.
        gone_ms(&kids, Instant::now(), limit)?;
    }
    if ending == Ending::KillBoth {
        trial.world.write("swept", "");
        let resumed = trial.run(trial.descartes(&["loop", "resume", "--max-iterations", "3"]))?;
        if resumed.code() != Some(0) {
            return Err(format!("the next start failed: {resumed}"));
        }
    }
    let ended = Instant::now();
    gone_ms(&kids, ended, limit)?;
    // The guard too: it ends a moment after the last of those it swept.
    gone_ms(&trial.world.processes(), ended, limit)?;
    let left = trial.world.processes();
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("survivors: {left:?}"))
    }
}

fn kids(trial: &Trial<'_>) -> Vec<Process> {
    let ids = trial.world.read("kids");
    ids.lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(process::find)
        .collect()
}
