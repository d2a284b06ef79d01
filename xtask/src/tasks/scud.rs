//! The real `scud` beside a running loop: it sees what we do, and nothing of ours is lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use descartes_plans::graph::TaskStatus;
use descartes_plans::scud::{self, Form};
use serde_json::Value;

use crate::lab::{Lab, Row, Rows, Trial, Trouble};
use crate::shell;

pub const VERSION: &str = "1.67.0";
/// Tasks that only scud touches; ours have smaller numbers.
const THEIRS: std::ops::RangeInclusive<u32> = 1001..=1005;

fn folder() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    home.join(".cache/descartes-test/scud")
}

pub fn program() -> PathBuf {
    folder().join("bin/scud")
}

/// `scud-install`: builds the real one, which takes minutes; how fast it is does not count.
pub fn install() -> Result<(), String> {
    let root = folder().to_string_lossy().into_owned();
    let target = folder().join("target").to_string_lossy().into_owned();
    let words = ["install", "scud-cli", "--version", VERSION, "--locked"];
    let quick = [
        "profile.release.opt-level=0",
        "profile.release.lto='off'",
        "profile.release.codegen-units=16",
    ];
    let mut all: Vec<&str> = words.to_vec();
    all.extend(["--root", &root, "--target-dir", &target]);
    all.extend(quick.iter().flat_map(|setting| ["--config", *setting]));
    shell::run("cargo", &all)
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    if !shell::answers(&program().to_string_lossy(), &["--version"]) {
        let why = "scud is not installed here: cargo xtask scud-install";
        return Ok(vec![Row::cannot(
            "scud",
            "the real scud beside a loop",
            why,
        )]);
    }
    let rounds = lab.form.pick(10, 200);
    // Enough to keep the loop at work for as long as the writers are.
    let ours = lab.form.pick(8, 60);
    let trial = Trial::new(lab);
    prepare(&trial, ours)?;
    let go = trial.world.root().join("go");
    // Ours all run; the last one waits until scud's writers are done.
    let script = format!(
        "if-file {0}/hold-${{DESCARTES_TASK_ID}} wait-file {1} 10m\nwrite work-${{DESCARTES_TASK_ID}} x\nsleep 50ms\npromise\n",
        trial.world.root().display(),
        go.display()
    );
    std::fs::write(trial.world.root().join(format!("hold-{ours}")), "")
        .map_err(|e| e.to_string())?;
    let agent = trial.agent(&script);
    let mut command =
        trial.descartes(&["loop", "start", "--scud-tag", "auth", "--command", &agent]);
    command.args(["--verify", "true", "--parallel", "2"]);
    let mut host = trial.spawn(command)?;
    let begun = || statuses(&trial).is_ok_and(|all| all[0].1 != TaskStatus::Pending);
    descartes_testkit::eventually("the first task begins", Duration::from_secs(60), begun);
    let lost = beside(&trial, rounds)?;
    std::fs::write(&go, "").map_err(|error| error.to_string())?;
    let code = host.code_within(Duration::from_secs(300))?;
    let mut lost = lost;
    if code != 0 {
        lost.push(format!("the loop ended with {code}"));
    }
    let open = statuses(&trial)?
        .into_iter()
        .filter(|(id, status)| *id <= ours && *status != TaskStatus::Done);
    lost.extend(open.map(|(id, status)| format!("task {id} is {status} at the end")));
    let listed = listed(&trial, "done")?;
    if listed.len() != ours as usize {
        lost.push(format!("scud sees as done: {listed:?}"));
    }
    let next = scud(&trial, &["next", "-t", "auth", "--spawn"])?;
    if next.trim() != "null" {
        lost.push(format!("scud still offers a task: {next}"));
    }
    let what =
        format!("5 processes of scud set-status, {rounds} rounds each, against a running loop");
    Ok(vec![Row::count("scud", what, 5 * rounds, &lost)])
}

/// The ids that scud itself lists under a status.
fn listed(trial: &Trial<'_>, status: &str) -> Result<Vec<u32>, Trouble> {
    let told = scud(trial, &["list", "-t", "auth", "--json"])?;
    let tasks: Vec<Value> =
        serde_json::from_str(&told).map_err(|error| format!("{error}: {told}"))?;
    let ids = tasks.iter().filter(|task| task["status"] == status);
    Ok(ids
        .filter_map(|task| task["id"].as_str()?.parse().ok())
        .collect())
}

