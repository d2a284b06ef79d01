//! M8: SIGKILL of descartes at random instants, a resume after each.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use descartes_testkit::stamp::{self, Edge};
use nix::sys::signal::Signal;

use super::recovery::{begun, broke, resume, wrong};
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// The agent that dies with its loop: short work, a little output, a file.
const SCRIPT: &str = "stamp stamps\nprint working\nappend work ${ITERATION}\nsleep 3ms\n";

/// Kills in one loop, before it may finish.
const CHAIN: u64 = 25;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let what = "SIGKILL at random instants, then resumed";
    Ok(vec![row(lab, "M8", what, lab.form.pick(50, 1000), CHAIN)])
}

/// A row of so many kills, so many of them in one loop.
pub fn row(lab: &Lab, measure: &'static str, what: &str, kills: u64, each: u64) -> Row {
    let chains = kills / each;
    let results: Vec<Result<Chain, Trouble>> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..2)
            .map(|lane| {
                scope.spawn(move || {
                    (0..chains)
                        .filter(|chain| chain % 2 == lane)
                        .map(|chain| one(lab, lab.seed.wrapping_add(chain), each))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        lanes
            .into_iter()
            .flat_map(|lane| lane.join().unwrap_or_default())
            .collect()
    });
    let mut all = Chain::default();
    for result in results {
        match result {
            Ok(chain) => all.add(chain),
            Err(trouble) => all.lost.push(trouble),
        }
    }
    let mut row = Row::count(measure, what, all.kills, &all.lost);
    row.ours = format!(
        "{} lost; {} iterations finished, {} interrupted, {} kills before the loop was begun",
        all.lost.len(),
        all.finished,
        all.interrupted,
        all.early
    );
    if all.kills < kills && all.lost.is_empty() {
        row.verdict = crate::lab::Verdict::Missed(format!("only {} kills", all.kills));
    }
    row
}

#[derive(Default)]
struct Chain {
    kills: u64,
    early: u64,
    finished: usize,
    interrupted: usize,
    lost: Vec<String>,
}

impl Chain {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.early += other.early;
        self.finished += other.finished;
        self.interrupted += other.interrupted;
        self.lost.extend(other.lost);
    }
}

fn one(lab: &Lab, seed: u64, kills: u64) -> Result<Chain, Trouble> {
    let mut chance = Chance::new(seed);
    let mut chain = Chain::default();
    let trial = Trial::new(lab);
    // How long a start takes here, so that instants are spread over all of it.
    let reach = reach(lab)?;
    let agent = trial.agent(SCRIPT);
    while chain.kills < kills {
        let words = if begun(&trial) {
            vec!["loop", "resume"]
        } else {
            vec![
                "loop",
                "start",
                "--command",
                &agent,
                "--prompt",
                "go",
                "--max-iterations",
                "unlimited",
                "--stall-after",
                "0",
            ]
        };
        let mut command = trial.descartes(&words);
        if words[1] == "start" {
            command.args(trial.sandbox_flags());
        }
        command.stdin(Stdio::null());
        let before = trial.journal_bytes();
        let mut host = trial.spawn(command)?;
        thread::sleep(Duration::from_micros(chance.below(reach)));
        host.signal(Signal::SIGKILL);
        let code = host.code()?;
        if code == 65 {
            // The guard of the one before still sweeps: that is a refusal, not a kill.
            thread::sleep(Duration::from_millis(10));
            continue;
        }
        if code != 137 {
            chain.lost.push(format!(
                "seed {seed}: ended by itself with {code} after {} kills",
                chain.kills
            ));
            return Ok(chain);
        }
        chain.kills += 1;
        if !begun(&trial) {
            chain.early += 1;
        }
        if !trial.journal_bytes().starts_with(&before[..whole(&before)]) {
            chain.lost.push(format!(
                "seed {seed}: records were lost at kill {}",
                chain.kills
            ));
        }
    }
    finish(&trial, &mut chain, seed)?;
    Ok(chain)
}

fn whole(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1)
}

/// Lets it end, and looks at the whole journal and at what the agents themselves say.
fn finish(trial: &Trial<'_>, chain: &mut Chain, seed: u64) -> Result<(), Trouble> {
    let before = trial.journal_bytes();
    let used = trial
        .events("run_started")
        .iter()
        .filter_map(|run| run["iteration"].as_u64())
        .max();
    let limit = (used.unwrap_or(0) + 3).to_string();
    if !begun(trial) {
        return Ok(());
    }
    let resumed = resume(trial, &["--max-iterations", &limit])?;
    let mut say = |what: String| chain.lost.push(format!("seed {seed}: {what}"));
    if resumed.code() != Some(2) {
        say(format!("it did not go on to its limit; {resumed}"));
    }
    if let Some(what) = broke(&resumed).or_else(|| wrong(trial, &before)) {
        say(what);
    }
    let stamps = stamp::read(&trial.path("stamps"));
    let mut begun: Vec<u64> = stamps
        .iter()
        .filter(|stamp| stamp.edge == Edge::Start)
        .map(|stamp| stamp.iteration)
        .collect();
    let starts = begun.len();
    begun.sort_unstable();
    begun.dedup();
    if begun.len() != starts {
        say("an agent ran twice under one number".to_owned());
    }
    chain.finished = trial.events("iteration_finished").len();
    chain.interrupted = trial.events("iteration_interrupted").len();
    Ok(())
}

/// Microseconds from the start of a loop to the end of its first few iterations.
fn reach(lab: &Lab) -> Result<u64, Trouble> {
    let trial = Trial::new(lab);
    let since = Instant::now();
    let finished = trial.run(trial.start(SCRIPT, &["--max-iterations", "4"]))?;
    if finished.code() != Some(2) {
        return Err(format!("a loop of four iterations failed; {finished}"));
    }
    Ok(u64::try_from(since.elapsed().as_micros()).unwrap_or(1_000_000))
}
