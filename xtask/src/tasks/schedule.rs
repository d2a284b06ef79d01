//! M12: makespan against a list schedule, in a simulated world and with real agents.

use std::process::Command;

use descartes_testkit::stamp;
use serde_json::Value;

use super::kills::repository;
use crate::lab::chance::Chance;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, build, stats};

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let program = build::example(lab.form, "descartes-core", "task_scale")?;
    let (mut ratios, mut barriers, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..lab.form.pick(20, 200) {
        let seed = lab.seed.wrapping_add(round).to_string();
        let out = Command::new(&program).args(["schedule", &seed]).output();
        let out = out.map_err(|error| error.to_string())?;
        let told: Value = serde_json::from_slice(&out.stdout).map_err(|error| error.to_string())?;
        let number = |key: &str| told[key].as_f64().unwrap_or(f64::NAN);
        ratios.push(number("ours") / number("list"));
        barriers.push(number("barrier") / number("list"));
        bounds.push(number("ours") / number("bound"));
    }
    let worst = stats::max(&ratios);
    let mut rows = vec![
        // Simulated: no machine is too busy for it.
        Row::at_most(
            Form::Long,
            "M12",
            "random graphs, no barrier: worst makespan ÷ list schedule",
            (worst, "×"),
            1.05,
        ),
        Row::at_most(
            lab.form,
            "M12",
            "the same ÷ what no schedule can beat, median",
            (stats::median(&bounds), "×"),
            0.0,
        )
        .shown(),
        Row::at_most(
            lab.form,
            "M12",
            "what waves with a barrier cost, median",
            (stats::median(&barriers), "×"),
            0.0,
        )
        .shown(),
    ];
    rows.push(real(lab)?);
    Ok(rows)
}

/// Real agents that sleep for known times, four at a time, in worktrees.
fn real(lab: &Lab) -> Result<Row, Trouble> {
    let (tasks, unit) = lab.form.pick((12_u64, 300), (32, 4_000));
    let mut chance = Chance::new(lab.seed);
    let lengths: Vec<u64> = (0..tasks).map(|_| unit + chance.below(2 * unit)).collect();
    let trial = Trial::new(lab);
    repository(&trial, 50, tasks, |_| None)?;
    let stamps = trial.world.root().join("stamps");
    let folder = trial.world.root().join("lengths");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    for (task, length) in lengths.iter().enumerate() {
        let seconds = format!("{}.{:03}", length / 1000, length % 1000);
        let path = folder.join((task + 1).to_string());
        std::fs::write(path, seconds).map_err(|error| error.to_string())?;
    }
    let script = format!(
        "stamp {}\nsh sleep $(cat {}/$DESCARTES_TASK_ID)\nwrite work-${{DESCARTES_TASK_ID}} x\npromise\n",
        stamps.display(),
        folder.display()
    );
    let flags = [
        "--scud-tag",
        "big",
        "--parallel",
        "4",
        "--no-wave-barrier",
        "--verify",
        "true",
        "--max-iterations",
        "unlimited",
    ];
    let agent = trial.agent(&script);
    let mut command = trial.descartes(&["loop", "start", "--command", &agent]);
    command.args(flags);
    let mut host = trial.spawn(command)?;
    let code = host.code_within(std::time::Duration::from_secs(600))?;
    if code != 0 {
        return Err(format!("the loop ended with {code}"));
    }
    let seen = stamp::read(&stamps);
    let (first, last) = (
        seen.iter().map(|stamp| stamp.ns).min().unwrap_or(0),
        seen.iter().map(|stamp| stamp.ns).max().unwrap_or(0),
    );
    let makespan = stats::ms(last - first);
    let mut slots = [0_u64; 4];
    for length in &lengths {
        if let Some(slot) = slots.iter_mut().min() {
            *slot += length;
        }
    }
    let list = slots.iter().copied().max().unwrap_or(1) as f64;
    let what = format!(
        "{tasks} real agents of {unit} to {} ms, 4 at a time, in worktrees",
        3 * unit
    );
    let mut row = Row::at_most(lab.form, "M12", what, (makespan / list, "×"), 1.05);
    row.floor = format!("list schedule {list:.0} ms");
    // Short agents show the cost of worktrees and merges, not of the schedule.
    Ok(match lab.form {
        Form::Short => row.shown(),
        Form::Long => row,
    })
}
