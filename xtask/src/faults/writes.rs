//! M8 and M9 at every write: the process is killed there, or the write fails.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::recovery::{begun, broke, resume, wrong};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// Two iterations, the first refused by the gate.
const SCRIPT: &str = "stamp stamps\nprint working\n@1 promise\n@2- write ok yes\n   promise";
const GATE: &str = "test -f ok";

/// No loop of two iterations writes so often.
const MOST: u64 = 400;

struct Kind {
    plan: &'static str,
    what: &'static str,
    /// Every how many-th write is tried in the short form.
    step: u64,
}

const KINDS: [Kind; 6] = [
    Kind {
        plan: "kill-at-write",
        what: "killed at every write",
        step: 1,
    },
    Kind {
        plan: "tear-at-write",
        what: "killed in the middle of every write",
        step: 2,
    },
    Kind {
        plan: "enospc-from-write",
        what: "disk full from every write on",
        step: 3,
    },
    Kind {
        plan: "eio-from-write",
        what: "EIO from every write on",
        step: 3,
    },
    Kind {
        plan: "half-at-write",
        what: "half a write, then ENOSPC, once",
        step: 3,
    },
    Kind {
        plan: "erofs-from-write",
        what: "read-only from every write on",
        step: 3,
    },
];

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    if lab.faulty.is_none() {
        return Ok(vec![Row::cannot(
            "M8",
            "faults at every write",
            "no binary with fault points",
        )]);
    }
    Ok(KINDS.iter().map(|kind| sweep(lab, kind)).collect())
}

/// From the first write to the first run that met none.
fn sweep(lab: &Lab, kind: &Kind) -> Row {
    let step = lab.form.pick(kind.step, 1);
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (tried, lost) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed) * step + 1;
            let plan = format!("{}:{nth}", kind.plan);
            match one(lab, &plan) {
                Ok(Met::Past) => over.store(true, Ordering::Relaxed),
                _ if nth > MOST => over.store(true, Ordering::Relaxed),
                Ok(Met::Here) => drop(tried.fetch_add(1, Ordering::Relaxed)),
                Err(trouble) => {
                    tried.fetch_add(1, Ordering::Relaxed);
                    let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                    lost.push(format!("{plan}: {trouble}"));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let lost = lost.into_inner().unwrap_or_else(PoisonError::into_inner);
    let measure = if kind.plan.starts_with("kill") || kind.plan.starts_with("tear") {
        "M8"
    } else {
        "M9"
    };
    Row::count(measure, kind.what, tried.into_inner(), &lost)
}

/// Whether the loop made as many writes at all.
enum Met {
    Here,
    Past,
}

fn one(lab: &Lab, plan: &str) -> Result<Met, Trouble> {
    let trial = Trial::faulty(lab)?;
    let command = |trial: &Trial<'_>| -> Command {
        trial.start(
            SCRIPT,
            &[
                "--verify",
                GATE,
                "--max-iterations",
                "20",
                "--max-failures",
                "20",
            ],
        )
    };
    let mut first = command(&trial);
    first.env("DESCARTES_FAULT", plan);
    let struck = trial.run(first)?;
    let kills = plan.starts_with("kill") || plan.starts_with("tear");
    if struck.code() == Some(0) && trial.state()["completed"] == true {
        // A run that met no fault is the last; one that went on over it has lost nothing.
        return if kills {
            Ok(Met::Past)
        } else {
            survived(&trial, plan)
        };
    }
    if !kills && let Some(what) = broke(&struck) {
        return Err(what);
    }
    let before = trial.journal_bytes();
    let resumed = if begun(&trial) {
        resume(&trial, &[])?
    } else {
        // Nothing was begun: a start must simply work, if need be with --force over a stub.
        trial.run(command(&trial))?
    };
    if resumed.code() != Some(0) {
        return Err(format!("it cannot be taken up again; {struck}; {resumed}"));
    }
    broke(&resumed)
        .or_else(|| wrong(&trial, &before))
        .map_or(Ok(Met::Here), Err)
}

/// It went on over the fault: everything must be there. Past the last write there was none.
fn survived(trial: &Trial<'_>, plan: &str) -> Result<Met, Trouble> {
    if let Some(what) = wrong(trial, &[]) {
        return Err(what);
    }
    let nth: u64 = plan
        .rsplit(':')
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    Ok(if nth > 120 { Met::Past } else { Met::Here })
}
