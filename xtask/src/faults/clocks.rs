//! M17: machines that sleep, and wall clocks that jump.
//!
//! Sleep is SIGSTOP. Jumps are libfaketime's, where Debian's package is installed: nobody else's
//! clock is touched, and the clock that nobody sets goes on as it is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use descartes_testkit::process;
use nix::sys::signal::Signal;

use super::cases::{self, CANNOT, Case};
use super::recovery::wrong;
use crate::lab::trial::Running;
use crate::lab::{Lab, Rows, Trial, Trouble, seen};

/// The host looks at the wall clock at least so often, and a moment is given on top.
const NOTICED: Duration = Duration::from_secs(15 + 3);

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let rounds = lab.form.pick(1, 5);
    let cases: [(&str, Case); 7] = [
        ("host sleeps past the iteration's timeout", |lab| {
            past_timeout(lab, Asleep::Host)
        }),
        ("all of it sleeps past the iteration's timeout", |lab| {
            past_timeout(lab, Asleep::All)
        }),
        ("host sleeps past the end of a provider's limit", |lab| {
            past_wait(lab, Asleep::Host)
        }),
        (
            "all of it sleeps past the end of a provider's limit",
            |lab| past_wait(lab, Asleep::All),
        ),
        (
            "wall clock jumps by days, both ways, in the middle of iterations",
            jumps,
        ),
        (
            "wall clock jumps past the end of a provider's limit of 1 h",
            jump_over_wait,
        ),
        (
            "wall clock is put back a day while a limit of 3 s is waited for",
            put_back_in_wait,
        ),
    ];
    Ok(cases::rows(lab, "M17", rounds, &cases))
}

/// Who is stopped and continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asleep {
    Host,
    All,
}

impl Asleep {
    fn sleep(self, trial: &Trial<'_>, host: &Running, time: Duration) {
        let sleepers: Vec<i32> = match self {
            Self::Host => vec![host.pid()],
            Self::All => trial.world.processes().iter().map(|one| one.pid).collect(),
        };
        for pid in &sleepers {
            process::send(*pid, Signal::SIGSTOP);
        }
        thread::sleep(time);
        for pid in sleepers {
            process::send(pid, Signal::SIGCONT);
        }
    }
}

/// The agent of the first iteration is ended as timed out, late, and the loop goes on.
fn past_timeout(lab: &Lab, who: Asleep) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let flags = ["--timeout", "1s", "--kill-grace", "200ms"];
    let script = "@1 spawn-child setsid null kids\n   touch up\n   hang\n@2 promise";
    let mut host = trial.spawn(trial.start(script, &flags))?;
    trial.wait_for("up")?;
    who.sleep(&trial, &host, Duration::from_millis(2500));
    let code = host.code()?;
    let ended_by: Vec<_> = trial
        .events("agent_ended")
        .iter()
        .map(|event| event["ended_by"].clone())
        .collect();
    let done = seen::iterations(&trial.journal(), "iteration_finished");
    if code != 0 || done != [1, 2] || ended_by.first().is_none_or(|by| by != "timeout") {
        return Err(format!(
            "exit code {code}, finished {done:?}, agents ended by {ended_by:?}"
        ));
    }
    all_well(&trial)
}

/// Its first agent tells of a limit, the next is done.
fn limited(trial: &Trial<'_>, limit: &str) -> Command {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"<promise>COMPLETE</promise>","session_id":"00000000-0000-4000-8000-000000000001","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1}}"#;
    trial.world.write("result.jsonl", format!("{result}\n"));
    let script = format!(
        "if-file limited stream result.jsonl\nif-file limited exit 0\ntouch limited\nstream-limit claude {limit}"
    );
    trial.start(&script, &["--backend", "claude", "--permissions", "edit"])
}

