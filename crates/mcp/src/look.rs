//! Tools that only look: through `client`, without a process of their own, so that they answer at once.

use std::ops::ControlFlow;
use std::path::Path;

use descartes_agents::reader::Source;
use descartes_client::logs::LogPosition;
use descartes_client::{Children, From, Look, LoopHandle, Loops, Query, Scope, json};
use descartes_views::view::{Life, status_block};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::answer::ToolFailure;
use crate::calls::ListCall;

/// Loops in a list.
const MOST_LOOPS: usize = 100;
/// Iterations that a status tells of; the history has the others.
const SUMMARIES: usize = 3;
/// Bytes of a log that are read for its last lines.
const LOG_BYTES: usize = 64 << 10;

/// The loop that is meant; without a name the one of the folder.
pub fn find(loops: &Loops, folder: &Path, target: Option<&str>) -> Result<LoopHandle, ToolFailure> {
    let query = match target.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => Query::Named(name.to_owned()),
        None => Query::Here(folder.to_owned()),
    };
    loops.find(&query).map_err(|error| {
        let hint = "name a loop that `list` shows, or start one with `start`";
        ToolFailure::new(error.to_string(), hint)
    })
}

pub fn status(found: &LoopHandle) -> Result<Value, ToolFailure> {
    Ok(status_of(found, &found.look()?))
}

/// As `descartes loop status --json`, with fewer iterations: a model pays for every word.
pub fn status_of(found: &LoopHandle, look: &Look) -> Value {
    let mut value = json::status(found, look);
    if let Some(all) = value["iteration_summaries"].as_array_mut() {
        all.drain(..all.len().saturating_sub(SUMMARIES));
    }
    value
}

/// A page for people says the same; here are its first lines.
pub fn summary(found: &LoopHandle) -> Result<String, ToolFailure> {
    let look = found.look()?;
    Ok(status_block(&look.state, look.life, Timestamp::now()))
}

pub fn list(loops: &Loops, folder: &Path, call: ListCall) -> Result<Value, ToolFailure> {
    let scope = match call.all {
        true => Scope::All,
        false => Scope::Of(folder.to_owned()),
    };
    let children = match call.children {
        true => Children::Listed,
        false => Children::Folded,
    };
    let found = loops.heads(&scope, children)?;
    let shown = found.iter().take(MOST_LOOPS);
    let rows: Vec<Value> = shown.map(json::list_entry).collect();
    Ok(json!({ "left_out": found.len() - rows.len(), "loops": rows }))
}

/// How many loops run that belong to no other.
pub fn running(loops: &Loops) -> Result<usize, ToolFailure> {
    let heads = loops.heads(&Scope::All, Children::Folded)?;
    let alive = |found: &&LoopHandle| found.life().is_ok_and(|life| life == Life::Alive);
    Ok(heads.iter().filter(alive).count())
}

pub fn history(found: &LoopHandle, last: u32) -> Result<Value, ToolFailure> {
    let mut rows = Vec::new();
    let row = |row| serde_json::to_value(row).unwrap_or_default();
    let current = found.history(From::Last(last.into()), |one| {
        rows.push(row(one));
        ControlFlow::Continue(())
    })?;
    rows.extend(current.map(row));
    rows.extend(found.attempts_at_work()?.into_iter().map(row));
    Ok(json!({ "loop_id": found.id(), "iterations": rows }))
}

pub fn logs(
    found: &LoopHandle,
    iteration: Option<u32>,
    lines: u32,
    source: Source,
) -> Result<Value, ToolFailure> {
    // A task loop has no output of its own: that of the task that is worked on, or was last.
    let of_tasks = found.state()?.config.tasks.is_some();
    let child = match of_tasks {
        true => found.newest_child()?,
        false => None,
    };
    let found = child.as_ref().unwrap_or(found);
    let log = found.log(iteration)?;
    let window = log.window(source, LogPosition::End, LOG_BYTES)?;
    let skip = window.lines.len().saturating_sub(lines as usize);
    let cut = window.begin > 0 || skip > 0;
    let text: Vec<String> = window
        .lines
        .into_iter()
        .skip(skip)
        .map(|line| line.text)
        .collect();
    Ok(json!({
        "loop_id": found.id(),
        "task": found.task(),
        "iteration": log.iteration,
        "stream": match source { Source::Stdout => "stdout", Source::Stderr => "stderr" },
        "cut": cut,
        "text": text.join("\n"),
    }))
}
