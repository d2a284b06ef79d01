//! The terminal view: how soon it shows what happens, how it copes with a long history and many
//! loops, and what it costs while nothing does.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use descartes_kernel::fact;
use descartes_store::journal::Journal;
use descartes_testkit::Pty;
use descartes_testkit::pty::Size;
use nix::sys::signal::Signal;

use super::{crowd, history};
use crate::lab::{Lab, Row, Rows, Trial, Trouble, proc, stats};

/// Its name in rows.
pub const MEASURE: &str = "views";
/// What a person may have to wait for.
const LONG: Duration = Duration::from_secs(30);
/// Bytes of the longest log.
pub const HUGE: u64 = 10 << 30;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let mut rows = idle(lab)?;
    rows.push(latency(lab)?);
    rows.extend(long_history(lab)?);
    rows.extend(crowd::take(lab)?);
    Ok(rows)
}

/// A view on a terminal of its own.
pub fn watch(trial: &Trial<'_>, words: &[&str]) -> Pty {
    let mut command = trial.descartes(words);
    command.env("LC_ALL", "C.UTF-8");
    let size = Size {
        rows: 40,
        columns: 120,
    };
    Pty::spawn(&command, size)
}

/// Milliseconds until the screen holds these words.
pub fn until(pty: &Pty, since: Instant, words: &str) -> Result<f64, Trouble> {
    while !pty.screen().contains(words) {
        if since.elapsed() > LONG {
            return Err(format!("`{words}` never came:\n{}", pty.screen()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(since.elapsed().as_secs_f64() * 1e3)
}

fn pressed(pty: &mut Pty, keys: &str, words: &str) -> Result<f64, Trouble> {
    let since = Instant::now();
    pty.send(keys);
    until(pty, since, words)
}

/// Leaves the view.
pub fn quit(mut pty: Pty) -> Result<(), Trouble> {
    pty.send("q");
    let ended = pty.wait(LONG);
    match ended.code() {
        Some(0) => Ok(()),
        _ => Err(format!("the view ended with {ended}")),
    }
}

/// Processor time of a process over a while, in percent of one core.
pub fn share(pid: i32, seconds: u64) -> f64 {
    let before = proc::cpu_seconds(pid);
    thread::sleep(Duration::from_secs(seconds));
    (proc::cpu_seconds(pid) - before) / seconds as f64 * 100.0
}

/// One silent loop runs: its clock is drawn once a second.
fn idle(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    let host = trial.spawn(trial.start("touch up\nhang", &["--kill-grace", "0s"]))?;
    trial.wait_for("up")?;
    let pty = watch(&trial, &["watch"]);
    until(&pty, Instant::now(), "iteration 1 of at most")?;
    let seconds = lab.form.pick(10, 60);
    let cpu = share(pty.pid(), seconds);
    let row = Row::at_most(
        lab.form,
        MEASURE,
        format!("idle terminal view for {seconds} s: processor"),
        (cpu, "%"),
        1.0,
    );
    quit(pty)?;
    host.signal(Signal::SIGTERM);
    Ok(vec![row])
}

/// From a record in the journal to its words on the screen.
fn latency(lab: &Lab) -> Result<Row, Trouble> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let trial = Trial::new(lab);
    trial.run(trial.start("print working", &["--max-iterations", "2"]))?;
    let path = trial.journals().into_iter().next().ok_or("no journal")?;
    let mut pty = watch(&trial, &["watch"]);
    until(&pty, Instant::now(), "Iteration limit reached")?;
    // In the pane, whose end is followed: only the newest fit.
    pressed(&mut pty, "5lG", "Remarks")?;
    let (mut journal, _, _) = Journal::open(&path).map_err(|error| said(&error))?;
    let mut times = Vec::new();
    for number in 0..lab.form.pick(20, 100) {
        let message = format!("mark {number}.");
        let event = fact::warning(message.clone());
        let at = jiff::Timestamp::now();
        let since = Instant::now();
        let appended = journal.append(at, &event, event.durability());
        appended.map_err(|error| said(&error))?;
        times.push(until(&pty, since, &message)?);
    }
    quit(pty)?;
    // Of a few the slowest one would be judged: it met a busy machine.
    let (name, share) = lab.form.pick(("p50", 0.5), ("p95", 0.95));
    let what = format!(
        "record in the journal to the screen ×{}, {name}",
        times.len()
    );
    let ms = (stats::quantile(&times, share), "ms");
    Ok(Row::at_most(lab.form, MEASURE, what, ms, 150.0))
}

/// The log of the last run, to be written anew.
pub fn newest_log(trial: &Trial<'_>) -> Result<File, Trouble> {
    let runs = trial
        .journals()
        .first()
        .and_then(|path| path.parent())
        .ok_or("no journal")?
        .join("runs");
    let said = |error: std::io::Error| error.to_string();
    let names = fs::read_dir(&runs).map_err(said)?;
    let paths = names.filter_map(|name| Some(name.ok()?.path()));
    let newest = paths.max_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.parse::<u64>().ok())
    });
    let log = newest.ok_or("no run")?.join("stdout.log");
    File::create(&log).map_err(said)
}

/// A hundred thousand iterations, the last with ten gigabytes of output (a file with holes).
fn long_history(lab: &Lab) -> Rows {
    let trial = Trial::new(lab);
    history::long(&trial)?;
    let file = newest_log(&trial)?;
    let said = |error: std::io::Error| error.to_string();
    let put = |text: &str, at: u64| file.write_all_at(text.as_bytes(), at).map_err(said);
    put("the first line\n", 0)?;
    put("\nthe middle line\nmore\n", HUGE / 2 - 1)?;
    put("\nthe last line\n", HUGE - 15)?;

    let last = history::LAST.to_string();
    // The number of the last one stands in the loop's head, too.
    let before_last = format!(" {} ", history::LAST - 1);
    let middle = format!(" {} ", history::LAST / 2);
    let begun = Instant::now();
    let mut pty = watch(&trial, &["loop", "watch"]);
    let mut times = vec![("open", until(&pty, begun, &format!("{last} of at most"))?)];
    times.push(("history: the middle", pressed(&mut pty, "m", &middle)?));
    times.push(("history: the beginning", pressed(&mut pty, "g", "   1 ")?));
    times.push(("history: the end", pressed(&mut pty, "G", &before_last)?));
    times.push(("output: the end", pressed(&mut pty, "2", "the last line")?));
    times.push((
        "output: the middle",
        pressed(&mut pty, "m", "the middle line")?,
    ));
    times.push((
        "output: the beginning",
        pressed(&mut pty, "g", "the first line")?,
    ));
    times.push((
        "output: the end again",
        pressed(&mut pty, "G", "the last line")?,
    ));
    let memory = proc::peak_kib(pty.pid()).unwrap_or(u64::MAX) as f64 / 1024.0;
    quit(pty)?;
    let what = "100,000 iterations and 10 GB of output";
    let row = |(name, ms): (&str, f64)| {
        Row::at_most(
            lab.form,
            MEASURE,
            format!("{what}: {name}"),
            (ms, "ms"),
            200.0,
        )
    };
    let mut rows: Vec<Row> = times.into_iter().map(row).collect();
    rows.push(Row::at_most(
        lab.form,
        MEASURE,
        format!("{what}: memory at its peak (RSS)"),
        (memory, "MiB"),
        100.0,
    ));
    Ok(rows)
}
