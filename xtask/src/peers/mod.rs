//! `cargo xtask peers`: other loops on the same work, as they come from their registries.
//!
//! One scripted agent drives every tool, under the name of an agent that each of them knows, and
//! stamps its own start and end. Nothing of a peer is changed; a wait that a flag sets is set to
//! its least. What is not installed is said to be so; tests never need any of them.

pub mod completion;
pub mod gap;
pub mod install;
pub mod recovery;
pub mod stage;
pub mod stops;
pub mod tool;

use serde_json::json;

use crate::lab::build::{self, Faults};
use crate::lab::{self, Lab, Measure, Row, Rows, Trouble, Verdict};
use stage::Stage;
pub use tool::Tool;

const MEASURES: &[Measure] = &[
    Measure {
        name: "peers-false",
        about: "what is called done and is not (M4)",
        take: completion::false_claims,
    },
    Measure {
        name: "peers-missed",
        about: "what is done and goes unheard (M4, M5)",
        take: completion::missed,
    },
    Measure {
        name: "peers-stops",
        about: "signals: until when, and who is left (M6, M7)",
        take: stops::take,
    },
    Measure {
        name: "peers-recovery",
        about: "killed and started again (M8)",
        take: recovery::take,
    },
    Measure {
        name: "peers-gap",
        about: "from the end of one agent to the start of the next (M1)",
        take: gap::take,
    },
];

/// `peers [--install] [--short] [MEASURE…]`.
pub fn run(rest: &[String]) -> Result<(), String> {
    if let Some((_, names)) = rest.split_first().filter(|(word, _)| *word == "--install") {
        return install::install(names);
    }
    let (form, wanted) = lab::wanted(rest, MEASURES)?;
    let lab = build::lab(form, Faults::Not)?;
    lab::take(&lab, MEASURES, &wanted)
}

/// What a tool did with a piece of work.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// As it should be; in words.
    Right(String),
    /// Not so.
    Wrong(String),
    /// A number without a judgement.
    Seen(String),
    /// It has no means to do the work, and why.
    Cannot(String),
}

/// One row: this tool, this work.
pub fn row(measure: &'static str, work: &str, tool: Tool, tried: u64, cell: Cell) -> Row {
    let (mark, words) = match &cell {
        Cell::Right(words) => ("right", words),
        Cell::Wrong(words) => ("wrong", words),
        Cell::Seen(words) => ("seen", words),
        Cell::Cannot(words) => ("cannot", words),
    };
    let mut row = Row::count(measure, format!("{}: {work}", tool.name()), tried, &[]);
    row.ours = words.clone();
    row.floor = "–".to_owned();
    row.bar = "–".to_owned();
    row.raw = json!({ "work": work, "tool": tool.name(), "mark": mark, "cell": words });
    row.verdict = match cell {
        Cell::Cannot(why) => Verdict::Cannot(why),
        // Peers are shown; only our own are held to it.
        Cell::Right(_) if tool == Tool::Descartes => Verdict::Met,
        Cell::Wrong(words) if tool == Tool::Descartes => Verdict::Missed(words),
        _ => Verdict::Shown,
    };
    row
}

/// Does one piece of work with every tool, there and back again.
pub fn with_all(
    lab: &Lab,
    measure: &'static str,
    work: &str,
    rounds: u64,
    once: impl Fn(&Stage<'_>) -> Result<Cell, Trouble>,
) -> Rows {
    let mut seen: Vec<(Tool, Vec<Cell>)> =
        Tool::ALL.iter().map(|tool| (*tool, Vec::new())).collect();
    for round in 0..rounds {
        let turn = |index: usize| match round % 2 {
            0 => index,
            _ => Tool::ALL.len() - 1 - index,
        };
        for index in (0..Tool::ALL.len()).map(turn) {
            let (tool, cells) = &mut seen[index];
            cells.push(match tool.missing() {
                Some(why) => Cell::Cannot(why),
                None => once(&Stage::new(lab, *tool)?)
                    .map_err(|trouble| format!("{}: {work}: {trouble}", tool.name()))?,
            });
        }
    }
    Ok(seen
        .into_iter()
        .map(|(tool, cells)| row(measure, work, tool, rounds, worst(cells)))
        .collect())
}

/// Of several, the one that speaks against the tool most.
fn worst(cells: Vec<Cell>) -> Cell {
    let rank = |cell: &Cell| match cell {
        Cell::Wrong(_) => 3,
        Cell::Cannot(_) => 2,
        Cell::Seen(_) => 1,
        Cell::Right(_) => 0,
    };
    let last = |a: &Cell, b: &Cell| rank(a).cmp(&rank(b));
    cells
        .into_iter()
        .max_by(last)
        .unwrap_or_else(|| Cell::Cannot("not tried".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_round_is_what_is_shown() {
        let (right, wrong) = (Cell::Right("ok".into()), Cell::Wrong("fooled".into()));
        assert_eq!(
            worst(vec![right.clone(), wrong.clone(), right.clone()]),
            wrong
        );
        assert_eq!(worst(vec![right.clone(), right.clone()]), right);
    }

    #[test]
    fn only_our_own_rows_are_judged() {
        let cell = || Cell::Wrong("fooled".into());
        let ours = row("M4", "echo", Tool::Descartes, 1, cell());
        let theirs = row("M4", "echo", Tool::Bash, 1, cell());
        assert!(matches!(ours.verdict, Verdict::Missed(_)));
        assert_eq!(theirs.verdict, Verdict::Shown);
    }
}
