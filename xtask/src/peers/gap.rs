//! M1: the gap between two agents by the agents' own stamps, beside a bare spawn.

use std::process::Stdio;

use descartes_testkit::stamp;
use serde_json::json;

use super::stage::{Stage, Work};
use super::tool::Tool;
use super::{Cell, row};
use crate::lab::stats::{median, ms, quantile};
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const WORK: &str = "gap between two agents, p50 (p99)";

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (turns, iterations) = lab.form.pick((2, 8), (6, 25));
    let mut floor = Vec::new();
    let mut seen: Vec<Vec<f64>> = vec![Vec::new(); Tool::ALL.len()];
    for turn in 0..turns {
        floor.extend(bare(lab, iterations)?);
        for step in 0..Tool::ALL.len() {
            // There and back again, so that no tool always comes after the same one.
            let index = if turn % 2 == 0 {
                step
            } else {
                Tool::ALL.len() - 1 - step
            };
            let tool = Tool::ALL[index];
            if tool.missing().is_none() {
                seen[index].extend(gaps(lab, tool, iterations)?);
            }
        }
    }
    let floor = median(&floor);
    let rows = Tool::ALL.into_iter().zip(&seen);
    Ok(rows.map(|(tool, gaps)| one(tool, gaps, floor)).collect())
}

fn one(tool: Tool, gaps: &[f64], floor: f64) -> Row {
    let cell = match tool.missing() {
        Some(why) => Cell::Cannot(why),
        None if gaps.is_empty() => Cell::Cannot("no second iteration was seen".to_owned()),
        None => Cell::Seen(format!(
            "{:.1} ms ({:.1})",
            median(gaps),
            quantile(gaps, 0.99)
        )),
    };
    let mut row = row("M1", WORK, tool, gaps.len() as u64, cell);
    if !gaps.is_empty() {
        row.ratio = Some(median(gaps) / floor);
        row.floor = format!("bare spawn {floor:.2} ms");
    }
    row.raw["ours_ms"] = json!(gaps);
    row.raw["pause"] = json!(tool.pause());
    row
}

fn gaps(lab: &Lab, tool: Tool, iterations: u32) -> Result<Vec<f64>, Trouble> {
    let stage = Stage::new(lab, tool)?;
    let work = Work::new("read-stdin-to got\nprint working", iterations);
    let ended = stage.trial.run(stage.begin(&work))?;
    let gaps = stamp::gaps_ns(&stage.stamps());
    if gaps.len() + 1 < iterations as usize {
        return Err(format!("{}: {} gaps; {ended}", tool.name(), gaps.len()));
    }
    Ok(gaps.into_iter().map(ms).collect())
}

/// Spawn and wait, and nothing else.
fn bare(lab: &Lab, iterations: u32) -> Result<Vec<f64>, Trouble> {
    let trial = Trial::new(lab);
    for _ in 0..iterations {
        let mut agent = trial.world.command(&lab.agent);
        agent
            .env("SCRIPTED_AGENT", "print working;;stamp stamps")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        agent.status().map_err(|error| error.to_string())?;
    }
    let gaps = stamp::gaps_ns(&stamp::read(&trial.path("stamps")));
    Ok(gaps.into_iter().map(ms).collect())
}
