//! M8: SIGKILL of the tool in its fifth iteration, and started again.

use nix::sys::signal::Signal;

use super::stage::{Stage, Work};
use super::{Cell, with_all};
use crate::lab::{Lab, Rows, Trouble};

/// Iterations that are finished when it is killed.
const DONE: u64 = 4;

/// The limit of the whole.
const MOST: u32 = 10;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    with_all(
        lab,
        "M8",
        "killed in iteration 5 of 10, started again",
        lab.form.pick(1, 5),
        one,
    )
}

fn one(stage: &Stage<'_>) -> Result<Cell, Trouble> {
    let trial = &stage.trial;
    // One tool goes on only where its agent has left notes there.
    let work = Work::new(
        "read-stdin-to got\nwrite .ralph/agent/scratchpad.md notes\nprint working\n@5 touch up\n   hang",
        MOST,
    );
    let mut host = trial.spawn(stage.begin(&work))?;
    trial.wait_for("up")?;
    host.signal(Signal::SIGKILL);
    host.code()?;
    // What it left behind is none of the next one's work here.
    trial.world.end_all();
    let before = stage.starts();
    let ended = trial.run(stage.again(&work))?;
    let after = stage.starts() - before;
    // The interrupted one may be done again under its number, or counted as lost.
    let (least, most) = (u64::from(MOST) - DONE - 1, u64::from(MOST) - DONE);
    Ok(match after {
        0 => Cell::Wrong(format!("does nothing more ({})", ended.status)),
        n if (least..=most).contains(&n) => Cell::Right("goes on at iteration 5".to_owned()),
        n if n > most => Cell::Wrong(format!(
            "begins at 1 again: {} iterations too many",
            n - most
        )),
        n => Cell::Wrong(format!("stops after {n} more ({})", ended.status)),
    })
}
