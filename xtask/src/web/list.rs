//! The list of many finished loops.

use std::time::Instant;

use serde_json::json;

use super::MEASURE;
use super::served::Served;
use crate::lab::stats::median;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble};

/// Loops that are run at the same time.
const HANDS: usize = 4;
/// Bytes of the page.
const MOST_KB: f64 = 200.0;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    let many = lab.form.pick(100, 1000);
    fill(&trial, many)?;
    let (mut floor, mut first, mut later, mut kb) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for _ in 0..lab.form.pick(5, 20) {
        floor.push(listed(&trial, many)?);
        let served = Served::start(&trial)?;
        // What a server has to do before it can answer anybody is not the list's.
        served.timed("/sign-in")?;
        let (ms, page) = served.timed("/")?;
        first.push(ms);
        kb = page.body.len() as f64 / 1e3;
        if !page.body.contains(&format!("{many} loops")) {
            return Err(format!("the page does not tell of {many} loops"));
        }
        for _ in 0..5 {
            later.push(served.timed("/")?.0);
        }
    }
    Ok(rows(lab.form, many, (&first, &later, &floor), kb))
}

fn rows(
    form: Form,
    many: usize,
    (first, later, floor): (&[f64], &[f64], &[f64]),
    kb: f64,
) -> Vec<Row> {
    let what = format!("list of {many} finished loops");
    let beside = ("`loop list --all --json`", floor);
    let size = format!("{what}: bytes sent");
    let mut size = Row::at_most(form, MEASURE, size, (kb, "kB"), MOST_KB);
    size.raw = json!({ "kilobytes": kb, "floor_ms": median(floor) });
    vec![
        Row::ratio(
            form,
            MEASURE,
            format!("{what}: the first page of a server"),
            first,
            beside,
            3.0,
        ),
        Row::ratio(
            form,
            MEASURE,
            format!("{what}: any later page"),
            later,
            beside,
            3.0,
        ),
        size,
    ]
}

/// Milliseconds that the command line takes for the same.
fn listed(trial: &Trial<'_>, many: usize) -> Result<f64, Trouble> {
    let since = Instant::now();
    let ended = trial.run(trial.descartes(&["loop", "list", "--all", "--json"]))?;
    let took = since.elapsed().as_secs_f64() * 1e3;
    let told: serde_json::Value = serde_json::from_str(&ended.stdout()).unwrap_or_default();
    match told.as_array().map_or(0, Vec::len) {
        count if count == many => Ok(took),
        count => Err(format!("`loop list` tells of {count} loops; {ended}")),
    }
}

/// Runs so many loops to their end.
fn fill(trial: &Trial<'_>, many: usize) -> Result<(), Trouble> {
    let run = |number: usize| -> Result<(), Trouble> {
        let (name, file) = (format!("loop-{number}"), format!("loops/{number}.json"));
        let flags = [
            "--name",
            &name,
            "--state-file",
            &file,
            "--max-iterations",
            "3",
        ];
        let ended = trial.run(trial.start("promise", &flags))?;
        match ended.code() {
            Some(0) => Ok(()),
            _ => Err(ended.to_string()),
        }
    };
    std::thread::scope(|scope| {
        let hands = (0..HANDS).map(|hand| {
            let mut numbers = (hand..many).step_by(HANDS);
            scope.spawn(move || numbers.try_for_each(run))
        });
        let hands: Vec<_> = hands.collect();
        let mut joined = hands.into_iter().map(|hand| hand.join());
        joined.try_for_each(|done| done.unwrap_or_else(|_| Err("a loop broke".to_owned())))
    })
}
