//! What a sandbox costs: the gap between two agents by their own stamps, in `workspace` and without.

use std::fs;

use serde_json::json;

use super::gap;
use crate::lab::stats::{median, quantile};
use crate::lab::{Lab, Row, Rows, Trial};

/// Milliseconds that a run may take longer.
const BAR: f64 = 12.0;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    let told = trial.run(trial.descartes(&["doctor"]))?.stdout();
    let what = "a run in `workspace` over one without";
    if !told.contains("workspace and strict work here") {
        let why = "bwrap does not work on this machine";
        return Ok(vec![Row::cannot("sandbox", what, why)]);
    }
    let turns = lab.form.pick(50, 225) / gap::TURN;
    let (mut without, mut within, mut strict) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        without.extend(run(lab, &["--sandbox", "off"])?);
        within.extend(run(lab, &["--sandbox", "workspace"])?);
        strict.extend(run(lab, &["--sandbox", "strict"])?);
    }
    let row = |what: &str, runs: &[f64]| {
        let over = median(runs) - median(&without);
        let mut row = Row::at_most(lab.form, "sandbox", what, (over, "ms"), BAR);
        row.tried = runs.len() as u64;
        row.ours = format!(
            "{over:.1} ms more: p50 {:.1} ms, p95 {:.1} ms",
            median(runs),
            quantile(runs, 0.95)
        );
        row.floor = format!("without {:.1} ms", median(&without));
        row.raw = json!({ "ours_ms": runs, "floor_ms": without });
        row
    };
    let shown = row("a run in `strict` over one without", &strict).shown();
    Ok(vec![row(what, &within), shown])
}

/// Gaps in a repository of its own, where the sandbox has something to lock.
fn run(lab: &Lab, flags: &[&str]) -> Result<Vec<f64>, String> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    let stamps = trial.world.root().join("stamps");
    fs::write(&stamps, "").map_err(|error| error.to_string())?;
    let stamps = stamps.to_string_lossy().into_owned();
    let more = ["--stall-after", "0", "--sandbox-write", &stamps];
    gap::descartes(&trial, &[flags, &more[..]].concat())
}
