//! M5: an agent that has said it is done, and an agent that is gone, are not waited for.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use descartes_testkit::stamp::{self, Edge};

use crate::lab::stats::ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const GRACE_MS: f64 = 500.0;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(3, 30);
    let mut silent = Vec::new();
    let mut held = Vec::new();
    let mut grace = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..rounds {
        grace.push(slept());
        silent.push(promise_then_silence(lab)?);
        bare.push(spawn_to_spawn(lab)?);
        held.push(pipe_held(lab)?);
    }
    Ok(vec![
        Row::times(
            lab.form,
            "M5",
            "promise, then silence: from the promise to the end of the agent (grace 500 ms)",
            &silent,
            ("a timer of the grace", &grace),
            GRACE_MS + 50.0,
        ),
        Row::times(
            lab.form,
            "M5",
            "agent gone, its child holds the pipe: from its exit to the next agent",
            &held,
            ("bare spawn to spawn", &bare),
            1000.0,
        ),
    ])
}

fn slept() -> f64 {
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(GRACE_MS / 1e3));
    begun.elapsed().as_secs_f64() * 1e3
}

/// The agent stamps its start right before the promise, and its end when it is asked to go.
fn promise_then_silence(lab: &Lab) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let script = "on-signal TERM - exit 0\nstamp stamps\npromise\nhang";
    let finished = trial.run(trial.start(script, &["--promise-grace", "500ms"]))?;
    if finished.code() != Some(0) {
        return Err(format!("a promise did not end the loop; {finished}"));
    }
    let stamps = stamp::read(&trial.path("stamps"));
    match stamps.as_slice() {
        [start, end] if end.edge == Edge::End => Ok(ms(end.ns - start.ns)),
        _ => Err(format!("the agent was not asked to go: {stamps:?}")),
    }
}

fn pipe_held(lab: &Lab) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let script = "stamp stamps\n@1 spawn-child setsid pipe kids\n@2 promise";
    let finished = trial.run(trial.start(script, &[]))?;
    let gaps = stamp::gaps_ns(&stamp::read(&trial.path("stamps")));
    match (finished.code(), gaps.as_slice()) {
        (Some(0), [gap]) => Ok(ms(*gap)),
        _ => Err(format!(
            "two iterations were expected: {gaps:?}; {finished}"
        )),
    }
}

/// Two agents, one after the other, with nothing between.
fn spawn_to_spawn(lab: &Lab) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let stamps = trial.path("stamps");
    for _ in 0..2 {
        let mut command: Command = trial.world.command(&lab.agent);
        command
            .env("SCRIPTED_AGENT", "stamp stamps")
            .stdout(Stdio::null());
        command.status().map_err(|error| error.to_string())?;
    }
    let gaps = stamp::gaps_ns(&stamp::read(&stamps));
    let _ = fs::remove_file(stamps);
    gaps.first()
        .map(|gap| ms(*gap))
        .ok_or_else(|| "no stamps".to_owned())
}
