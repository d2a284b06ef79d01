//! M16 and M8: many tasks in parallel worktrees of a large repository, with a host that is killed
//! again and again.

use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use descartes_testkit::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, stats};

const TASKS: u64 = 32;
const FILES: usize = 5_000;
/// Time for a git to finish, on a busy machine.
const GITS: Duration = Duration::from_secs(30);

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let wanted = lab.form.pick(8, 200);
    let mut all = Campaign::default();
    let mut world = 0;
    while all.kills < wanted && all.lost.is_empty() {
        one(
            lab,
            lab.seed.wrapping_add(world),
            wanted - all.kills,
            &mut all,
        )?;
        world += 1;
    }
    let mut row = Row::count(
        "M16",
        format!("SIGKILL with {TASKS} tasks in worktrees of {FILES} files, then resumed"),
        all.kills,
        &all.lost,
    );
    row.ours = format!("{} lost; {world} loops completed", all.lost.len());
    let floor = worktree_floor(lab)?;
    let set_up = Row::at_most(
        lab.form,
        "M16",
        "one task, from its claim to its agent, median",
        (stats::median(&all.set_up), "ms"),
        0.0,
    );
    let mut set_up = set_up.shown();
    set_up.floor = format!("`git worktree add` {floor:.0} ms");
    Ok(vec![row, set_up])
}

#[derive(Default)]
struct Campaign {
    kills: u64,
    lost: Vec<String>,
    set_up: Vec<f64>,
}

/// A repository with files, and a SCUD tag of as many tasks; `before` says what each waits for.
pub fn repository<Before: IntoIterator<Item = u64>>(
    trial: &Trial<'_>,
    files: usize,
    tasks: u64,
    before: impl Fn(u64) -> Before,
) -> Result<(), Trouble> {
    let world = &trial.world;
    world.git_init();
    for file in 0..files {
        world.write(format!("src/{}/file-{file}.txt", file % 50), "some text\n");
    }
    let mut text =
        String::from("# SCUD Graph v1\n# Phase: big\n\n@meta {\n  name big\n}\n\n@nodes\n");
    for task in 1..=tasks {
        let _ = writeln!(text, "{task} | Task {task} | P | 1 | M");
    }
    text.push_str("\n@edges\n");
    for task in 1..=tasks {
        for before in before(task) {
            let _ = writeln!(text, "{task} -> {before}");
        }
    }
    world.write(".scud/tasks/tasks.scg", &text);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "begin"]);
    Ok(())
}

/// The tasks that are blocked, with their reasons.
fn blocked(trial: &Trial<'_>) -> Result<String, Trouble> {
    let status = trial.run(trial.descartes(&["loop", "status"]))?;
    let text = status.stdout();
    let lines = text.lines().map(str::trim);
    let told: Vec<&str> = lines.filter(|line| line.contains("locked")).collect();
    Ok(told.join("; "))
}

fn one(lab: &Lab, seed: u64, most: u64, all: &mut Campaign) -> Result<(), Trouble> {
    let mut chance = Chance::new(seed);
    let trial = Trial::new(lab);
    // Four waves of eight.
    repository(&trial, FILES, TASKS, |task| {
        task.checked_sub(8).filter(|before| *before > 0)
    })?;
    trial.world.write("mine.txt", "the user's own");
    let script =
        "append src/own/work-${DESCARTES_TASK_ID}.txt ${DESCARTES_TASK_ID}\nsleep 20ms\npromise\n";
    let agent = trial.agent(script);
    let start = [
        "loop",
        "start",
        "--scud-tag",
        "big",
        "--command",
        &agent,
        "--parallel",
        "4",
        "--verify",
        "test ! -e red",
        "--max-iterations",
        "unlimited",
    ];
    let state = trial.path(".descartes/loop-state.json");
    let mut done = false;
    let mut kills = 0;
    while !done {
        let words: &[&str] = if state.exists() {
            &["loop", "resume"]
        } else {
            &start
        };
        let mut host = trial.spawn(trial.descartes(words))?;
        if kills < most {
            let wait = Duration::from_millis(200 + chance.below(2_500));
            let ended = host.wait_at_most(wait);
            if ended.is_none() {
                host.signal(Signal::SIGKILL);
                kills += 1;
            }
        }
        let code = host.code_within(Duration::from_secs(600))?;
        match code {
            0 => done = true,
            137 => {}
            // The guards of the one before still sweep.
            65 | 1 => std::thread::sleep(Duration::from_millis(300)),
            other => {
                let why = blocked(&trial)?;
                all.lost.push(format!(
                    "seed {seed}: ended with {other} after {kills} kills: {why}"
                ));
                return Ok(());
            }
        }
        remove_dead_lock(&trial);
        all.lost
            .extend(wrong(&trial).map(|what| format!("seed {seed}, kill {kills}: {what}")));
        if !all.lost.is_empty() {
            return Ok(());
        }
    }
    all.kills += kills;
    all.lost
        .extend(incomplete(&trial).map(|what| format!("seed {seed}: {what}")));
    all.set_up.extend(set_up(&trial));
    Ok(())
}

