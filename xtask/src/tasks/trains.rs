//! The merge queue: tasks that are proven and wait, merged together and one by one in the same run.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::kills::repository;
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

/// The bars are for this many tasks; a short form takes fewer and shorter gates.
struct Case<'a> {
    tasks: u64,
    gate_seconds: f64,
    /// Tasks whose work breaks the gate on a merged tree.
    culprits: &'a [u64],
    batch: &'a str,
}

/// What a run came to.
struct Seen {
    gate_runs: usize,
    /// From the first merge, with every task proven, to the last landing.
    seconds: f64,
    sent_back: Vec<u64>,
}

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (tasks, gate_seconds) = lab.form.pick((16, 0.3), (64, 2.0));
    let mut chance = Chance::new(lab.seed);
    let mut culprits: Vec<u64> = Vec::new();
    while culprits.len() < 3 {
        let task = 1 + chance.below(tasks);
        if !culprits.contains(&task) {
            culprits.push(task);
        }
    }
    culprits.sort_unstable();
    let mut rows = Vec::new();
    for (name, culprits, most_runs, faster) in [
        ("all green", &[][..], 5.0, 5.0),
        ("3 culprits at random places", &culprits[..], 24.0, 2.0),
    ] {
        let run = |batch| {
            let case = Case {
                tasks,
                gate_seconds,
                culprits,
                batch,
            };
            one(lab, &case)
        };
        let (together, alone) = (run("16")?, run("1")?);
        let what = format!("{tasks} tasks proven and waiting, gate of {gate_seconds} s, {name}");
        let runs = (together.gate_runs as f64, "gate runs");
        let mut row = Row::at_most(lab.form, "merge queue", what.clone(), runs, most_runs);
        row.floor = format!("{} one by one", alone.gate_runs);
        rows.push(row);
        let share = together.seconds / alone.seconds;
        let mut row = Row::at_most(
            lab.form,
            "merge queue",
            format!("{what}: time beside one by one"),
            (share, "×"),
            1.0 / faster,
        );
        row.ours = format!("{:.1} s, {share:.2} ×", together.seconds);
        row.floor = format!("one by one {:.1} s", alone.seconds);
        rows.push(row);
        let wrong: Vec<String> = [&together, &alone]
            .into_iter()
            .filter(|seen| seen.sent_back != culprits)
            .map(|seen| format!("sent back {:?} instead of {culprits:?}", seen.sent_back))
            .collect();
        let what = format!("{tasks} tasks, {name}: exactly the culprits are sent back");
        rows.push(Row::count("merge queue", what, 2, &wrong));
    }
    rows.push(from_start_to_end(lab)?);
    Ok(rows)
}

/// Whole loops whose gate takes its time wherever it is run.
fn from_start_to_end(lab: &Lab) -> Result<Row, Trouble> {
    let (tasks, gate_seconds) = lab.form.pick((16, 0.3), (64, 5.0));
    let run = |batch: &str| {
        let trial = Trial::new(lab);
        repository(&trial, 20, tasks, |_| None)?;
        let script = trial
            .world
            .script("echo work > work-$DESCARTES_TASK_ID\necho '<promise>COMPLETE</promise>'");
        let agent = shell_words::join(["sh", &script.to_string_lossy()]);
        let began = Instant::now();
        let code = start(&trial, &agent, &format!("sleep {gate_seconds}"), batch)?;
        let seconds = began.elapsed().as_secs_f64();
        let lost = (1..=tasks).filter(|task| !trial.path(&format!("work-{task}")).exists());
        match (code, lost.count()) {
            (0, 0) => Ok(seconds),
            (code, lost) => Err(format!("ended with {code}, {lost} tasks did not land")),
        }
    };
    let (together, alone) = (run("16")?, run("1")?);
    let share = together / alone;
    let mut row = Row::at_most(
        lab.form,
        "merge queue",
        format!(
            "{tasks} tasks, gate of {gate_seconds} s, 16 at a time: from start to last landing"
        ),
        (share, "×"),
        0.33,
    );
    row.ours = format!("{together:.1} s, {share:.2} ×");
    row.floor = format!("one by one {alone:.1} s");
    Ok(row)
}

/// Runs a loop to its end.
fn start(trial: &Trial<'_>, agent: &str, gate: &str, batch: &str) -> Result<i32, Trouble> {
    let mut command = trial.descartes(&["loop", "start", "--scud-tag", "big"]);
    command.args(["--command", agent, "--verify", gate]);
    command.args(["--parallel", "16", "--merge-batch", batch]);
    command.args(["--max-iterations-per-task", "1"]);
    command.args(["--max-iterations", "unlimited"]);
    trial.spawn(command)?.code_within(Duration::from_secs(900))
}

fn one(lab: &Lab, case: &Case<'_>) -> Result<Seen, Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 20, case.tasks, |_| None)?;
    let path = |name: &str| trial.world.root().join(name).display().to_string();
    let (merged, slots) = (path("merged-gates"), path("slot-gates"));
    let list: Vec<String> = case.culprits.iter().map(u64::to_string).collect();
    let culprits = match list.is_empty() {
        true => "none".to_owned(),
        false => list.join("|"),
    };
    let script = trial.world.script(&format!(
        "echo work > work-$DESCARTES_TASK_ID\n\
         case $DESCARTES_TASK_ID in {culprits}) echo x > bad-$DESCARTES_TASK_ID;; esac\n\
         echo '<promise>COMPLETE</promise>'"
    ));
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let gate = format!(
        "case $PWD in */merged*) until [ $(wc -l < {slots}) -ge {} ]; do sleep 0.05; done; \
         date +%s%N >> {merged}; sleep {}; ! ls bad-* 2>/dev/null;; *) echo x >> {slots};; esac",
        case.tasks, case.gate_seconds
    );
    start(&trial, &agent, &gate, case.batch)?;
    let ended = SystemTime::now().duration_since(UNIX_EPOCH);
    let ended = ended.map_err(|error| error.to_string())?.as_nanos();
    let stamps = fs::read_to_string(merged.as_str()).unwrap_or_default();
    let first = stamps.lines().find_map(|line| line.parse::<u128>().ok());
    let first = first.ok_or("no gate was run on a merged tree")?;
    let landed = |task: &u64| trial.path(&format!("work-{task}")).exists();
    Ok(Seen {
        gate_runs: stamps.lines().count(),
        seconds: ended.saturating_sub(first) as f64 / 1e9,
        sent_back: (1..=case.tasks).filter(|task| !landed(task)).collect(),
    })
}
