//! Attempts without end in one process: whatever an attempt opens is given back when it is over.

use serde_json::json;

use super::kills::repository;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, Verdict, stats};

const TASKS: u64 = 20;
const MEMORY: &str = "KiB of memory";
/// What the counts may differ by between the beginning and the end: attempts under way come and go, each
/// with some ten descriptors. One that is lost in every fifth attempt is still more in the short form.
const SLACK: f64 = 12.0;
/// The same of memory, in KiB: what was decided is kept, a few hundred bytes an attempt.
const SLACK_KIB: f64 = 12_000.0;

/// As many attempts as were asked for, in worktrees side by side and one after the other in place.
pub fn take(lab: &Lab) -> Rows {
    let attempts = lab.form.pick(5, 100);
    let places: [(&str, &[&str]); 2] = [
        ("in worktrees, --parallel 4", &["--parallel", "4"]),
        ("in place", &["--in-place"]),
    ];
    let rows = places.map(|(name, flags)| {
        let tried = TASKS * attempts;
        let what = format!("{tried} attempts in one process, {name}");
        match one_loop(lab, attempts, flags) {
            Ok(seen) => seen.row(lab.form, what, tried),
            Err(trouble) => Row::count("tasks", what, tried, &[trouble]),
        }
    });
    Ok(rows.into())
}

/// Descriptors, threads and KiB of memory of the host, as each attempt saw them.
struct Seen([Vec<f64>; 3]);

fn one_loop(lab: &Lab, attempts: u64, flags: &[&str]) -> Result<Seen, Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 20, TASKS, |_| None)?;
    let root = trial.world.root().display().to_string();
    // Its parent is the guard, whose parent is the host. Every attempt is red, so that each task has all.
    let script = format!(
        "read _ _ _ host _ < /proc/$PPID/stat\n\
         memory=$(sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$host/status)\n\
         echo $(ls /proc/$host/fd | wc -l) $(ls /proc/$host/task | wc -l) $memory >> '{root}/seen'\n\
         echo $$ > work-$DESCARTES_TASK_ID\n"
    );
    let script = trial.world.script(&script);
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let each = attempts.to_string();
    let mut command = trial.descartes(&["loop", "start", "--scud-tag", "big", "--command", &agent]);
    command.args(["--verify", "false"]);
    command.args(["--max-iterations-per-task", &each]);
    command.args(["--max-iterations", &(TASKS * attempts * 2).to_string()]);
    command.args(flags);
    let ended = trial.run(command)?;
    let seen = std::fs::read_to_string(trial.world.root().join("seen")).unwrap_or_default();
    let rows: Vec<Vec<f64>> = seen
        .lines()
        .map(|line| line.split(' ').filter_map(|n| n.parse().ok()).collect())
        .filter(|row: &Vec<f64>| row.len() == 3)
        .collect();
    let (made, wanted) = (rows.len() as u64, TASKS * attempts);
    // All of them are blocked in the end.
    if ended.code() != Some(6) || made < wanted {
        return Err(format!("{made} of {wanted} attempts; {ended}"));
    }
    Ok(Seen(
        [0, 1, 2].map(|at| rows.iter().map(|row| row[at]).collect()),
    ))
}

impl Seen {
    /// What is left open fails in every form; memory is judged in the long one.
    fn row(&self, form: Form, what: String, tried: u64) -> Row {
        let names = ["descriptors", "threads", MEMORY];
        let slack = [SLACK, SLACK, SLACK_KIB];
        let (mut words, mut open, mut memory) = (Vec::new(), Vec::new(), None);
        for ((values, name), slack) in self.0.iter().zip(names).zip(slack) {
            let tenth = (values.len() / 10).max(1);
            // The first ones still load code and fill caches.
            let early = stats::median(&values[tenth..(3 * tenth).min(values.len())]);
            let late = stats::median(&values[values.len() - 2 * tenth..]);
            words.push(format!("{name} {early:.0} → {late:.0}"));
            if late > early + slack {
                let grown = format!("{name} grew from {early:.0} to {late:.0}");
                match name {
                    MEMORY => memory = Some(grown),
                    _ => open.push(grown),
                }
            }
        }
        let mut row = Row::count("tasks", what, tried, &open);
        row.verdict = match (open.is_empty(), memory) {
            (false, memory) => {
                open.extend(memory);
                Verdict::Missed(open.join(", "))
            }
            (true, Some(grown)) => form.judge(false, || grown),
            (true, None) => Verdict::Met,
        };
        row.ours = words.join(", ");
        row.floor = "–".to_owned();
        row.bar = "no growth".to_owned();
        row.raw = json!({ "descriptors": self.0[0], "threads": self.0[1], "kib": self.0[2] });
        row
    }
}
