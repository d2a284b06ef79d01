//! M14: what it costs while the agent thinks, and what it costs to start.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, proc};

/// The second iteration is the silent one: the first has made every file that can be watched.
const SILENT: &str = "@1 print begun\n@2 touch up\n   hang";

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let mut rows = idle(lab)?;
    rows.push(version(lab)?);
    rows.push(size(lab)?);
    Ok(rows)
}

/// Wake-ups and processor time of host and guard so far.
fn used(pids: [i32; 2]) -> (u64, f64) {
    (
        pids.map(proc::wakeups).iter().sum(),
        pids.map(proc::cpu_seconds).iter().sum(),
    )
}

fn idle(lab: &Lab) -> Rows {
    let time = Duration::from_secs(lab.form.pick(20, 600));
    let trial = Trial::new(lab);
    let host = trial.spawn(trial.start(SILENT, &["--kill-grace", "0s"]))?;
    trial.wait_for("up")?;
    let pids = [host.pid(), host.guard()?];
    // The start is another matter.
    thread::sleep(Duration::from_secs(2));
    let before = used(pids);
    thread::sleep(time);
    let after = used(pids);
    let pss: u64 = pids.iter().filter_map(|pid| proc::pss_kib(*pid)).sum();
    host.signal(Signal::SIGTERM);
    let seconds = time.as_secs_f64();
    let cpu = (after.1 - before.1) / seconds * 100.0;
    let wakeups = (after.0 - before.0) as f64 / seconds;
    let what = format!("silent agent for {seconds:.0} s, host and guard");
    Ok(vec![
        Row::at_most(
            lab.form,
            "M14",
            format!("{what}: processor"),
            (cpu, "%"),
            0.1,
        ),
        Row::at_most(
            lab.form,
            "M14",
            format!("{what}: wake-ups"),
            (wakeups, "a second"),
            1.0,
        ),
        Row::at_most(
            lab.form,
            "M14",
            format!("{what}: memory (PSS)"),
            (pss as f64 / 1024.0, "MiB"),
            10.0,
        ),
    ])
}

fn spawn_ms(command: &mut Command) -> Result<f64, Trouble> {
    let since = Instant::now();
    let status = command
        .stdout(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    let took = since.elapsed().as_secs_f64() * 1e3;
    if status.success() {
        Ok(took)
    } else {
        Err(format!("{command:?}: {status}"))
    }
}

/// The bar of 5 ms is ten bare spawns on a quiet machine of today; on a busy one both grow.
fn version(lab: &Lab) -> Result<Row, Trouble> {
    let trial = Trial::new(lab);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..lab.form.pick(30, 200) {
        floor.push(spawn_ms(&mut Command::new("true"))?);
        ours.push(spawn_ms(&mut trial.descartes(&["--version"]))?);
    }
    let mut row = Row::ratio(
        lab.form,
        "M14",
        "`descartes --version`",
        &ours,
        ("`true`", &floor),
        5.0,
    );
    if lab.form == Form::Long {
        let median = crate::lab::stats::median(&ours);
        row.bar = "5 ms".to_owned();
        row.verdict = lab.form.judge(median <= 5.0, || format!("{median:.1} ms"));
    }
    Ok(row)
}

fn size(lab: &Lab) -> Result<Row, Trouble> {
    let bytes = fs::metadata(&lab.descartes)
        .map_err(|error| error.to_string())?
        .len();
    let mb = bytes as f64 / 1e6;
    let mut row = Row::at_most(lab.form, "M14", "size of the binary", (mb, "MB"), 16.0);
    row.raw = json!({ "bytes": bytes });
    // Only the release build is what people download.
    Ok(if lab.form == Form::Long {
        row
    } else {
        row.shown()
    })
}
