//! An engine that is killed, and one that loses its disk.

use std::time::Duration;

use serde_json::json;

use super::MEASURE;
use super::deaths::{holding, summary};
use super::simulated::{Engine, Programs, lost};
use crate::lab::{Lab, Row, Rows};

/// Killed again and again, down for less than a lease: nothing is lost, nothing moves.
pub fn killed(lab: &Lab, programs: &Programs) -> Rows {
    let (count, times, ttl) = (
        lab.form.pick(50, 500),
        lab.form.pick(2, 20),
        lab.form.pick(6, 20),
    );
    let work = lab.form.pick(8_000, 60_000);
    let engine = Engine::start(programs)?;
    let (coordinator, workers) = holding(&engine, count, ttl, work)?;
    for _ in 0..times {
        engine.kill()?;
        std::thread::sleep(Duration::from_millis(500));
        engine.start_again()?;
        std::thread::sleep(Duration::from_secs(1));
    }
    let report = coordinator.report()?;
    let workers = workers.report()?;
    let mut wrong = lost(&report);
    if report["moved"] != 0 {
        wrong.push(format!("{} moved", report["moved"]));
    }
    let what =
        format!("engine killed {times} times under {count} held tasks, down less than a lease");
    let mut row = Row::count(MEASURE, what, count as u64, &wrong);
    row.raw = json!({ "coordinator": summary(&report), "workers": workers });
    Ok(vec![row])
}

/// The holders take their leases again, and nothing is started again.
pub fn emptied(lab: &Lab, programs: &Programs) -> Rows {
    let (count, ttl) = (lab.form.pick(50, 200), lab.form.pick(6, 20));
    let engine = Engine::start(programs)?;
    let (coordinator, workers) = holding(&engine, count, ttl, lab.form.pick(8_000, 30_000))?;
    engine.kill()?;
    let data = engine.path().join("data");
    std::fs::remove_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
    engine.start_again()?;
    let report = coordinator.report()?;
    let workers = workers.report()?;
    let mut wrong = lost(&report);
    if report["moved"] != 0 || workers["claimed"].as_u64() != Some(count as u64) {
        wrong.push(format!(
            "{} moved, {} claims of {count} tasks",
            report["moved"], workers["claimed"]
        ));
    }
    let what = format!("engine's disk emptied under {count} held tasks");
    let mut row = Row::count(MEASURE, what, count as u64, &wrong);
    row.raw = json!({ "coordinator": summary(&report), "workers": workers });
    Ok(vec![row])
}
