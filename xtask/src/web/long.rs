//! Pages of long loops: a hundred thousand iterations, and ten gigabytes of output.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::MEASURE;
use super::served::Served;
use crate::bench::history;
use crate::bench::views::HUGE;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble};

/// Iterations of a small loop: more than its page shows.
const SMALL: &str = "200";
/// How much slower a page of a long loop may be.
const BAR: f64 = 1.3;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    let mut rows = Vec::new();
    let small = run(&trial, "small.json")?;
    let huge = run(&trial, "huge.json")?;
    // Both pages show the same words: what is compared is what lies before them.
    let words: String = (0..2048).map(|line| format!("line {line}\n")).collect();
    end_with(&trial, &small, &words, words.len() as u64)?;
    end_with(&trial, &huge, &words, HUGE)?;
    let page = "page of a loop whose last log has 10 GB";
    rows.extend(compare(&trial, page, (&huge, &small), "")?);
    let output = "page with the end of a log of 10 GB";
    let tail = format!("/output/{SMALL}");
    rows.extend(compare(&trial, output, (&huge, &small), &tail)?);
    // To write a history that long takes longer than everything else of the short form.
    if lab.form == Form::Long {
        let other = Trial::new(lab);
        history::long(&other)?;
        let long = newest(&other)?;
        let small = run(&other, "small.json")?;
        let what = format!("page of a loop with {} iterations", history::LAST);
        rows.extend(compare(&other, &what, (&long, &small), "")?);
        let what = format!("last page of the history of {} iterations", history::LAST);
        rows.extend(compare(&other, &what, (&long, &small), "/history")?);
    }
    Ok(rows)
}

/// Runs a small loop to its limit; gives its id.
fn run(trial: &Trial<'_>, file: &str) -> Result<String, Trouble> {
    let flags = ["--max-iterations", SMALL, "--state-file", file];
    let ended = trial.run(trial.start("print working", &flags))?;
    match ended.code() {
        Some(2) => newest(trial),
        _ => Err(format!("the loop did not run to its limit; {ended}")),
    }
}

/// The id of the newest loop: ids begin with the time.
fn newest(trial: &Trial<'_>) -> Result<String, Trouble> {
    let journals = trial.journals();
    let folder = journals.last().and_then(|path| path.parent());
    let name = folder.and_then(|folder| folder.file_name());
    let name = name.and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| "no loop".to_owned())
}

/// Makes the last log as long as this, with these words at its end and a hole before them.
fn end_with(trial: &Trial<'_>, id: &str, words: &str, length: u64) -> Result<(), Trouble> {
    let said = |error: std::io::Error| error.to_string();
    let runs = trial.world.state().join("loops").join(id).join("runs");
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u64>().ok();
    let entries = fs::read_dir(&runs).map_err(said)?.flatten();
    let last = entries.map(|entry| entry.path()).max_by_key(number);
    let path = last.ok_or("no run")?.join("stdout.log");
    let log = OpenOptions::new().write(true).open(&path).map_err(said)?;
    log.set_len(length).map_err(said)?;
    let at = length - words.len() as u64;
    log.write_all_at(words.as_bytes(), at).map_err(said)
}

/// A page of one loop beside that of another: as a server makes it first, and while it follows the loop.
fn compare(
    trial: &Trial<'_>,
    what: &str,
    (long, small): (&str, &str),
    end: &str,
) -> Result<Vec<Row>, Trouble> {
    let path = |id: &str| format!("/loops/{id}{end}");
    let (mut first, mut later) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for turn in 0..trial.lab.form.pick(4, 20) {
        let served = Served::start(trial)?;
        served.timed("/sign-in")?;
        // In turns, so that none always comes first.
        let order = match turn % 2 {
            0 => [(0, long), (1, small)],
            _ => [(1, small), (0, long)],
        };
        for (whose, id) in order {
            first[whose].push(served.timed(&path(id))?.0);
        }
        for _ in 0..10 {
            for (whose, id) in order {
                later[whose].push(served.timed(&path(id))?.0);
            }
        }
    }
    let floor = "the same of a small loop";
    let row = |words: &str, [ours, small]: &[Vec<f64>; 2]| {
        let what = format!("{what}: {words}");
        Row::ratio(trial.lab.form, MEASURE, what, ours, (floor, small), BAR)
    };
    Ok(vec![
        row("for the first time", &first),
        row("again", &later),
    ])
}