/// Waits for the second agent, which must not be asked later than this.
fn asked_again(trial: &Trial<'_>, mut host: Running, within: Duration) -> Result<(), Trouble> {
    let since = Instant::now();
    let code = host.code_within(trial.lab.form.deadline(within))?;
    let (runs, done) = (
        trial.events("run_started").len(),
        seen::iterations(&trial.journal(), "iteration_finished"),
    );
    if code != 0 || runs != 2 || done != [1] {
        return Err(format!(
            "exit code {code} after {:?}, {runs} runs, finished {done:?}",
            since.elapsed()
        ));
    }
    all_well_but_numbers(trial)
}

fn past_wait(lab: &Lab, who: Asleep) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let host = trial.spawn(limited(&trial, "2s"))?;
    trial.wait_for_events("wait_started", 1)?;
    who.sleep(&trial, &host, Duration::from_millis(3500));
    asked_again(&trial, host, Duration::from_secs(5))
}

/// Where Debian puts it.
fn faketime() -> Result<PathBuf, Trouble> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
        .ok_or_else(|| format!("{CANNOT}: libfaketime is not installed (apt install faketime)"))
}

/// The same command under a wall clock that the file `clock` of the project sets.
fn under_clock(trial: &Trial<'_>, mut command: Command) -> Result<Command, Trouble> {
    let clock = trial.world.write("clock", "+0\n");
    command
        .env("LD_PRELOAD", faketime()?)
        .env("FAKETIME_TIMESTAMP_FILE", clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    Ok(command)
}

/// Budgets and timeouts are not spent by a clock that is set, and no time is negative.
fn jumps(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let step = |to: &str| format!("sh echo {to} > clock.new && mv clock.new clock\n   sleep 200ms");
    let script = format!(
        "print working\n@1 {}\n@2 {}\n@3 {}\n@4 promise",
        step("+1d"),
        step("-2d"),
        step("+40d")
    );
    let flags = [
        "--timeout",
        "30s",
        "--idle-timeout",
        "30s",
        "--max-duration",
        "5m",
        "--verify",
        "true",
    ];
    let mut host = trial.spawn(under_clock(&trial, trial.start(&script, &flags))?)?;
    let code = host.code()?;
    let finished = trial.events("iteration_finished");
    let done = seen::iterations(&trial.journal(), "iteration_finished");
    let longest = finished
        .iter()
        .filter_map(|event| event["spent_ms"].as_u64())
        .max();
    if code != 0 || done != [1, 2, 3, 4] || longest.is_none_or(|ms| ms > 60_000) {
        return Err(format!(
            "exit code {code}, finished {done:?}, longest {longest:?} ms"
        ));
    }
    let jumped = trial.journal().windows(2).any(|pair| {
        let at = |index: usize| pair[index]["at"].as_str().unwrap_or_default().to_owned();
        at(0) > at(1)
    });
    if !jumped {
        return Err("the clock did not jump for the host".to_owned());
    }
    all_well(&trial)
}

fn jump_over_wait(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let host = trial.spawn(under_clock(&trial, limited(&trial, "1h"))?)?;
    trial.wait_for_events("wait_started", 1)?;
    trial.world.write("clock", "+2h\n");
    asked_again(&trial, host, NOTICED)
}

fn put_back_in_wait(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let host = trial.spawn(under_clock(&trial, limited(&trial, "3s"))?)?;
    trial.wait_for_events("wait_started", 1)?;
    trial.world.write("clock", "-1d\n");
    asked_again(&trial, host, NOTICED)
}

fn all_well(trial: &Trial<'_>) -> Result<(), Trouble> {
    wrong(trial, &[]).map_or_else(|| nobody_left(trial), Err)
}

/// A run that met a limit gives its number to the next, so numbers are not looked at.
fn all_well_but_numbers(trial: &Trial<'_>) -> Result<(), Trouble> {
    let told = trial.state()["iteration"].as_u64();
    if told != Some(1) {
        return Err(format!("the state file tells {told:?} iterations"));
    }
    nobody_left(trial)
}

fn nobody_left(trial: &Trial<'_>) -> Result<(), Trouble> {
    let end = trial.lab.form.deadline(Duration::from_secs(2));
    crate::lab::trial::gone_ms(&trial.world.processes(), Instant::now(), end).map(drop)
}
