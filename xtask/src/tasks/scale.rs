//! M11: large graphs, beside `make`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::lab::{Lab, Row, Rows, Trouble, Verdict, build, stats};

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let program = build::example(lab.form, "descartes-core", "task_scale")?;
    let mut rows = Vec::new();
    for shape in ["chain", "wide", "random", "boxes"] {
        let (best, peak) = plan(&program, shape, "10000")?;
        let what = format!("10,000 tasks, {shape}: read, check, plan, on a processor");
        rows.push(Row::at_most(lab.form, "M11", what, (best, "ms"), 100.0));
        let what = format!("10,000 tasks, {shape}: peak memory");
        rows.push(Row::at_most(lab.form, "M11", what, (peak, "MiB"), 64.0));
        let (most, _) = plan(&program, shape, "100000")?;
        let what = format!("100,000 tasks, {shape}: times the cost of 10,000");
        let ratio = (most / best, "×");
        rows.push(Row::at_most(lab.form, "M11", what, ratio, 15.0));
    }
    rows.extend(lists(lab)?);
    for form in ["scg", "json", "roadmap", "boxes"] {
        let told = ask(&program, &["edit", form, "10000"])?;
        let (text, durable) = (numbers(&told["text_ms"]), numbers(&told["durable_ms"]));
        let what = match form {
            "boxes" => {
                "one tick among 10,000 boxes, with read and write, on a processor".to_owned()
            }
            _ => format!("one status in 10,000 tasks ({form}), the text alone, on a processor"),
        };
        rows.push(Row::at_most(
            lab.form,
            "M11",
            what,
            (stats::median(&text), "ms"),
            10.0,
        ));
        let what = format!("the same with lock, read, copy, write and sync ({form})");
        let mut row = Row::at_most(lab.form, "M11", what, (stats::median(&durable), "ms"), 0.0);
        let floor = synced_writes()?;
        row.floor = format!("two synced writes {floor:.1} ms");
        row.ratio = Some(stats::median(&durable) / floor);
        rows.push(row.shown());
    }
    rows.push(noop(lab, &program)?);
    Ok(rows)
}

/// Long lists of other tools, in every shape that once cost more than it should.
fn lists(lab: &Lab) -> Result<Vec<Row>, Trouble> {
    let program = build::example(lab.form, "descartes-plans", "list_scale")?;
    let shapes = Command::new(&program).output();
    let shapes = shapes.map_err(|error| format!("{}: {error}", program.display()))?;
    let shapes = String::from_utf8_lossy(&shapes.stdout).into_owned();
    let mut rows = Vec::new();
    for shape in shapes.lines() {
        let told = ask(&program, &[shape, "10000"])?;
        let number = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
        let what = format!("10,000 boxes, {shape}: recognise, read, plan, on a processor");
        let spent = (number("ms"), "ms");
        rows.push(Row::at_most(lab.form, "M11", what, spent, 100.0));
        let what = format!("10,000 boxes, {shape}: the same by section");
        let spent = (number("by_section_ms"), "ms");
        rows.push(Row::at_most(lab.form, "M11", what, spent, 100.0));
        let what = format!("10,000 boxes, {shape}: memory for it");
        let peak = (number("peak_kib") / 1024.0, "MiB");
        rows.push(Row::at_most(lab.form, "M11", what, peak, 64.0));
        let what = format!("10,000 boxes, {shape}: one tick, the text alone");
        let spent = (number("tick_ms"), "ms");
        rows.push(Row::at_most(lab.form, "M11", what, spent, 10.0));
    }
    Ok(rows)
}

/// The least of several processes, since each start of a loop is one: milliseconds and MiB.
fn plan(program: &Path, shape: &str, tasks: &str) -> Result<(f64, f64), Trouble> {
    let mut least = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        let told = ask(program, &["plan", shape, tasks])?;
        let number = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
        least = (
            least.0.min(number("ms")),
            least.1.min(number("peak_kib") / 1024.0),
        );
    }
    Ok(least)
}

fn ask(program: &Path, words: &[&str]) -> Result<Value, Trouble> {
    let out = Command::new(program).args(words).output();
    let out = out.map_err(|error| format!("{}: {error}", program.display()))?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    serde_json::from_slice(&out.stdout).map_err(|error| error.to_string())
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_f64).collect()
}

/// What two synced writes of half a megabyte cost here: nobody changes such a file for less.
fn synced_writes() -> Result<f64, Trouble> {
    let said = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(said)?;
    let bytes = vec![b'x'; 700_000];
    let mut times = Vec::new();
    for _ in 0..10 {
        let since = Instant::now();
        for name in ["a", "b"] {
            let path: PathBuf = folder.path().join(name);
            std::fs::write(&path, &bytes).map_err(said)?;
            std::fs::File::open(&path)
                .and_then(|file| file.sync_data())
                .map_err(said)?;
        }
        times.push(since.elapsed().as_secs_f64() * 1e3);
    }
    Ok(stats::median(&times))
}

/// Our scheduler with a process for each task and every decision in a journal, beside `make -j2`
/// on as many targets, one after the other in turn.
fn noop(lab: &Lab, program: &Path) -> Result<Row, Trouble> {
    let tasks = lab.form.pick(1_000, 10_000);
    let what = format!("{tasks} tasks that do nothing, two at a time, from memory");
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut text = String::from("all:");
    for task in 0..tasks {
        let _ = write!(text, " t{task}");
    }
    text.push('\n');
    for task in 0..tasks {
        // As deep and as wide as the graph of ours.
        let before = match task {
            0 => String::new(),
            task => format!(" t{}", (task * 7_919 + 13) % task),
        };
        let _ = write!(text, "t{task}:{before}\n\t@true;\n");
    }
    std::fs::write(folder.path().join("Makefile"), text).map_err(|error| error.to_string())?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..lab.form.pick(1, 3) {
        let since = Instant::now();
        let made = Command::new("make")
            .args(["-s", "-j2"])
            .current_dir(&folder)
            .status();
        match made {
            Ok(status) if status.success() => floor.push(since.elapsed().as_secs_f64() * 1e3),
            Ok(status) => return Err(format!("make: {status}")),
            Err(error) => return Ok(Row::cannot("M11", what, format!("no make: {error}"))),
        }
        let told = ask(program, &["noop", &tasks.to_string()])?;
        if told["done"].as_u64() != Some(tasks) {
            return Err(format!("not all were done: {told}"));
        }
        ours.push(told["seconds"].as_f64().unwrap_or(f64::NAN) * 1e3);
    }
    let mut row = Row::ratio(lab.form, "M11", what, &ours, ("`make -j2`", &floor), 2.0);
    if let Verdict::Missed(_) | Verdict::Over(_) = row.verdict {
        row.raw["note"] = "load beside it counts twice: both start processes".into();
    }
    Ok(row)
}
