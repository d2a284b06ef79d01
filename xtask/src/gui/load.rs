//! What the window costs.

use std::fs;
use std::thread;
use std::time::Duration;

use super::Window;
use super::speed::CONTENT;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, proc};

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let mut rows = vec![idle(lab)?];
    rows.extend(many(lab)?);
    Ok(rows)
}

fn started(trial: &Trial<'_>, script: &str, flags: &[&str]) -> Result<(), Trouble> {
    let ended = trial.run(trial.start(script, flags))?;
    match ended.code() {
        Some(0) => Ok(()),
        _ => Err(format!("no loop: {ended}")),
    }
}

/// A silent agent is at work: a clock ticks in the window, and nothing else.
fn idle(lab: &Lab) -> Result<Row, Trouble> {
    let trial = Trial::new(lab);
    started(&trial, "print begun\ntouch up\nhang", &["--detach"])?;
    trial.wait_for("up")?;
    let window = Window::open(&trial, &[])?;
    window.screen.quiet(CONTENT)?;
    let seconds = lab.form.pick(6, 60);
    let (cpu, _) = share(window.pid(), seconds);
    trial.world.end_all();
    Ok(Row::at_most(
        lab.form,
        "window",
        format!("idle window for {seconds} s: processor"),
        (cpu, "%"),
        1.0,
    ))
}

/// Many loops, some of them printing as fast as they can; the newest is shown, and it prints.
fn many(lab: &Lab) -> Rows {
    let (silent, loud) = lab.form.pick((6, 3), (30, 20));
    let trial = Trial::new(lab);
    for number in 0..silent + loud {
        let script = match number < silent {
            true => "touch up-${PID}\nhang",
            false => "flood 1000GB lines",
        };
        let file = format!("loop-{number}.json");
        let flags = ["--detach", "--max-log", "64MB", "--state-file", &file];
        started(&trial, script, &flags)?;
    }
    let window = Window::open(&trial, &[])?;
    thread::sleep(Duration::from_secs(2));
    let (cpu, drawing) = share(window.pid(), lab.form.pick(4, 30));
    window.screen.photograph("15-many")?;
    drop(window);
    trial.world.end_all();
    let what = format!("{} loops, {loud} printing hard: processor", silent + loud);
    Ok(vec![
        Row::at_most(lab.form, "window", &what, (cpu, "%"), 10.0),
        Row::at_most(
            lab.form,
            "window",
            format!("{what}, of which the thread that draws"),
            (drawing, "%"),
            10.0,
        )
        .shown(),
    ])
}

/// Processor time of a process, and of its first thread, over a while, in percent of one core.
fn share(pid: i32, seconds: u64) -> (f64, f64) {
    let now = || (proc::cpu_seconds(pid), first_thread(pid));
    let before = now();
    thread::sleep(Duration::from_secs(seconds));
    let after = now();
    let percent = |used: f64| used / seconds as f64 * 100.0;
    (percent(after.0 - before.0), percent(after.1 - before.1))
}

/// Seconds of processor time of the thread that draws.
fn first_thread(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    let nanos = text.split_whitespace().next();
    nanos
        .and_then(|word| word.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}
