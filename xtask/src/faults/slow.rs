//! M9: a disk on which every sync takes 200 ms, as on a busy network drive.

use std::time::{Duration, Instant};

use super::cases::{self, CANNOT, Case};
use super::recovery::{resume, wrong};
use crate::lab::trial::gone_ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, seen};

const PLAN: &str = "slow-sync:200";

/// The bar of a stop, 200 ms, and the few syncs that the end of a loop needs.
const STOP_MS: f64 = 200.0 + 6.0 * 200.0;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 5);
    let cases: [(&str, Case); 2] = [
        ("every sync takes 200 ms: four iterations, gated", completes),
        (
            "every sync takes 200 ms: host killed in mid-iteration, resumed",
            killed,
        ),
    ];
    let mut rows = cases::rows(lab, "M9", rounds, &cases);
    rows.push(stop(lab, lab.form.pick(3, 30))?);
    Ok(rows)
}

fn slow(lab: &Lab) -> Result<Trial<'_>, Trouble> {
    Trial::faulty(lab).map_err(|why| format!("{CANNOT}: {why}"))
}

fn completes(lab: &Lab) -> Result<(), Trouble> {
    let trial = slow(lab)?;
    let mut command = trial.start(
        "@1-3 print working\n   promise\n@4- write ok yes\n   promise",
        &["--verify", "test -f ok"],
    );
    command.env("DESCARTES_FAULT", PLAN);
    let since = Instant::now();
    let finished = trial.run(command)?;
    let done = seen::iterations(&trial.journal(), "iteration_finished");
    if finished.code() != Some(0) || done != [1, 2, 3, 4] {
        return Err(format!("finished {done:?}; {finished}"));
    }
    if since.elapsed() < Duration::from_millis(400) {
        return Err("no sync was slow".to_owned());
    }
    wrong(&trial, &[]).map_or(Ok(()), Err)
}

fn killed(lab: &Lab) -> Result<(), Trouble> {
    let trial = slow(lab)?;
    let mut command = trial.start(
        "@1 print working\n@2 touch up\n   hang\n@3- promise",
        &["--kill-grace", "200ms"],
    );
    command.env("DESCARTES_FAULT", PLAN);
    let mut host = trial.spawn(command)?;
    trial.wait_for("up")?;
    let before = trial.journal_bytes();
    host.signal(nix::sys::signal::Signal::SIGKILL);
    host.code()?;
    let resumed = resume(&trial, &[])?;
    if resumed.code() != Some(0) {
        return Err(resumed.to_string());
    }
    wrong(&trial, &before).map_or(Ok(()), Err)
}

/// From SIGTERM until everything is gone.
fn stop(lab: &Lab, rounds: u32) -> Result<Row, Trouble> {
    let what = "every sync takes 200 ms: SIGTERM until all is gone";
    if lab.faulty.is_none() {
        return Ok(Row::cannot("M9", what, "no binary with fault points"));
    }
    let (mut slowly, mut usual) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        slowly.push(stopped(lab, Some(PLAN))?);
        usual.push(stopped(lab, None)?);
    }
    Ok(Row::times(
        lab.form,
        "M9",
        what,
        &slowly,
        ("the same on this disk", &usual),
        STOP_MS,
    ))
}

fn stopped(lab: &Lab, plan: Option<&str>) -> Result<f64, Trouble> {
    let trial = slow(lab)?;
    let script = "spawn-child setsid null kids\ntouch up\nhang";
    let mut command = trial.start(script, &["--kill-grace", "300ms"]);
    command.envs(plan.map(|plan| ("DESCARTES_FAULT", plan)));
    let mut host = trial.spawn(command)?;
    trial.wait_for("up")?;
    let everyone = trial.world.processes();
    let since = Instant::now();
    host.signal(nix::sys::signal::Signal::SIGTERM);
    let took = gone_ms(&everyone, since, Duration::from_secs(20))?;
    let code = host.code()?;
    let reason = trial.state()["exit_reason"]["type"].clone();
    if code != 143 || reason != "user_cancelled" {
        return Err(format!("exit code {code}, reason {reason}"));
    }
    Ok(took)
}
