//! What was seen, a row a case.

use std::time::Duration;

use crate::lab::{Form, Row, Verdict, machine, row};
use crate::shell::Step;

/// All cases so far.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Row>,
    load: f64,
}

impl Table {
    /// None yet, on a machine that has so much to do besides.
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            load: machine::load(),
        }
    }

    /// Adds a case: what was seen, or what was wrong.
    pub fn add(&mut self, agent: &'static str, case: &str, seen: Result<String, String>) {
        self.judged(agent, case, seen, Verdict::Met);
    }

    /// Adds a case with a time or a cost, and the verdict on that; what was wrong comes before it.
    pub fn judged(
        &mut self,
        agent: &'static str,
        case: &str,
        seen: Result<String, String>,
        cost: Verdict,
    ) {
        let mark = match (&seen, &cost) {
            (Err(_), _) | (_, Verdict::Missed(_)) => "MISS",
            (_, Verdict::Over(_)) => "over",
            _ => "ok",
        };
        let (Ok(told) | Err(told)) = &seen;
        println!("  {mark:4} {agent:8} {case:22} {told}");
        let lost: Vec<String> = seen.as_ref().err().cloned().into_iter().collect();
        let mut row = Row::count("agents", format!("{agent}: {case}"), 1, &lost);
        row.ours = seen.unwrap_or_else(|_| "missed".to_owned());
        "–".clone_into(&mut row.floor);
        "as it should be".clone_into(&mut row.bar);
        if row.verdict == Verdict::Met {
            row.verdict = cost;
        }
        self.rows.push(row);
    }

    /// Keeps the rows, and fails when a case missed its bar.
    pub fn finish(self, form: Form) -> Step {
        row::keep_beside(form, "agents", &self.rows, self.load)?;
        let missed: Vec<&str> = self
            .rows
            .iter()
            .filter(|row| matches!(row.verdict, Verdict::Missed(_)))
            .map(|row| row.what.as_str())
            .collect();
        println!("{} cases, {} missed", self.rows.len(), missed.len());
        match missed.is_empty() {
            true => Ok(()),
            false => Err(format!("missed: {}", missed.join(", "))),
        }
    }
}

/// Seconds for people.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