fn prepare(trial: &Trial<'_>, ours: u32) -> Result<(), Trouble> {
    trial.world.git_init();
    scud(trial, &["init"])?;
    let mut text = String::from(
        "# SCUD Graph v1\n# Phase: auth\n\n@meta {\n  name auth\n  id_format sequential\n  updated 2025-01-01T00:00:00.000000000+00:00\n}\n\n@nodes\n# id | title | status | complexity | priority\n",
    );
    for id in (1..=ours).chain(THEIRS) {
        let status = if id <= ours { 'P' } else { 'F' };
        text.push_str(&format!("{id} | Task {id} | {status} | 1 | M\n"));
    }
    text.push_str("\n@edges\n# dependent -> dependency\n");
    for id in 2..=ours {
        text.push_str(&format!("{id} -> {}\n", id - 1));
    }
    std::fs::write(trial.path(".scud/tasks/tasks.scg"), text).map_err(|error| error.to_string())?;
    trial.world.git(["add", "."]);
    trial.world.git(["commit", "--quiet", "--message", "tasks"]);
    Ok(())
}

/// Runs scud in the project; its words.
fn scud(trial: &Trial<'_>, words: &[&str]) -> Result<String, Trouble> {
    let mut command: Command = trial.world.command(program());
    let out = command
        .args(words)
        .output()
        .map_err(|error| error.to_string())?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!(
            "scud {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&out.stderr)
        )),
    }
}

fn statuses(trial: &Trial<'_>) -> Result<Vec<(u32, TaskStatus)>, Trouble> {
    let text = read(&trial.path(".scud/tasks/tasks.scg"))?;
    let file = scud::parse(&text, &Form::Scg).map_err(|error| error.to_string())?;
    let tag = file.tag("auth").ok_or("the tag is gone")?;
    Ok(tag
        .tasks
        .iter()
        .filter_map(|task| Some((task.id.parse().ok()?, task.status)))
        .collect())
}

/// scud itself empties the file for a moment before it writes.
fn read(path: &Path) -> Result<String, Trouble> {
    for _ in 0..200 {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        if text.contains("@edges") {
            return Ok(text);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err("the file stayed cut short".to_owned())
}

/// Five writers and a reader; gives what went wrong.
fn beside(trial: &Trial<'_>, rounds: u64) -> Result<Vec<String>, Trouble> {
    let over = AtomicBool::new(false);
    let refused = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = THEIRS
            .map(|id| {
                let refused = &refused;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let status = if round % 2 == 0 {
                            "cancelled"
                        } else {
                            "deferred"
                        };
                        if scud(
                            trial,
                            &["set-status", &id.to_string(), status, "-t", "auth"],
                        )
                        .is_err()
                        {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        let over = &over;
        let reader = scope.spawn(move || {
            let mut lost = Vec::new();
            let (mut at_work, mut swarms) = (0_u32, 0_u32);
            while !over.load(Ordering::Relaxed) {
                lost.extend(statuses(trial).err());
                // It shows the task that we work on, and keeps its own swarm away from the tag.
                match listed(trial, "in-progress") {
                    Ok(ids) => at_work += u32::from(!ids.is_empty()),
                    Err(why) => lost.push(why),
                }
                let swarm = scud(trial, &["swarm", "-t", "auth", "--headless"]);
                let refused = |why: &Trouble| why.contains("already running for tag");
                swarms += u32::from(!swarm.is_err_and(|why| refused(&why)));
                for words in [
                    &["next", "-t", "auth", "--spawn"][..],
                    &["waves", "-t", "auth"],
                ] {
                    lost.extend(scud(trial, words).err());
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            if at_work == 0 {
                lost.push("scud never saw a task in progress".to_owned());
            }
            if swarms > 0 {
                lost.push(format!("{swarms} swarms of scud were not refused"));
            }
            lost
        });
        for writer in writers {
            drop(writer.join());
        }
        over.store(true, Ordering::Relaxed);
        let mut lost = reader.join().unwrap_or_default();
        if refused.load(Ordering::Relaxed) == 5 * rounds {
            lost.push("scud could never write".to_owned());
        }
        Ok(lost)
    })
}
