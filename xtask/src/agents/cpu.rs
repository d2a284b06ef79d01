//! What descartes itself uses while a real CLI takes the same scripted turn, again and again.
//!
//! The CLI's own use differs more from run to run than ours amounts to, so the two are not
//! compared over runs: a wrapper tells what the CLI used, and the rest of the tree is ours. What
//! the start of a loop costs, once, is told apart from what every further iteration costs.

use std::fs;
use std::time::Duration;

use descartes_testkit::real_clis::Options;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use super::stage::{Build, STARTUP_TIMEOUT, Stage, must};
use super::table::Table;
use crate::lab::Form;

const ROUNDS: usize = 3;
/// Iterations after the first.
const FURTHER: u32 = 5;
/// The share of the CLI's own use.
const BAR: f64 = 0.02;

/// Runs it.
pub fn run(stage: &Build<'_>, form: Form, table: &mut Table) -> Result<(), String> {
    let mut seen = Vec::new();
    let mut agent = "";
    for round in 0..ROUNDS {
        let mut measure = |iterations: u32| {
            let mut stage = stage(&format!("cpu-{round}-{iterations}"));
            agent = stage.cli.name();
            once(&mut stage, iterations)
        };
        match measure(1).and_then(|one| Ok((one, measure(1 + FURTHER)?))) {
            Ok((one, many)) => seen.push(Seen {
                start: one.ours,
                further: many.less(&one),
            }),
            Err(wrong) => {
                table.add(agent, "cpu", Err(wrong));
                return Ok(());
            }
        }
    }
    seen.sort_by(|a, b| a.further.share().total_cmp(&b.further.share()));
    let median = &seen[seen.len() / 2];
    let ms = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(FURTHER);
    let told = format!(
        "{:.1} % of each iteration ({:.1} ms beside {:.0} ms, median of {ROUNDS}); a loop with one: {:.0} ms",
        median.further.share() * 100.0,
        ms(median.further.ours),
        ms(median.further.agents),
        median.start.as_secs_f64() * 1e3,
    );
    let share = form.judge(median.further.share() < BAR, || told.clone());
    table.judged(agent, "cpu over the bare CLI", Ok(told), share);
    Ok(())
}

/// One round.
#[derive(Debug)]
struct Seen {
    /// Ours, for a loop of a single iteration.
    start: Duration,
    /// Both, for the iterations after the first.
    further: Used,
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

    fn less(&self, other: &Self) -> Self {
        Self {
            ours: self.ours.saturating_sub(other.ours),
            agents: self.agents.saturating_sub(other.agents),
        }
    }
}

/// An iteration of some length: four tool calls with a screenful of output each.
fn turns(iterations: u32) -> Value {
    let tool =
        json!({"text": "I look, and go on.", "tool": {"shell": "seq 1 400; echo one >> work.txt"}});
    let words = json!({"text": "There is more to do."});
    let turn = [vec![tool; 4], vec![words]].concat();
    json!(vec![turn; iterations as usize].concat())
}

fn once(stage: &mut Stage<'_>, iterations: u32) -> Result<Used, String> {
    stage.script(turns(iterations), &Options::default())?;
    let told = stage.world.root().join("tmp/times");
    let wrapper = format!(
        "#!/bin/bash\n'{}' \"$@\"\ncode=$?\ntimes >> '{}'\nexit $code\n",
        stage.program()?.display(),
        told.display()
    );
    let program = stage.world.program(stage.cli.name(), &wrapper);
    let limit = iterations.to_string();
    let command = stage.start(&program, &["-m", &limit, "--stall-after", "0"])?;
    let before = children()?;
    let run = stage
        .world
        .watch(command, STARTUP_TIMEOUT * 2)
        .map_err(|so_far| format!("did not end\n{so_far}"))?;
    let all = children()?.saturating_sub(before);
    // The limit of iterations is how it is meant to end.
    must(run.code() == Some(2), || run.to_string())?;
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

/// The output of the shell's `times`, of one start after the other: itself, then its children,
/// `0m0.530s 0m0.120s` each.
fn parse(times: &str) -> Option<(Duration, Duration)> {
    let (mut shell, mut agents) = (0.0, 0.0);
    for (at, line) in times.lines().enumerate() {
        for word in line.split_whitespace() {
            let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
            let time = minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?;
            match at % 2 {
                0 => shell += time,
                _ => agents += time,
            }
        }
    }
    let seconds = Duration::from_secs_f64;
    (agents > 0.0).then(|| (seconds(shell), seconds(agents)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_times_are_read() {
        let once = "0m0.001s 0m0.002s\n1m0.500s 0m0.250s\n";
        let (shell, agents) = parse(&once.repeat(2)).unwrap_or_default();
        assert_eq!(shell, Duration::from_millis(6));
        assert_eq!(agents, Duration::from_millis(121_500));
        assert!(parse("what").is_none());
    }
}
