//! Accidents that are told one by one, each tried a few times.

use crate::lab::{Lab, Row, Trouble};

/// Ends well, or tells what was lost.
pub type Case = fn(&Lab) -> Result<(), Trouble>;

/// How the trouble of a case begins that this machine cannot have.
pub const CANNOT: &str = "cannot be done here";

/// A row for each case.
pub fn rows(
    lab: &Lab,
    measure: &'static str,
    rounds: u64,
    cases: &[(&'static str, Case)],
) -> Vec<Row> {
    cases
        .iter()
        .map(|(what, case)| row(lab, measure, rounds, what, *case))
        .collect()
}

fn row(lab: &Lab, measure: &'static str, rounds: u64, what: &'static str, case: Case) -> Row {
    let mut lost = Vec::new();
    for _ in 0..rounds {
        match case(lab) {
            Ok(()) => {}
            Err(trouble) if trouble.starts_with(CANNOT) => {
                return Row::cannot(measure, what, trouble);
            }
            Err(trouble) => lost.push(trouble),
        }
    }
    Row::count(measure, what, rounds, &lost)
}
