//! What was seen, a row a case.

use std::time::Duration;

use crate::shell::Step;

/// One case.
#[derive(Debug)]
struct Row {
    agent: &'static str,
    case: String,
    miss: bool,
}

/// All cases so far.
#[derive(Debug, Default)]
pub struct Table(Vec<Row>);

impl Table {
    /// Adds a case: what was measured, or what was wrong.
    pub fn add(&mut self, agent: &'static str, case: &str, seen: Result<String, String>) {
        let miss = seen.is_err();
        let (Ok(told) | Err(told)) = seen;
        let mark = if miss { "MISS" } else { "ok" };
        println!("  {mark:4} {agent:8} {case:22} {told}");
        let case = case.to_owned();
        self.0.push(Row { agent, case, miss });
    }

    /// Fails when a case missed its bar.
    pub fn finish(self) -> Step {
        let missed: Vec<String> = self
            .0
            .iter()
            .filter(|row| row.miss)
            .map(|row| format!("{} {}", row.agent, row.case))
            .collect();
        println!("{} cases, {} missed", self.0.len(), missed.len());
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