/// Does what a person is told to do: a lock of the user's own refs that a killed git left is never taken away
/// by a loop, since nobody can see whose it is.
pub fn remove_dead_lock(trial: &Trial<'_>) {
    let lock = trial.path(".git/packed-refs.lock");
    if !lock.exists() {
        return;
    }
    let mut gits_left = || {
        let all = trial.world.processes();
        let gits = all.iter().any(|process| process.command.contains("git "));
        (!gits).then_some(())
    };
    if wait::poll(GITS, &mut gits_left).is_some() && std::fs::remove_file(lock).is_ok() {
        println!("  removed packed-refs.lock of a git that was killed");
    }
}

fn git(trial: &Trial<'_>, words: &[&str]) -> String {
    let mut command: Command = trial.world.command("git");
    let out = command.args(words).output();
    out.map_or_else(
        |_| String::new(),
        |out| String::from_utf8_lossy(&out.stdout).trim().to_owned(),
    )
}

/// What must hold at every instant: the user's tree is green or untouched, and every commit of
/// ours is accounted for.
fn wrong(trial: &Trial<'_>) -> Option<String> {
    let touched = || git(trial, &["status", "--porcelain", "--", "src"]);
    let mut status = touched();
    if !status.is_empty() {
        // A git that outlived its host may be about it, and finishes what it began.
        let mut gits_left = || {
            let all = trial.world.processes();
            let gits = all.iter().any(|process| process.command.contains("git "));
            (!gits).then_some(())
        };
        let left = wait::poll(GITS, &mut gits_left);
        status = touched();
        if left.is_none() || !status.is_empty() {
            return Some(format!("the user's tree was touched: {status}"));
        }
    }
    if std::fs::read_to_string(trial.path("mine.txt"))
        .ok()
        .as_deref()
        != Some("the user's own")
    {
        return Some("the user's own file is not what it was".to_owned());
    }
    let subjects = git(trial, &["log", "--format=%s"]);
    let strange = subjects.lines().find(|line| {
        !line.starts_with("feat(big): complete wave ")
            && *line != "begin"
            && *line != "initial"
            && !line.is_empty()
    });
    if let Some(line) = strange.filter(|line| line.starts_with('[')) {
        return Some(format!("work that is no wave landed: {line}"));
    }
    let refs = git(
        trial,
        &[
            "for-each-ref",
            "--format=%(refname)",
            "refs/heads/descartes",
            "refs/descartes",
        ],
    );
    let told = trial.run(trial.descartes(&["work", "--json"])).ok()?;
    let pieces: Value = serde_json::from_str(&told.stdout()).ok()?;
    let named = pieces.to_string();
    for name in refs.lines() {
        let ahead = git(trial, &["rev-list", "--count", &format!("HEAD..{name}")]);
        let short = name.trim_start_matches("refs/heads/");
        // What was merged, and what we know to have put on the branches that `work` names.
        let own = name.ends_with("/merged") || name.ends_with("/waves") || name.contains("/ours/");
        if ahead != "0" && !own && !named.contains(short) {
            return Some(format!(
                "{short} is {ahead} commits ahead, and `work` does not tell: {named}"
            ));
        }
    }
    None
}

/// What must hold at the end.
fn incomplete(trial: &Trial<'_>) -> Option<String> {
    let text = std::fs::read_to_string(trial.path(".scud/tasks/tasks.scg")).unwrap_or_default();
    let done = text.lines().filter(|line| line.contains(" | D | ")).count() as u64;
    if done != TASKS {
        return Some(format!("{done} of {TASKS} tasks are done in the file"));
    }
    for task in 1..=TASKS {
        let path = trial.path(&format!("src/own/work-{task}.txt"));
        if !path.exists() {
            return Some(format!("the work of task {task} did not land"));
        }
    }
    let refs = git(
        trial,
        &["for-each-ref", "refs/heads/descartes", "refs/descartes"],
    );
    if !refs.is_empty() {
        return Some(format!("left behind: {refs}"));
    }
    let waves = git(trial, &["log", "--format=%s"]);
    for wave in 1..=4 {
        let message = format!("feat(big): complete wave {wave}");
        if waves.lines().filter(|line| **line == *message).count() != 1 {
            return Some(format!("not one commit for wave {wave}:\n{waves}"));
        }
    }
    None
}

/// From the claim of a task to the start of its agent.
fn set_up(trial: &Trial<'_>) -> Vec<f64> {
    let sql = "select (julianday(i.started_at) - julianday(a.started_at)) * 86400000.0 as ms from attempts a \
        join tasks t on t.loop_id = a.loop_id and t.task = a.task \
        join runs i on i.loop_id = t.task_loop and i.iteration = a.attempt where i.started_at > a.started_at";
    let asked = trial.run(trial.descartes(&["query", sql, "--json"]));
    let rows: Value = asked
        .ok()
        .and_then(|asked| serde_json::from_str(&asked.stdout()).ok())
        .unwrap_or_default();
    let rows = rows.as_array().cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row["ms"].as_f64()).collect()
}

/// What one worktree of as many files costs by itself.
fn worktree_floor(lab: &Lab) -> Result<f64, Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, FILES, 1, |_| None)?;
    let mut times = Vec::new();
    for round in 0..3 {
        let path = trial.world.root().join(format!("tree-{round}"));
        let since = Instant::now();
        git(
            &trial,
            &[
                "worktree",
                "add",
                "--quiet",
                "--detach",
                &path.to_string_lossy(),
            ],
        );
        times.push(since.elapsed().as_secs_f64() * 1e3);
    }
    Ok(stats::median(&times))
}
