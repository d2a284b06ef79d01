//! The gap between the end of one agent and the start of the next, by the agent's own clock: bare
//! spawn and wait, beside a supervisor with its guard, and one without.
//!
//! `cargo run --release -p descartes-proc --example spawn_gap -- [RUNS]`
#![expect(clippy::print_stdout, reason = "it reports to a person")]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use descartes_proc::{Channel, Launch, Sink, Stdin, Supervisor, TreeEvent, guard_main};
use nix::time::{ClockId, clock_gettime};

/// Collects what the agent says.
#[derive(Default)]
struct Keep(Vec<u8>);

impl Sink for Keep {
    fn chunk(&mut self, _: Channel, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

/// The agent: says when it began and when it ends, in nanoseconds.
fn agent() -> Result<(), Box<dyn Error>> {
    let now = || clock_gettime(ClockId::CLOCK_MONOTONIC).map(|now| Duration::from(now).as_nanos());
    println!("{} {}", now()?, now()?);
    Ok(())
}

fn stamps(said: &[u8]) -> Result<(u64, u64), Box<dyn Error>> {
    let text = std::str::from_utf8(said)?;
    let (begun, ended) = text.trim().split_once(' ').ok_or("no stamps")?;
    Ok((begun.parse()?, ended.parse()?))
}

fn bare(exe: &Path, runs: u64) -> Result<Vec<(u64, u64)>, Box<dyn Error>> {
    let run = |_| {
        let mut command = Command::new(exe);
        command
            .arg("__agent")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        stamps(&command.output()?.stdout)
    };
    (0..runs).map(run).collect()
}

fn supervised(
    exe: &Path,
    runs: u64,
    mut supervisor: Supervisor,
    events: &Receiver<TreeEvent>,
) -> Result<Vec<(u64, u64)>, Box<dyn Error>> {
    let launch = Launch {
        argv: vec![exe.into(), "__agent".into()],
        env: std::env::vars_os().collect(),
        cwd: "/".into(),
        stdin: Stdin::Null,
        finish: std::time::Duration::ZERO,
    };
    let mut all = Vec::new();
    for run in 0..runs {
        supervisor.start(run, &launch, Box::new(Keep::default()))?;
        while !matches!(events.recv()?, TreeEvent::Swept { .. }) {}
        let report = supervisor.collect(Duration::from_secs(5));
        let sink: Box<dyn std::any::Any> = report.sink.ok_or("the sink is lost")?;
        all.push(stamps(
            &sink.downcast::<Keep>().map_err(|_| "another sink")?.0,
        )?);
    }
    Ok(all)
}

fn report(name: &str, stamps: &[(u64, u64)]) {
    let mut gaps: Vec<u64> = stamps
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].1) / 1000)
        .collect();
    gaps.sort_unstable();
    let at = |percent: usize| gaps[(gaps.len() - 1) * percent / 100];
    println!(
        "{name:8} gap µs: min {} p50 {} p90 {} p99 {}",
        at(0),
        at(50),
        at(90),
        at(99)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let first = std::env::args().nth(1);
    match first.as_deref() {
        Some("__guard") => {
            guard_main();
            return Ok(());
        }
        Some("__agent") => return agent(),
        _ => {}
    }
    let runs = first.map_or(Ok(500), |text| text.parse())?;
    let exe = std::env::current_exe()?;
    for _ in 0..2 {
        report("bare", &bare(&exe, runs)?);
        let (sender, events) = mpsc::channel();
        let on_event = Box::new(move |event| drop(sender.send(event)));
        let guarded = Supervisor::guarded(&exe, &["__guard"], &[], on_event)?;
        report("guarded", &supervised(&exe, runs, guarded, &events)?);
        let (sender, events) = mpsc::channel();
        let on_event = Box::new(move |event| drop(sender.send(event)));
        let direct = Supervisor::direct("spawn-gap", on_event)?;
        report("direct", &supervised(&exe, runs, direct, &events)?);
    }
    Ok(())
}
