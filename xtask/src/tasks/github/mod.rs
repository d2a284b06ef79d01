//! The real `gh` against a GitHub of our own on loopback.

mod forge;

use std::process::Command;
use std::time::{Duration, Instant};

use descartes_testkit::{process, wait};

use self::forge::{Forge, Mood, REMOTE};
use crate::lab::trial::alive;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};
use crate::shell;

const WORKS: &str = "write work-${DESCARTES_TASK_ID} x ;; promise";
/// A loop whose tracker hangs ends within this; a question may take thirty seconds.
const SOON: Duration = Duration::from_secs(20);

/// One case: what is done, and what was wrong with it.
type Case = (&'static str, fn(&Lab) -> Result<Vec<String>, Trouble>);

const CASES: [Case; 4] = [
    ("issues are run and closed by their commits alone", commits),
    ("issues are claimed and closed when asked for", claims),
    ("a claim that is refused is tried again", refused),
    (
        "a list that is never answered keeps nothing waiting",
        hanging,
    ),
];

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let row = |(what, case): &Case| {
        let what = format!("the real gh: {what}");
        if !shell::answers("gh", &["--version"]) {
            let why = "NOT RUN: there is no gh here (cargo xtask system-install, as root)";
            return Ok(Row::cannot("gh", what, why));
        }
        Ok(Row::count("gh", what, 1, &case(lab)?))
    };
    CASES.iter().map(row).collect()
}

fn world<'a>(lab: &'a Lab) -> Result<(Trial<'a>, Forge), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    trial.world.write("README.md", "x");
    trial.world.git(["add", "--all"]);
    trial.world.git(["commit", "--quiet", "--message", "begin"]);
    trial.world.git(["remote", "add", "origin", REMOTE]);
    Ok((trial, Forge::start()?))
}

fn command(trial: &Trial<'_>, forge: &Forge, agent: &str, flags: &[&str]) -> Command {
    let words = ["roadmap", "run", "--source", "github", "--label", "agent"];
    let mut command = trial.descartes(&words);
    command.args(["--command", agent, "--verify", "true", "--sandbox", "off"]);
    command.args(flags);
    command.envs(forge.variables());
    command
}

/// Runs all issues; what went wrong so far.
fn run(trial: &Trial<'_>, forge: &Forge, flags: &[&str]) -> Result<Vec<String>, Trouble> {
    let agent = trial.agent(WORKS);
    let ended = trial.run(command(trial, forge, &agent, flags))?;
    let mut lost = Vec::new();
    if ended.code() != Some(0) {
        lost.push(format!("the run: {ended}"));
    }
    let asked = &forge.told().unknown;
    lost.extend(asked.iter().map(|asked| format!("gh asked: {asked}")));
    for issue in [31, 32] {
        if !trial.path(&format!("work-{issue}")).exists() {
            lost.push(format!("the work on {issue} has not landed"));
        }
    }
    Ok(lost)
}

fn expect_changes(forge: &Forge, expected: &[&str], lost: &mut Vec<String>) {
    let seen = &forge.told().changes;
    if *seen != expected {
        lost.push(format!("GitHub was told {seen:?} and not {expected:?}"));
    }
}

fn commits(lab: &Lab) -> Result<Vec<String>, Trouble> {
    let (trial, forge) = world(lab)?;
    let mut lost = run(&trial, &forge, &[])?;
    expect_changes(&forge, &[], &mut lost);
    let log = trial.world.git(["log", "--reverse", "--format=%B"]);
    let closes: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("Closes #"))
        .collect();
    if closes != ["Closes #31", "Closes #32"] {
        lost.push(format!("the commits say {closes:?}"));
    }
    Ok(lost)
}

fn claims(lab: &Lab) -> Result<Vec<String>, Trouble> {
    let (trial, forge) = world(lab)?;
    let mut lost = run(&trial, &forge, &["--claim", "--close-issues"])?;
    let expected = ["assign 31", "close 31", "assign 32", "close 32"];
    expect_changes(&forge, &expected, &mut lost);
    Ok(lost)
}

fn refused(lab: &Lab) -> Result<Vec<String>, Trouble> {
    let (trial, forge) = world(lab)?;
    forge.told().refuses = 1;
    let mut lost = run(&trial, &forge, &["--claim"])?;
    let expected = ["refuse 31", "assign 31", "assign 32"];
    expect_changes(&forge, &expected, &mut lost);
    Ok(lost)
}

/// An agent works, the list is asked for again and hangs; somebody cancels.
fn hanging(lab: &Lab) -> Result<Vec<String>, Trouble> {
    let (trial, forge) = world(lab)?;
    let (started, go) = (trial.path("../started"), trial.path("../go"));
    let script = format!(
        "write {} x ;; wait-file {} ;; {WORKS}",
        started.display(),
        go.display()
    );
    let agent = trial.agent(&script);
    let mut running = trial.spawn(command(&trial, &forge, &agent, &["--claim"]))?;
    trial.wait_for("../started")?;
    forge.told().mood = Mood::Hangs;
    std::fs::write(&go, "x").map_err(|error| error.to_string())?;
    let mut lost = Vec::new();
    let landed = || trial.path("work-31").exists().then_some(());
    if wait::poll(SOON, &mut { landed }).is_none() {
        lost.push("work was not merged while the list hung".to_owned());
    }
    // The files of a merge are there before the list is asked for again.
    let hangs = || (forge.told().hung > 0).then_some(());
    if wait::poll(SOON, &mut { hangs }).is_none() {
        lost.push("gh was not asked while the list hung".to_owned());
    }
    let mut asked = process::descendants(running.pid());
    asked.retain(|process| process.command.contains("gh"));
    let since = Instant::now();
    let state = ["--state-file", ".descartes/roadmap-github-agent.json"];
    let mut cancel = trial.descartes(&["loop", "cancel"]);
    cancel.args(state);
    let cancelled = trial.run(cancel)?;
    if cancelled.code() != Some(0) {
        lost.push(format!("cancel: {cancelled}"));
    }
    if running.wait_at_most(SOON).is_none() {
        lost.push(format!(
            "the loop still runs {:?} after it was cancelled",
            since.elapsed()
        ));
    }
    let left = alive(&asked);
    lost.extend(left.iter().map(|gh| format!("it was left behind: {gh:?}")));
    Ok(lost)
}
