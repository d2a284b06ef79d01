//! What holds without a sandbox holds in `workspace`: nothing survives, kills lose nothing, agents get their
//! grace, all output is kept, claims and exit codes count as before.

use std::fs;

use super::{kills, orphans};
use crate::bench::{promise, stop};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const LEVEL: &str = "workspace";

/// Lines that an agent prints.
const LINES: usize = 20_000;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let lab = &Lab {
        sandbox: Some(LEVEL),
        ..lab.clone()
    };
    if let Some(why) = cannot(lab)? {
        return Ok(vec![Row::cannot("sandbox", "loops in `workspace`", why)]);
    }
    let mut rows = orphans::in_sandbox(lab);
    let (kills, each) = lab.form.pick((6, 3), (100, 25));
    let what = "SIGKILL of the host at random instants, then resumed";
    rows.push(kills::row(lab, "sandbox", what, kills, each));
    rows.push(stops(lab));
    rows.push(repeated(
        lab,
        "all of 20,000 lines and their end are kept",
        output,
    ));
    rows.push(repeated(lab, "exit codes, claims and gates count", claims));
    rows.extend(promise::take(lab)?);
    Ok(rows)
}

/// Why nothing of it can be tried here.
fn cannot(lab: &Lab) -> Result<Option<String>, Trouble> {
    let trial = Trial::new(lab);
    let told = trial.run(trial.descartes(&["doctor"]))?.stdout();
    let works = told.contains("workspace and strict work here");
    Ok((!works).then(|| "bwrap does not work on this machine".to_owned()))
}

fn stops(lab: &Lab) -> Row {
    let rounds = lab.form.pick(1, 7);
    let came: Vec<_> = (0..rounds).flat_map(|_| stop::all_once(lab)).collect();
    let lost: Vec<String> = came.iter().filter_map(|one| one.clone().err()).collect();
    let what = "asked to end in 8 ways: all gone, the grace given, the reason recorded";
    Row::count("sandbox", what, came.len() as u64, &lost)
}

fn repeated(lab: &Lab, what: &str, case: fn(&Lab) -> Result<(), Trouble>) -> Row {
    let rounds = lab.form.pick(5, 100);
    let lost: Vec<String> = (0..rounds).filter_map(|_| case(lab).err()).collect();
    Row::count("sandbox", what, rounds, &lost)
}

fn output(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let last = LINES - 1;
    let shell = format!(
        "(setsid sleep 600 &); i=0; while [ $i -lt {LINES} ]; do echo \"line $i\"; i=$((i+1)); done; \
         echo to standard error >&2; echo COMPLETE"
    );
    let agent = shell_words::join(["sh", "-c", &shell]);
    let mut command = trial.descartes(&["loop", "start", "--command", &agent]);
    command.args(["--prompt", "go"]).args(trial.sandbox_flags());
    let ended = trial.run(command)?;
    if ended.code() != Some(0) {
        return Err(format!("the loop did not end well; {ended}"));
    }
    let folder = trial.journals().first().and_then(|file| {
        let folder = file.parent()?;
        Some(folder.join("runs/0001"))
    });
    let folder = folder.ok_or("no logs")?;
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (out, err) = (read("stdout.log"), read("stderr.log"));
    let lines = out.lines().filter(|line| line.starts_with("line ")).count();
    let whole = lines == LINES && out.ends_with(&format!("line {last}\nCOMPLETE\n"));
    if !whole || err != "to standard error\n" {
        return Err(format!("{lines} lines, and {err:?} on standard error"));
    }
    match trial.world.processes().first() {
        None => Ok(()),
        Some(left) => Err(format!("a survivor: {left:?}")),
    }
}

fn claims(lab: &Lab) -> Result<(), Trouble> {
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("exit 3", &["--max-failures", "1"], 7, "agent_failed"),
        ("kill -9 $$", &["--max-failures", "1"], 7, "agent_failed"),
        (
            "echo I am not COMPLETE yet",
            &["-m", "1"],
            2,
            "max_iterations_reached",
        ),
        (
            "echo COMPLETE",
            &["--verify", "false", "-m", "1"],
            2,
            "max_iterations_reached",
        ),
        (
            "echo COMPLETE",
            &["--verify", "true"],
            0,
            "completion_promise_detected",
        ),
    ];
    for (script, flags, code, reason) in cases {
        let trial = Trial::new(lab);
        let agent = shell_words::join(["sh", "-c", script]);
        let mut command = trial.descartes(&["loop", "start", "--command", &agent]);
        command.args(["--prompt", "go"]).args(trial.sandbox_flags());
        command.args(flags);
        let ended = trial.run(command)?;
        let told = trial.state()["exit_reason"]["type"].clone();
        if ended.code() != Some(code) || told != reason {
            return Err(format!("{script}: {told}; {ended}"));
        }
    }
    Ok(())
}
