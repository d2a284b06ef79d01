//! Remote loops as they are seen where their task loop runs: the copy of the journal, and commands.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::MEASURE;
use super::machines::{Machines, say, socket_of};
use super::simulated::Programs;
use crate::lab::stats::quantile;
use crate::lab::{Lab, Row, Rows, Trouble};

/// Lengths of a file as they were first seen.
fn lengths(file: &Path, began: Instant, stop: &AtomicBool) -> Vec<(u64, f64)> {
    let mut seen: Vec<(u64, f64)> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let length = std::fs::metadata(file).map_or(0, |meta| meta.len());
        if seen.last().is_none_or(|(last, _)| *last < length) {
            seen.push((length, began.elapsed().as_secs_f64() * 1e3));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    seen
}

/// How long after each length of the one the other had it, too.
fn lags(source: &[(u64, f64)], copy: &[(u64, f64)]) -> Vec<f64> {
    let reached = |length: u64| copy.iter().find(|(have, _)| *have >= length);
    let lag = |(length, at): &(u64, f64)| Some((reached(*length)?.1 - at).max(0.0));
    source.iter().filter_map(lag).collect()
}

/// 500 records a second, and the copy of them; then the whole of it, byte for byte.
pub fn copied(lab: &Lab, programs: &Programs) -> Rows {
    let mut machines = Machines::new(programs, 1)?;
    machines.worker("w1", 1)?;
    let go = machines.world.root().join("go");
    let script = format!(
        "wait-file {} ;; write work.txt done ;; promise",
        go.display()
    );
    let mut tasks = machines.start(&script, 1, true);
    let mut tasks = tasks.spawn().map_err(|error| error.to_string())?;
    let (copy, meta) = machines.first_copy()?;
    let id = meta["id"].as_str().unwrap_or_default();
    let source = machines.state("w1").join("loops").join(id);
    let (rate, seconds) = (500_u32, lab.form.pick(2, 10));
    let socket = socket_of(&source).ok_or("the loop has no socket")?;
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    let (written, arrived) = std::thread::scope(|scope| -> Result<_, Trouble> {
        let of = |folder: &Path| folder.join("journal.jsonl");
        let (source, copy) = (of(&source), of(&copy));
        let stop = &stop;
        let written = scope.spawn(move || lengths(&source, began, stop));
        let arrived = scope.spawn(move || lengths(&copy, began, stop));
        let sent = notes(&socket, rate, rate * seconds);
        std::thread::sleep(Duration::from_secs(1));
        stop.store(true, Ordering::SeqCst);
        sent?;
        let (written, arrived) = (written.join(), arrived.join());
        Ok((
            written.map_err(|_| "no lengths")?,
            arrived.map_err(|_| "no lengths")?,
        ))
    })?;
    std::fs::write(&go, "").map_err(|error| error.to_string())?;
    tasks.wait().map_err(|error| error.to_string())?;
    let read = |folder: &Path| std::fs::read(folder.join("journal.jsonl")).unwrap_or_default();
    let (theirs, ours) = (read(&source), read(&copy));
    let mut wrong = Vec::new();
    if ours.is_empty() || ours != theirs {
        wrong.push(format!("{} bytes of {}", ours.len(), theirs.len()));
    }
    let records = theirs.iter().filter(|byte| **byte == b'\n').count();
    let lags = lags(&written, &arrived);
    let p99 = quantile(&lags, 0.99);
    Ok(vec![
        Row::count(
            MEASURE,
            "journal of a remote loop, byte for byte",
            records as u64,
            &wrong,
        ),
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{rate} records a second copied: lag, p99"),
            (p99, "ms"),
            250.0,
        ),
    ])
}

/// Notes at a rate, each a record of the journal; nobody waits for the answers.
fn notes(socket: &Path, rate: u32, count: u32) -> Result<(), Trouble> {
    use std::io::{Read, Write};
    let told = |error: std::io::Error| error.to_string();
    let mut stream = std::os::unix::net::UnixStream::connect(socket).map_err(told)?;
    let mut answers = stream.try_clone().map_err(told)?;
    std::thread::spawn(move || {
        let mut bytes = [0; 64 << 10];
        while matches!(answers.read(&mut bytes), Ok(read) if read > 0) {}
    });
    let began = Instant::now();
    for n in 0..count {
        let at = Duration::from_secs(1) * n / rate;
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        let line = format!("{{\"v\":1,\"command\":\"say\",\"text\":\"note {n}\"}}\n");
        stream.write_all(line.as_bytes()).map_err(told)?;
    }
    Ok(())
}

/// A note to a remote task; to one whose worker is stopped, and to one whose worker is dead.
pub fn commanded(lab: &Lab, programs: &Programs) -> Rows {
    let mut machines = Machines::new(programs, 1)?;
    machines.worker("w1", 1)?;
    let mut tasks = machines.start("hang", 1, true);
    let mut tasks = tasks.spawn().map_err(|error| error.to_string())?;
    let (copy, _) = machines.first_copy()?;
    let socket = socket_of(&copy).ok_or("the loop has no socket")?;
    let count = lab.form.pick(50, 500);
    let (mut took, mut wrong) = (Vec::new(), Vec::new());
    for n in 0..count {
        let (answer, ms) = say(&socket, &format!("note {n}"))?;
        took.push(ms);
        if answer["answer"] != "accepted" {
            wrong.push(answer.to_string());
        }
    }
    let worker = Pid::from_raw(machines.workers[0].id().cast_signed());
    let signal = |signal| kill(worker, signal).map_err(|error| error.to_string());
    signal(Signal::SIGSTOP)?;
    let (frozen, frozen_ms) = say(&socket, "are you there")?;
    signal(Signal::SIGKILL)?;
    // Until its connection is closed it is taken for a frozen one.
    std::thread::sleep(Duration::from_secs(1));
    let (dead, dead_ms) = say(&socket, "are you still there")?;
    for (answer, words) in [(&frozen, "does not answer"), (&dead, "is gone")] {
        if !answer["message"]
            .as_str()
            .unwrap_or_default()
            .contains(words)
        {
            wrong.push(answer.to_string());
        }
    }
    drop(tasks.kill());
    drop(tasks.wait());
    let at_most =
        |what: &str, ms: f64, bar: f64| Row::at_most(lab.form, MEASURE, what, (ms, "ms"), bar);
    let p99 = quantile(&took, 0.99);
    Ok(vec![
        Row::count(MEASURE, "commands to a remote task", count + 2, &wrong),
        at_most("a note to a remote task accepted, p99", p99, 250.0),
        at_most("a dead worker is told", dead_ms, 1000.0),
        at_most("a frozen worker is told", frozen_ms, 5000.0),
    ])
}
