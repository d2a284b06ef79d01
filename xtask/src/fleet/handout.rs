//! Offers to idle workers, and as many tasks as the engine takes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::MEASURE;
use super::simulated::{Engine, Programs, lost, numbers};
use crate::lab::stats::{max, quantile};
use crate::lab::{Lab, Row, Rows, Trouble, proc};

/// From the offer to the claim, 99 of 100.
const HANDOUT_P99_MS: f64 = 100.0;
const ENGINE_MB: f64 = 200.0;

/// Tasks a second where a synced write takes at most half a millisecond.
const TASKS_PER_SECOND: f64 = 300.0;
const FAST_WRITES: f64 = 2000.0;
/// Tasks for each of the disk's synced writes where it is slower.
const TASKS_PER_WRITE: f64 = 0.4;

/// Many idle workers, 100 offers a second.
pub fn idle(lab: &Lab, programs: &Programs) -> Rows {
    let (workers, tasks) = (lab.form.pick(200, 1000), lab.form.pick(300, 3000));
    let engine = Engine::start(programs)?;
    let parties = [
        engine.workers("a", workers / 2)?,
        engine.workers("b", workers / 2)?,
    ];
    let report = engine
        .coordinator(tasks, &json!({ "rate": 100 }))?
        .report()?;
    let peak = proc::peak_kib(engine.pid()?).unwrap_or_default() as f64 / 1024.0;
    drop(parties);
    let times = numbers(&report, "handout_ms");
    let p99 = quantile(&times, 0.99);
    let what = format!("hand-out to {workers} idle workers, 100 offers a second");
    let mut row = Row::at_most(
        lab.form,
        MEASURE,
        format!("{what}: p99"),
        (p99, "ms"),
        HANDOUT_P99_MS,
    );
    row.raw = json!({ "p50": quantile(&times, 0.5), "p99": p99, "max": max(&times), "tasks": times.len() });
    let memory = format!("memory of the engine with {workers} workers");
    Ok(vec![
        row,
        Row::count(MEASURE, what, tasks as u64, &lost(&report)),
        Row::at_most(lab.form, MEASURE, memory, (peak, "MB"), ENGINE_MB),
    ])
}

/// As fast as it goes.
pub fn saturated(lab: &Lab, programs: &Programs) -> Rows {
    let (workers, tasks) = (lab.form.pick(200, 1000), lab.form.pick(1000, 10_000));
    let engine = Engine::start(programs)?;
    let parties = [
        engine.workers("a", workers / 2)?,
        engine.workers("b", workers / 2)?,
    ];
    let before = synced_writes(&engine.path())?;
    let report = engine
        .coordinator(tasks, &json!({ "limit_s": 300 }))?
        .report()?;
    let writes = before.min(synced_writes(&engine.path())?);
    drop(parties);
    let rate = tasks as f64 / report["seconds"].as_f64().unwrap_or(f64::INFINITY);
    let bar = match writes >= FAST_WRITES {
        true => TASKS_PER_SECOND,
        false => TASKS_PER_WRITE * writes,
    };
    let what = format!("{tasks} tasks over {workers} workers, every write synced");
    let verdict = lab.form.judge(rate >= bar, || {
        format!("{rate:.0} a second, the bar is {bar:.0}")
    });
    let speed = Row {
        measure: MEASURE,
        what: format!("{what}: tasks a second"),
        tried: tasks as u64,
        ours: format!("{rate:.0}/s"),
        floor: format!("{writes:.0} synced writes/s"),
        ratio: Some(rate / writes),
        bar: format!("≥ {bar:.0}/s"),
        verdict,
        raw: json!({ "tasks_per_second": rate, "synced_writes_per_second": writes }),
    };
    Ok(vec![
        speed,
        Row::count(MEASURE, what, tasks as u64, &lost(&report)),
    ])
}

/// Synced writes a second of the disk on which the engine's data lie.
fn synced_writes(folder: &Path) -> Result<f64, Trouble> {
    let path = folder.join("synced");
    let told = |error: std::io::Error| error.to_string();
    let mut file = File::create(&path).map_err(told)?;
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed().as_millis() < 500 {
        file.write_all(&[7; 256]).map_err(told)?;
        file.sync_data().map_err(told)?;
        count += 1;
    }
    std::fs::remove_file(path).map_err(told)?;
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}
