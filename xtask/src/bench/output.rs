//! M2 and M3: gigabytes of output, byte for byte in the logs, at the disk's speed, in little memory.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use descartes_testkit::agent::flood::{BLOCK, Pattern};
use descartes_testkit::stamp;
use serde_json::json;

use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, proc};

const MIB: u64 = 1 << 20;

/// What flows: a pattern, and so many MiB on each stream.
struct Flood {
    name: &'static str,
    what: &'static str,
    pattern: Pattern,
    short: (u64, u64),
    long: (u64, u64),
}

const FLOODS: [Flood; 3] = [
    Flood {
        name: "lines",
        what: "lines",
        pattern: Pattern::Lines,
        short: (192, 64),
        long: (8192, 2048),
    },
    Flood {
        name: "oneline",
        what: "one line",
        pattern: Pattern::OneLine,
        short: (96, 32),
        long: (1024, 256),
    },
    Flood {
        name: "binary",
        what: "binary",
        pattern: Pattern::Binary,
        short: (96, 32),
        long: (1024, 256),
    },
];

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let mut rows = Vec::new();
    for flood in &FLOODS {
        rows.extend(one(lab, flood)?);
    }
    Ok(rows)
}

struct Poured {
    seconds: f64,
    peak_kib: u64,
    difference: Option<String>,
}

fn one(lab: &Lab, flood: &Flood) -> Rows {
    let (out, err) = match lab.form {
        Form::Short => flood.short,
        Form::Long => flood.long,
    };
    let script = format!(
        "stamp stamps\nflood {err}M {name} stderr\nflood {out}M {name}",
        name = flood.name
    );
    // The best of two: a disk that is busy with others says nothing about us.
    let rounds = lab.form.pick(1, 2);
    let mut floors = Vec::new();
    let mut ours = Vec::new();
    for _ in 0..rounds {
        floors.push(bare(lab, &script)?);
        ours.push(poured(lab, flood, &script, (out * MIB, err * MIB))?);
    }
    let floor = floors.into_iter().fold(f64::INFINITY, f64::min);
    let seconds = ours
        .iter()
        .map(|run| run.seconds)
        .fold(f64::INFINITY, f64::min);
    let peak = ours.iter().map(|run| run.peak_kib).max().unwrap_or(0);
    let lost: Vec<String> = ours.into_iter().filter_map(|run| run.difference).collect();
    let mib = (out + err) as f64;
    let what = format!("{} MiB of {}", out + err, flood.what);
    Ok(vec![
        speed(lab, &what, mib, seconds, floor),
        Row::at_most(
            lab.form,
            "M2",
            format!("{what}: peak memory of host and guard"),
            (peak as f64 / 1024.0, "MiB"),
            24.0,
        ),
        Row::count(
            "M3",
            format!("{what}: both logs equal what was sent"),
            rounds,
            &lost,
        ),
    ])
}

fn speed(lab: &Lab, what: &str, mib: f64, seconds: f64, floor: f64) -> Row {
    let share = floor / seconds;
    let verdict = lab.form.judge(share >= 0.8, || {
        format!("{share:.2} of the bare pump's speed")
    });
    Row {
        measure: "M2",
        what: format!("{what}: speed"),
        tried: 1,
        ours: format!("{:.0} MiB/s", mib / seconds),
        floor: format!("bare pump to the same disk {:.0} MiB/s", mib / floor),
        ratio: Some(share),
        bar: "0.8 of the floor's speed".to_owned(),
        verdict,
        raw: json!({ "seconds": seconds, "floor_seconds": floor, "mib": mib }),
    }
}

/// How long the agent needed to get rid of it all: its own stamps.
fn agent_seconds(folder: &Path) -> Result<f64, Trouble> {
    let stamps = stamp::read(&folder.join("stamps"));
    match stamps.as_slice() {
        [start, end] => Ok((end.ns - start.ns) as f64 / 1e9),
        _ => Err(format!("one run was expected: {stamps:?}")),
    }
}

fn poured(lab: &Lab, flood: &Flood, script: &str, sizes: (u64, u64)) -> Result<Poured, Trouble> {
    let trial = Trial::new(lab);
    let flags = ["--max-log", "unlimited", "--max-iterations", "1"];
    let mut host = trial.spawn(trial.start(script, &flags))?;
    trial.wait_for("stamps")?;
    let guard = host.guard().unwrap_or(0);
    let pids = [host.pid(), guard];
    let peak = thread::scope(|scope| {
        let watching = scope.spawn(move || watch(pids));
        let code = host.code();
        let peak = watching.join().unwrap_or(0);
        code.map(|_| peak)
    })?;
    let seconds = agent_seconds(&trial.world.project())?;
    let difference = differs(&trial, "stdout.log", flood.pattern, sizes.0)?.or(differs(
        &trial,
        "stderr.log",
        flood.pattern,
        sizes.1,
    )?);
    Ok(Poured {
        seconds,
        peak_kib: peak,
        difference,
    })
}

/// The sum of both peaks, looked at until the host is gone.
fn watch(pids: [i32; 2]) -> u64 {
    let mut peaks = [0, 0];
    while let Some(host) = proc::peak_kib(pids[0]) {
        peaks[0] = peaks[0].max(host);
        peaks[1] = peaks[1].max(proc::peak_kib(pids[1]).unwrap_or(0));
        thread::sleep(Duration::from_millis(10));
    }
    peaks[0] + peaks[1]
}

fn log(trial: &Trial<'_>, name: &str) -> Result<PathBuf, Trouble> {
    let journal = trial.journals().into_iter().next().ok_or("no journal")?;
    let runs = journal.with_file_name("runs");
    let first = fs::read_dir(&runs)
        .ok()
        .and_then(|mut entries| entries.next()?.ok());
    first
        .map(|run| run.path().join(name))
        .ok_or_else(|| format!("no runs in {}", runs.display()))
}

/// Compares a log with what was sent, block by block.
fn differs(
    trial: &Trial<'_>,
    name: &str,
    pattern: Pattern,
    size: u64,
) -> Result<Option<String>, Trouble> {
    let path = log(trial, name)?;
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(&path).map_err(said)?;
    let length = file.metadata().map_err(said)?.len();
    if length != size {
        return Ok(Some(format!(
            "{name} holds {length} bytes, {size} were sent"
        )));
    }
    let block = pattern.block();
    let mut read = vec![0; BLOCK];
    for offset in (0..size).step_by(BLOCK) {
        file.read_exact(&mut read).map_err(said)?;
        if read != block {
            return Ok(Some(format!("{name} differs after byte {offset}")));
        }
    }
    Ok(None)
}

/// The floor: the same agent, each stream read in large pieces and written to a file.
fn bare(lab: &Lab, script: &str) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    let said = |error: std::io::Error| error.to_string();
    let mut command = trial.world.command(&lab.agent);
    command
        .env("SCRIPTED_AGENT", script)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut agent = command.spawn().map_err(said)?;
    let (out, err): (Option<ChildStdout>, Option<ChildStderr>) =
        (agent.stdout.take(), agent.stderr.take());
    let (out_to, err_to) = (
        trial.world.root().join("out"),
        trial.world.root().join("err"),
    );
    thread::scope(|scope| {
        scope.spawn(|| out.map(|from| pump(from, &out_to)));
        scope.spawn(|| err.map(|from| pump(from, &err_to)));
    });
    agent.wait().map_err(said)?;
    agent_seconds(&trial.world.project())
}

fn pump(mut from: impl Read, to: &Path) -> std::io::Result<()> {
    let mut to = File::create(to)?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}
