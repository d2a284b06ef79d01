//! M7: fork bombs that still grow when they are stopped.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::lab::trial::gone_ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// All must be gone so soon after the end was asked for.
const LIMIT: Duration = Duration::from_secs(10);

/// How a bomb grows. None grows beyond its number, whatever happens: this is our own machine.
struct Bomb {
    what: &'static str,
    /// `N` processes at most.
    shell: fn(u32) -> String,
}

const BOMBS: [Bomb; 3] = [
    Bomb {
        what: "one that forks again and again",
        shell: |n| {
            format!(
                "i=0; while [ $i -lt {n} ]; do sleep 300 & i=$((i+1)); [ $i -ne 20 ] || touch up; done; wait"
            )
        },
    },
    Bomb {
        what: "a session of its own for each",
        shell: |n| {
            format!(
                "i=0; while [ $i -lt {n} ]; do setsid sleep 300 & i=$((i+1)); [ $i -ne 20 ] || touch up; done; wait"
            )
        },
    },
    Bomb {
        what: "each forks two, all ignore SIGTERM",
        shell: |n| {
            let depth = n.ilog2().saturating_sub(1);
            format!(
                "trap '' TERM INT HUP; b() {{ [ $1 -gt 0 ] || {{ touch up; exec sleep 300; }}; b $(($1-1)) & b $(($1-1)) & wait; }}; b {depth}"
            )
        },
    },
];

#[derive(Debug, Clone, Copy)]
enum Ending {
    Cancel,
    Terminate,
    KillHost,
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (size, rounds) = lab.form.pick((256, 1), (1024, 5));
    let mut rows = Vec::new();
    for bomb in &BOMBS {
        let mut lost = Vec::new();
        let mut tried = 0;
        let mut worst: f64 = 0.0;
        for _ in 0..rounds {
            for ending in [Ending::Cancel, Ending::Terminate, Ending::KillHost] {
                tried += 1;
                match one(lab, bomb, size, ending) {
                    Ok(ms) => worst = worst.max(ms),
                    Err(trouble) => lost.push(format!("{ending:?}: {trouble}")),
                }
            }
        }
        let what = format!(
            "fork bomb of at most {size}, stopped while it grows: {}",
            bomb.what
        );
        let mut row = Row::count("M7", what, tried, &lost);
        row.ours = format!("{} survived; all gone within {worst:.0} ms", lost.len());
        rows.push(row);
    }
    Ok(rows)
}

fn one(lab: &Lab, bomb: &Bomb, size: u32, ending: Ending) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let script = format!("sh {}", (bomb.shell)(size));
    let mut host = trial.spawn(trial.start(&script, &["--kill-grace", "200ms"]))?;
    trial.wait_for("up")?;
    let since = Instant::now();
    match ending {
        Ending::Cancel => {
            let mut cancel = trial.descartes(&["loop", "cancel"]);
            cancel.stdout(Stdio::null()).stderr(Stdio::null());
            let status = cancel.status().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err(format!("loop cancel: {status}"));
            }
        }
        Ending::Terminate => host.signal(Signal::SIGTERM),
        Ending::KillHost => host.signal(Signal::SIGKILL),
    }
    host.code()?;
    // Those that were born meanwhile are looked for as well: the world's mark is in all of them.
    let limit = lab.form.deadline(LIMIT);
    while since.elapsed() < limit {
        let left = trial.world.processes();
        if left.is_empty() {
            return Ok(since.elapsed().as_secs_f64() * 1e3);
        }
        gone_ms(&left, since, limit)?;
    }
    Err(format!("survivors: {}", trial.world.processes().len()))
}
