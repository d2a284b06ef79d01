//! What descartes itself uses while a real CLI takes one scripted turn.
//!
//! The CLI's own use differs more from run to run than ours amounts to, so the two are not
//! compared over runs: a wrapper tells what the CLI used, and the rest of the tree is ours.

use std::fs;
use std::time::Duration;

use descartes_testkit::real_clis::Options;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

use super::stage::{Build, PATIENCE, Stage, must};
use super::table::Table;

const ROUNDS: usize = 5;
/// The share of the CLI's own use.
const BAR: f64 = 0.02;

/// Runs it.
pub fn run(stage: &Build<'_>, table: &mut Table) -> Result<(), String> {
    let mut shares = Vec::new();
    let mut agent = "";
    for round in 0..ROUNDS {
        let mut stage = stage(&format!("cpu-{round}"));
        agent = stage.cli.name();
        match once(&mut stage) {
            Ok(share) => shares.push(share),
            Err(wrong) => {
                table.add(agent, "cpu", Err(wrong));
                return Ok(());
            }
        }
    }
    shares.sort_by(|a, b| a.share().total_cmp(&b.share()));
    let median = &shares[shares.len() / 2];
    let told = format!(
        "{:.1} % ({:.0} ms beside {:.0} ms, median of {ROUNDS})",
        median.share() * 100.0,
        median.ours.as_secs_f64() * 1e3,
        median.agents.as_secs_f64() * 1e3
    );
    let seen = if median.share() < BAR {
        Ok(told)
    } else {
        Err(told)
    };
    table.add(agent, "cpu over the bare CLI", seen);
    Ok(())
}

#[derive(Debug)]
struct Used {
    ours: Duration,
    agents: Duration,
}

impl Used {
    fn share(&self) -> f64 {
        self.ours.as_secs_f64() / self.agents.as_secs_f64().max(1e-6)
    }
}

fn once(stage: &mut Stage<'_>) -> Result<Used, String> {
    let turns = json!([
        {"text": "I will write it.", "tool": {"shell": "echo one > work.txt"}},
        {"text": "Written.\n\n<promise>COMPLETE</promise>"},
    ]);
    stage.script(turns, &Options::default())?;
    let told = stage.world.root().join("tmp/times");
    let wrapper = format!(
        "#!/bin/bash\n'{}' \"$@\"\ncode=$?\ntimes > '{}'\nexit $code\n",
        stage.program()?.display(),
        told.display()
    );
    let program = stage.world.program(stage.cli.name(), &wrapper);
    let command = stage.start(&program, &["-m", "1"])?;
    let before = children()?;
    let run = stage
        .world
        .watch(command, PATIENCE)
        .map_err(|so_far| format!("did not end\n{so_far}"))?;
    let all = children()?.saturating_sub(before);
    must(run.code() == Some(0), || run.to_string())?;
    let times = fs::read_to_string(&told).map_err(|error| error.to_string())?;
    let (shell, agents) = parse(&times).ok_or_else(|| format!("times said {times:?}"))?;
    Ok(Used {
        ours: all.saturating_sub(shell + agents),
        agents,
    })
}

/// CPU time of everything that was started here and has ended.
fn children() -> Result<Duration, String> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let time = |value: nix::sys::time::TimeVal| {
        Duration::from_micros(
            u64::try_from(value.tv_sec() * 1_000_000 + value.tv_usec()).unwrap_or(0),
        )
    };
    Ok(time(used.user_time()) + time(used.system_time()))
}

/// The output of the shell's `times`: itself, then its children, `0m0.530s 0m0.120s` each.
fn parse(times: &str) -> Option<(Duration, Duration)> {
    let mut lines = times.lines().map(|line| {
        let mut sum = 0.0;
        for word in line.split_whitespace() {
            let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
            sum += minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?;
        }
        Some(Duration::from_secs_f64(sum))
    });
    Some((lines.next()??, lines.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_times_are_read() {
        let (shell, agents) = parse("0m0.001s 0m0.002s\n1m0.500s 0m0.250s\n").unwrap_or_default();
        assert_eq!(shell, Duration::from_millis(3));
        assert_eq!(agents, Duration::from_millis(60_750));
        assert!(parse("what").is_none());
    }
}
