//! M-parse: how quickly streams are read, on one core, and in how much memory. The measuring
//! itself is a test of `agents`, which is run here as it is built for users.

use std::process::Command;

use crate::lab::{Lab, Row, Rows};
use crate::shell::root;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let profile = lab.form.pick("ci", "release");
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--profile", profile]);
    // The short form takes it as it was built with all tests.
    let package = ["--package", "descartes-agents"];
    cargo.args(lab.form.pick(&["--workspace"][..], &package[..]));
    cargo.args(["--test", "agent_speed"]);
    cargo.args(["--", "--ignored", "--nocapture"]);
    let output = cargo.current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Row> = said
        .lines()
        .filter_map(read)
        .flat_map(|seen| rows(lab, &seen))
        .collect();
    match rows.is_empty() {
        true => Err(format!("nothing was measured: {said}")),
        false => Ok(rows),
    }
}

/// What was seen of one parser.
#[derive(Debug, PartialEq)]
struct Seen<'a> {
    agent: &'a str,
    rate: f64,
    grown: f64,
}

/// `claude: 312 MB/s, 0.1 MiB more memory, 9000 events`.
fn read(line: &str) -> Option<Seen<'_>> {
    let (agent, rest) = line.split_once(": ")?;
    let (rate, rest) = rest.split_once(" MB/s, ")?;
    let (grown, _) = rest.split_once(" MiB more memory")?;
    Some(Seen {
        agent,
        rate: rate.parse().ok()?,
        grown: grown.parse().ok()?,
    })
}

fn rows(lab: &Lab, seen: &Seen<'_>) -> [Row; 2] {
    let Seen { agent, rate, grown } = seen;
    let time = (1e5 / rate, "ms");
    let what = format!("{agent}: 100 MB of its stream on one core (bar: 200 MB/s)");
    let memory = format!("{agent}: memory that grows with 200 MB of its stream");
    [
        Row::at_most(lab.form, "M-parse", what, time, 500.0),
        Row::at_most(lab.form, "M-parse", memory, (*grown, "MiB"), 8.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_words_are_read() {
        let seen = read("claude: 312 MB/s, 0.5 MiB more memory, 9000 events");
        let want = Seen {
            agent: "claude",
            rate: 312.0,
            grown: 0.5,
        };
        assert_eq!(seen, Some(want));
        assert_eq!(read("test result: ok. 1 passed"), None);
    }
}
