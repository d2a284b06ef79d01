//! Whole runs with real workers: how long they take beside one host, and a coordinator that is killed.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::MEASURE;
use super::machines::Machines;
use super::simulated::Programs;
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trouble};

/// Longer no run takes.
const LONG: Duration = Duration::from_secs(600);

fn ended(child: &mut Child) -> Result<Option<i32>, Trouble> {
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.code());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("the run did not end".to_owned())
}

/// Tasks of seeded lengths on workers of one slot each, and on one host with as many slots.
pub fn makespan(lab: &Lab, programs: &Programs) -> Rows {
    let (tasks, workers) = (lab.form.pick(8, 20), 4);
    let (least, most) = lab.form.pick((1000, 3000), (4000, 12_000));
    let mut chance = Chance::new(lab.seed);
    let lengths: Vec<u64> = (0..tasks)
        .map(|_| least + chance.below(most - least))
        .collect();
    let run = |remote: bool| -> Result<f64, Trouble> {
        let mut machines = Machines::new(programs, tasks)?;
        for n in 0..workers * usize::from(remote) {
            machines.worker(&format!("w{n}"), 1)?;
        }
        let folder = machines.world.root().join("lengths");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for (n, ms) in lengths.iter().enumerate() {
            let text = format!("{:.3}", *ms as f64 / 1e3);
            std::fs::write(folder.join((n + 1).to_string()), text)
                .map_err(|error| error.to_string())?;
        }
        let script = format!(
            "sh sleep $(cat {}/${{DESCARTES_TASK_ID}}) ;; write work-${{DESCARTES_TASK_ID}}.txt x ;; promise",
            folder.display()
        );
        // Workers are there before the tasks are offered.
        std::thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let mut child = machines.start(&script, workers, remote);
        let mut child = child.spawn().map_err(|error| error.to_string())?;
        match ended(&mut child)? {
            Some(0) => Ok(began.elapsed().as_secs_f64()),
            code => Err(format!("the run ended with {code:?}")),
        }
    };
    let (here, there) = (run(false)?, run(true)?);
    let what = format!(
        "{tasks} tasks of {least} to {most} ms on {workers} workers, beside one host with {workers} slots"
    );
    let mut row = Row::at_most(lab.form, MEASURE, what, (there / here, "×"), 1.1);
    row.ours = format!("{there:.1} s, {:.2} ×", there / here);
    row.floor = format!("one host {here:.1} s");
    Ok(vec![row])
}

/// The host of the task loop is killed again and again while workers work.
pub fn coordinator_killed(lab: &Lab, programs: &Programs) -> Rows {
    let (tasks, workers, kills) = lab.form.pick((6, 2, 5), (20, 4, 20));
    let mut machines = Machines::new(programs, tasks)?;
    for n in 0..workers {
        machines.worker(&format!("w{n}"), 1)?;
    }
    let script = "sleep 3s ;; write work-${DESCARTES_TASK_ID}.txt x ;; promise";
    let mut child = machines.start(script, workers, true);
    let mut child = child.spawn().map_err(|error| error.to_string())?;
    machines.first_copy()?;
    let mut chance = Chance::new(lab.seed);
    for _ in 0..kills {
        // Some hosts die while they begin, some while they take in results, some in between.
        std::thread::sleep(Duration::from_millis(100 + chance.below(1400)));
        drop(child.kill());
        drop(child.wait());
        let mut again = machines.resume();
        child = again.spawn().map_err(|error| error.to_string())?;
    }
    let code = ended(&mut child)?;
    let mut wrong = told_wrong(&machines, workers, tasks)?;
    if code != Some(0) {
        wrong.push(format!("the loop ended with {code:?}"));
    }
    let what = format!("coordinator killed {kills} times under {tasks} tasks: none begun again");
    Ok(vec![Row::count(MEASURE, what, tasks as u64, &wrong)])
}

/// Tasks that were not begun, handed in, written down and landed exactly once.
fn told_wrong(machines: &Machines, workers: usize, tasks: usize) -> Result<Vec<String>, Trouble> {
    let mut wrong = Vec::new();
    let records = machines.records()?;
    let texts = (0..workers)
        .map(|n| std::fs::read_to_string(machines.told_by(&format!("w{n}"))).unwrap_or_default());
    let told: String = texts.collect();
    for task in 1..=tasks {
        let count = |what: &str| {
            let begins = format!("task {task} of loop");
            let lines = told.lines().filter(|line| line.contains(&begins));
            lines.filter(|line| line.ends_with(what)).count()
        };
        let of_task = |record: &&Value| {
            let of = record["event"].get("task").unwrap_or(&record["task"]);
            of.as_str() == Some(&task.to_string())
        };
        let written = |kind: &str, event: Option<&str>| {
            let of_kind = records.iter().filter(|record| {
                record["kind"] == kind && event.is_none_or(|event| record["event"]["kind"] == event)
            });
            of_kind.filter(of_task).count()
        };
        let counts = [
            ("begun", count(": begun")),
            ("handed in", count(": handed in")),
            ("started", written("tasks", Some("attempt_started"))),
            ("ended", written("tasks", Some("attempt_ended"))),
            ("counted", written("task_run", None)),
            ("landed", machines.landed(task)),
        ];
        for (what, times) in counts.iter().filter(|(_, times)| *times != 1) {
            wrong.push(format!("task {task}: {what} {times} times"));
        }
    }
    Ok(wrong)
}
