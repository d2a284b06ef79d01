//! How soon the window shows what happens, and how it copes with a long history and a long log.

use std::io::BufWriter;
use std::io::{Seek, SeekFrom, Write};

use descartes_kernel::event::{Decided, Durability, Event};
use descartes_store::journal::Journal;

use super::Window;
use super::places::SECOND_LOOP;
use super::screen::Part;
use crate::bench::history::{self, iteration};
use crate::bench::views::{HUGE, newest_log};
use crate::lab::stats::quantile;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, proc};

/// History and output: nothing here changes with the clock.
pub const CONTENT: Part = Part {
    x: 300,
    y: 230,
    width: 840,
    height: 480,
};
/// The middle and the end of the history's scroll bar.
const HISTORY_MIDDLE: (u32, u32) = (1158, 349);
const HISTORY_END: (u32, u32) = (1158, 468);
/// The middle of the output's scroll bar.
const OUTPUT_MIDDLE: (u32, u32) = (1154, 640);
/// So much around the middle of the log is text: a scroll bar is not exact to the byte.
const AROUND: u64 = 128 << 20;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let mut rows = vec![latency(lab)?];
    // To write a history that long takes longer than everything else of the short form.
    if lab.form == Form::Long {
        rows.extend(large(lab)?);
    }
    Ok(rows)
}

fn said(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

/// From records in the journal to the last change that they make on the screen.
fn latency(lab: &Lab) -> Result<Row, Trouble> {
    let trial = Trial::new(lab);
    trial.run(trial.start("print working", &["--max-iterations", "3"]))?;
    let path = trial.journals().into_iter().next().ok_or("no journal")?;
    let (mut journal, _, _) = Journal::open(&path).map_err(said)?;
    let now = jiff::Timestamp::now;
    let reopened = Decided::for_test(Event::LoopReopened);
    journal
        .append(now(), &reopened, Durability::Process)
        .map_err(said)?;
    let window = Window::open(&trial, &[])?;
    let mut times = Vec::new();
    for number in 4..4 + lab.form.pick(12, 100) {
        times.push(window.screen.until_rest(CONTENT, || {
            iteration(number).iter().try_for_each(|event| {
                let appended = journal.append(now(), event, Durability::Process);
                appended.map(drop).map_err(said)
            })
        })?);
    }
    // Of a dozen the slowest one would be judged: it met a busy machine.
    let (name, share) = lab.form.pick(("p50", 0.5), ("p95", 0.95));
    let what = format!(
        "records in the journal to the screen ×{}, {name}",
        times.len()
    );
    let ms = (quantile(&times, share), "ms");
    let mut row = Row::at_most(lab.form, "window", what, ms, 150.0);
    row.raw = serde_json::json!({ "ours_ms": times });
    Ok(row)
}

/// A hundred thousand iterations, the last with ten gigabytes of output (a file with holes).
fn large(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    history::long(&trial)?;
    huge_log(&trial)?;
    // Another loop, newer, to begin with.
    let small = ["--max-iterations", "1", "--state-file", "other.json"];
    trial.run(trial.start("print other", &small))?;
    let window = Window::open(&trial, &[])?;
    let screen = &window.screen;
    let clicked = |place: (u32, u32)| {
        screen.point(place)?;
        screen.until_rest(CONTENT, || screen.hands(&["click", "1"]).map(drop))
    };
    let pressed = |key: &str| screen.until_rest(CONTENT, || screen.key(key));
    let mut times = vec![("open", clicked(SECOND_LOOP)?)];
    screen.photograph("11-long")?;
    times.push(("history: the middle", clicked(HISTORY_MIDDLE)?));
    screen.photograph("12-history-middle")?;
    times.push(("history: the beginning", clicked(HISTORY_END)?));
    times.push(("output: the middle", clicked(OUTPUT_MIDDLE)?));
    screen.photograph("13-output-middle")?;
    times.push(("output: the beginning", pressed("Home")?));
    times.push(("output: the end", pressed("End")?));
    screen.photograph("14-output-end")?;
    let memory = proc::peak_kib(window.pid()).unwrap_or(u64::MAX) as f64 / 1024.0;
    let what = "100,000 iterations and 10 GB of output";
    let row = |(name, ms): (&str, f64)| {
        let what = format!("{what}: {name}");
        Row::at_most(lab.form, "window", what, (ms, "ms"), 200.0)
    };
    let mut rows: Vec<Row> = times.into_iter().map(row).collect();
    rows.push(Row::at_most(
        lab.form,
        "window",
        format!("{what}: memory at its peak (RSS)"),
        (memory, "MiB"),
        250.0,
    ));
    Ok(rows)
}

/// Makes the newest log ten gigabytes long, with words at the beginning, around the middle and at
/// the end.
fn huge_log(trial: &Trial<'_>) -> Result<(), Trouble> {
    let file = newest_log(trial)?;
    file.set_len(HUGE).map_err(said)?;
    let mut log = BufWriter::with_capacity(1 << 20, file);
    let mut words = |from: u64, bytes: u64| {
        log.seek(SeekFrom::Start(from))?;
        (0..bytes / 32).try_for_each(|line| {
            let text = format!("at {:>9} KiB", (from + line * 32) >> 10);
            writeln!(log, "{text:<31}")
        })?;
        log.flush()
    };
    words(0, 1 << 16).map_err(said)?;
    words(HUGE / 2 - AROUND / 2, AROUND).map_err(said)?;
    words(HUGE - (1 << 16), 1 << 16).map_err(said)
}
