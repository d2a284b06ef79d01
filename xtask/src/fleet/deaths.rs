//! Workers that die, and workers that come back from the dead.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::MEASURE;
use super::simulated::{Engine, Programs, Simulated, lost, numbers};
use crate::lab::stats::max;
use crate::lab::{Lab, Row, Rows, Trouble};

/// After the lease: so late the last one may be taken up.
const TAKEN_UP_AFTER_MS: f64 = 2000.0;

/// Holders are killed; others take up their tasks.
pub fn killed(lab: &Lab, programs: &Programs) -> Rows {
    let (count, ttl) = (lab.form.pick(40, 200), lab.form.pick(3, 10));
    let engine = Engine::start(programs)?;
    let mut others = engine.idle_workers("others", count)?;
    let (coordinator, doomed) = holding(&engine, count, ttl, ttl * 1500)?;
    doomed.signal(Signal::SIGKILL)?;
    drop(doomed);
    others.begin()?;
    let report = coordinator.report()?;
    drop(others);
    let taken = numbers(&report, "takeover_ms");
    let mut wrong = lost(&report);
    if taken.len() != count {
        wrong.push(format!("{} of {count} were taken up", taken.len()));
    }
    let bar = ttl as f64 * 1e3 + TAKEN_UP_AFTER_MS;
    let what = format!("{count} workers killed while holding, leases of {ttl} s");
    Ok(vec![
        Row::count(MEASURE, what.clone(), count as u64, &wrong),
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{what}: from the last beat to the next holder, the latest"),
            (max(&taken), "ms"),
            bar,
        ),
    ])
}

/// Holders are stopped for two leases; others do their tasks; then they go on.
pub fn zombies(lab: &Lab, programs: &Programs) -> Rows {
    let (count, ttl) = (lab.form.pick(40, 1000), lab.form.pick(2, 10));
    let engine = Engine::start(programs)?;
    let mut others = engine.idle_workers("others", count)?;
    // Long enough that none ends before the last one is handed out, and all while they are stopped.
    let (work_ms, stop) = (lab.form.pick(4_000, 30_000), lab.form.pick(5, 35));
    let (coordinator, stopped) = holding(&engine, count, ttl, work_ms)?;
    stopped.signal(Signal::SIGSTOP)?;
    others.begin()?;
    std::thread::sleep(Duration::from_secs(stop));
    stopped.signal(Signal::SIGCONT)?;
    let report = coordinator.report()?;
    // What they had to hand in they have tried by now; the same beat tells them. Several leases, since forty of
    // them go on at once on a busy machine.
    std::thread::sleep(Duration::from_secs(lab.form.pick(5, 1) * ttl));
    let zombies = stopped.report()?;
    drop(others);
    let mut wrong = lost(&report);
    // A result that came in before the stop is one; every other task moved, and its zombie was fenced.
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let (moved, early) = (number(&report["moved"]), number(&zombies["done"]));
    if early + moved != count as u64 {
        wrong.push(format!(
            "{early} results of those who were stopped, {moved} moved, of {count}"
        ));
    }
    if number(&zombies["fenced"]) != moved || moved == 0 {
        wrong.push(format!(
            "{} of {moved} zombies were fenced",
            zombies["fenced"]
        ));
    }
    let what =
        format!("{count} workers stopped for {stop} s with leases of {ttl} s, then continued");
    let mut row = Row::count(MEASURE, what, count as u64, &wrong);
    row.raw = json!({ "coordinator": summary(&report), "zombies": zombies });
    Ok(vec![row])
}

/// A coordinator, and workers of which each holds a task.
pub fn holding(
    engine: &Engine<'_>,
    count: usize,
    ttl: u64,
    work_ms: u64,
) -> Result<(Simulated, Simulated), Trouble> {
    let workers = engine.workers("first", count)?;
    let settings = json!({ "ttl_s": ttl, "work_ms": work_ms, "limit_s": 60 + ttl * 6 });
    let mut coordinator = engine.coordinator(count, &settings)?;
    coordinator.all_held()?;
    Ok((coordinator, workers))
}

/// A report without its lists.
pub fn summary(report: &Value) -> Value {
    let fields = report.as_object().into_iter().flatten();
    let kept = fields.filter(|(_, value)| !value.is_array());
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
