//! `docs/measurements.md`, out of the rows of the last long runs.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use super::machine;
use crate::shell::root;

/// The order of the page: what costs users money comes first.
const SECTIONS: [(&str, &str, &str); 13] = [
    (
        "stop",
        "Stopping",
        "From the request until every process of the loop is gone, with agents that go when asked and agents that do not. The recorded reason and the exit code must be the true ones. The floor is a kill of the same processes by hand.",
    ),
    (
        "promise",
        "After the promise, and after the exit",
        "An agent that says it is done and then stays silent, and an agent that is gone while its child holds the pipe. The floor is the grace itself, or a bare wait for the agent.",
    ),
    (
        "orphans",
        "Orphans",
        "Eight shapes of agents that leave processes behind, and seven ways to end; survivors are counted two seconds later.",
    ),
    (
        "kills",
        "Killed at any instant",
        "SIGKILL of descartes at random instants, and a resume each time. No finished iteration may be lost or repeated, no number used again.",
    ),
    (
        "writes",
        "Killed and failing at every write",
        "A build with fault points: the process is killed before, or in the middle of, the Nth write; or that write fails. Then it is resumed.",
    ),
    (
        "storage",
        "Disks and folders",
        "A real full disk, a read-only folder, and agents that clean up too much.",
    ),
    (
        "damage",
        "Damaged files",
        "State file and journal cut short and with single bits turned, then resumed.",
    ),
    (
        "gates",
        "Gate integrity",
        "Agents that would rather change the gate than the code.",
    ),
    ("inputs", "Strange input", "Prompts, sockets, crowds."),
    (
        "output",
        "Output",
        "Bytes in the logs against bytes sent, speed against a bare pump to the same disk, and memory.",
    ),
    (
        "history",
        "Long histories",
        "What the next iteration costs after 100,000 of them.",
    ),
    (
        "tasks",
        "Graphs of tasks",
        "Ten thousand tasks and more, schedules against a list schedule, hosts killed at random instants while tasks run in worktrees, and the real scud beside a running loop.",
    ),
    (
        "overhead",
        "Overhead",
        "The gap between two agents by the agents' own stamps, idle cost, start, size.",
    ),
];

/// Which files of rows belong to a section that has more than one measure.
fn files(section: &str) -> &[&str] {
    match section {
        "overhead" => &["gap", "idle", "peers"],
        "tasks" => &["task-scale", "task-schedule", "task-kills", "scud"],
        "stop" => &["stop"],
        "promise" => &["promise"],
        "orphans" => &["orphans"],
        "kills" => &["kills"],
        "writes" => &["writes"],
        "storage" => &["storage"],
        "damage" => &["damage"],
        "gates" => &["gates"],
        "inputs" => &["inputs"],
        "output" => &["output"],
        _ => &["history"],
    }
}

fn rows(name: &str) -> Vec<Value> {
    let path = root().join(format!("target/measurements/{name}.long.jsonl"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn cell(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    text.replace('|', "\\|").replace('\n', " ")
}

fn line(row: &Value) -> String {
    let ratio = row["ratio"]
        .as_f64()
        .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
    let why = match row["why"].as_str() {
        Some("") | None => String::new(),
        Some(why) => format!(": {}", cell(&Value::from(why))),
    };
    format!(
        "| {} | {} | {} | {} | {} | {ratio} | {} | {}{why} |\n",
        cell(&row["measure"]),
        cell(&row["what"]),
        row["tried"],
        cell(&row["ours"]),
        cell(&row["floor"]),
        cell(&row["bar"]),
        cell(&row["verdict"]),
    )
}

/// Writes the page; sections that were never measured in the long form are left out.
pub fn write() -> Result<(), String> {
    let mut page = String::from(
        "# Measurements\n\nWritten by `cargo xtask bench` and `cargo xtask faults`; every number was seen in such a run. \
         All of it goes through the real binary and real processes. One scripted agent drives everything and stamps its own start and end, so that all times come from one clock. \
         Each measure has a floor that was measured in the same run; the ratio is ours against it. Raw rows are in `target/measurements/*.jsonl`.\n\n",
    );
    let loads: Vec<f64> = SECTIONS
        .iter()
        .flat_map(|(key, ..)| files(key).iter().flat_map(|name| rows(name)))
        .filter_map(|row| row["load"].as_f64())
        .collect();
    let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = loads.iter().copied().fold(0.0, f64::max);
    let _ = writeln!(
        page,
        "Measured on {}, commit {}, load average {least:.1} to {most:.1} while it ran.\n",
        machine::describe(),
        machine::commit()
    );
    for (key, title, how) in SECTIONS {
        let found: Vec<Value> = files(key).iter().flat_map(|name| rows(name)).collect();
        if found.is_empty() {
            continue;
        }
        let _ = write!(page, "## {title}\n\n{how}\n\n");
        page.push_str("| | what | tried | seen | floor | ratio | bar | verdict |\n|---|---|---|---|---|---|---|---|\n");
        page.extend(found.iter().map(line));
        page.push('\n');
    }
    let path = root().join("docs/measurements.md");
    fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
