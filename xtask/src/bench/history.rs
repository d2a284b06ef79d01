//! M10: what the next iteration costs after 100,000 of them.

use std::time::Instant;

use descartes_kernel::event::{
    Decided, EndedBy, Event, ExitStatus, Progress, RunFacts, TreeFacts, Verdict as Judged,
};
use descartes_store::journal::Journal;
use descartes_testkit::stamp;

use crate::lab::stats::ms;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const EARLY: u32 = 140;
const MANY: u32 = 100_000;
const NEXT: u32 = 60;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    let script = format!(
        "print working\nstamp {}/stamps",
        trial.world.root().display()
    );
    let early = iterations(
        &trial,
        trial.start(&script, &["--max-iterations", &EARLY.to_string()]),
    )?;
    let early = &early[early.len().saturating_sub(NEXT as usize)..];
    fill(&trial)?;
    let limit = (MANY + NEXT).to_string();
    let since = Instant::now();
    let late = iterations(
        &trial,
        trial.descartes(&["loop", "resume", "--max-iterations", &limit]),
    )?;
    let resumed = since.elapsed().as_secs_f64();
    let run: f64 = late.iter().sum::<f64>() / 1e3;
    let mut rows = vec![
        Row::ratio(
            lab.form,
            "M10",
            format!("gap after {MANY} iterations"),
            &late,
            ("gap at iteration 100", early),
            1.2,
        ),
        Row::at_most(
            lab.form,
            "M10",
            format!("taking up a loop of {MANY} iterations"),
            (resumed - run, "s"),
            0.0,
        )
        .shown(),
    ];
    rows.push(status(lab, &trial)?);
    Ok(rows)
}

/// The last iteration of a long loop.
pub const LAST: u32 = MANY + 2;

/// A loop with a long history that ran to its limit, as a host leaves it.
pub fn long(trial: &Trial<'_>) -> Result<(), Trouble> {
    let early = EARLY.to_string();
    trial.run(trial.start("print working", &["--max-iterations", &early]))?;
    fill(trial)?;
    let limit = LAST.to_string();
    let resumed = trial.run(trial.descartes(&["loop", "resume", "--max-iterations", &limit]))?;
    match resumed.code() {
        Some(2) => Ok(()),
        _ => Err(format!("the loop did not run to its limit; {resumed}")),
    }
}

fn iterations(trial: &Trial<'_>, command: std::process::Command) -> Result<Vec<f64>, Trouble> {
    let stamps = trial.world.root().join("stamps");
    let _ = std::fs::remove_file(&stamps);
    let finished = trial.run(command)?;
    if finished.code() != Some(2) {
        return Err(format!("the loop did not run to its limit; {finished}"));
    }
    Ok(stamp::gaps_ns(&stamp::read(&stamps))
        .into_iter()
        .map(ms)
        .collect())
}

/// Appends what a host would have written, by the same writer.
fn fill(trial: &Trial<'_>) -> Result<(), Trouble> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let path = trial.journals().into_iter().next().ok_or("no journal")?;
    let (mut journal, _, _) = Journal::open(&path).map_err(|error| said(&error))?;
    let at = jiff::Timestamp::now();
    let mut append = |event: &Decided| {
        journal
            .append_later(at, event)
            .map_err(|error| said(&error))
    };
    append(&Decided::for_test(Event::LoopReopened))?;
    for number in EARLY + 1..=MANY {
        for event in iteration(number) {
            append(&event)?;
        }
    }
    journal.sync().map_err(|error| said(&error))
}

/// The records of one iteration.
pub fn iteration(number: u32) -> [Decided; 3] {
    let (run, iteration) = (u64::from(number), number);
    let facts = RunFacts {
        ended_by: EndedBy::Exit,
        exit: Some(ExitStatus::Code(0)),
        duration_ms: 3,
        stdout_bytes: 8,
        stderr_bytes: 0,
        preview: "working".to_owned(),
        claim: None,
        abort: None,
        near_miss: None,
        error: None,
        limit: None,
        did_nothing: false,
        tokens: None,
        cost: None,
        leftovers: 0,
        survivors: Vec::new(),
        log_dropped: 0,
        trouble: 0,
        denied: Vec::new(),
        tree_after: None,
    };
    [
        Event::RunStarted {
            run,
            iteration,
            agent: 0,
            guard_pid: Some(2),
            prompt: "0".repeat(64),
            prompt_bytes: 2,
            before: TreeFacts::default(),
            notes: Vec::new(),
        },
        Event::AgentEnded {
            run,
            iteration,
            facts: Box::new(facts),
        },
        Event::IterationFinished {
            iteration,
            run,
            verdict: Judged::Worked,
            progress: Progress::Unknown("not measured".to_owned()),
            after: TreeFacts::default(),
            files: None,
            commit: None,
            spent_ms: 3,
        },
    ]
    .map(Decided::for_test)
}

/// `loop status` on that history, beside `--version`, which starts the same binary and reads nothing.
fn status(lab: &Lab, trial: &Trial<'_>) -> Result<Row, Trouble> {
    let what = format!("`loop status` after {MANY} iterations");
    if !trial.knows("status") {
        return Ok(Row::cannot("M10", what, "this binary has no `loop status`"));
    }
    let timed = |words: &[&str]| -> Result<f64, Trouble> {
        let since = Instant::now();
        let finished = trial.run(trial.descartes(words))?;
        let took = since.elapsed().as_secs_f64() * 1e3;
        if finished.code() == Some(0) {
            Ok(took)
        } else {
            Err(finished.to_string())
        }
    };
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..lab.form.pick(5, 30) {
        floor.push(timed(&["--version"])?);
        ours.push(timed(&["loop", "status"])?);
    }
    let mut row = Row::times(lab.form, "M10", what, &ours, ("`--version`", &floor), 20.0);
    // The middle one is judged: one look that met a busy machine says nothing about the history.
    let median = crate::lab::stats::median(&ours);
    row.bar = "p50 20 ms".to_owned();
    row.verdict = lab.form.judge(median <= 20.0, || format!("{median:.1} ms"));
    Ok(row)
}
