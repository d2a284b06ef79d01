//! Attempts without end in one process: whatever an attempt opens is given back when it is over.

use std::time::Duration;

use serde_json::json;

use super::kills::repository;
use crate::lab::{Form, Lab, Row, Rows, Trial, Trouble, Verdict, stats};

const TASKS: u64 = 20;
/// What an attempt may take on a busy machine.
const AN_ATTEMPT: Duration = Duration::from_millis(600);
const MEMORY: &str = "KiB of memory";
/// The task in the middle: alone in the process, as the last one is.
const MIDDLE: u64 = TASKS / 2;
/// What the counts may differ by between the attempts of these two: the helper of one more worktree, which
/// was not needed before. One that is lost in every fifth attempt between them is more, in the short form too.
const SLACK: f64 = 8.0;
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
type Counts = [Vec<f64>; 3];

/// The attempts of the middle task and those of the last. Nothing else is under way in either: what attempts
/// beside them hold for the moment is no growth. Nor are the pools that the tasks before the middle filled.
struct Seen {
    early: Counts,
    late: Counts,
}

/// The middle task after all before it and before all others; the last one after them all.
fn before(task: u64) -> Vec<u64> {
    match task {
        1..MIDDLE => Vec::new(),
        MIDDLE => (1..MIDDLE).collect(),
        TASKS => (MIDDLE + 1..TASKS).collect(),
        _ => vec![MIDDLE],
    }
}

fn one_loop(lab: &Lab, attempts: u64, flags: &[&str]) -> Result<Seen, Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 20, TASKS, before)?;
    let root = trial.world.root().display().to_string();
    // Its parent is the guard, whose parent is the host. Every attempt of a task but its last is red.
    let script = format!(
        "read _ _ _ host _ < /proc/$PPID/stat\n\
         memory=$(sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$host/status)\n\
         seen='{root}/seen-'$DESCARTES_TASK_ID\n\
         echo $(ls /proc/$host/fd | wc -l) $(ls /proc/$host/task | wc -l) $memory >> $seen\n\
         echo $$ > work-$DESCARTES_TASK_ID\n\
         if [ $(wc -l < $seen) -lt {attempts} ]; then echo $$ > red; else rm -f red; fi\n\
         echo '<promise>COMPLETE</promise>'\n"
    );
    let script = trial.world.script(&script);
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let each = attempts.to_string();
    let mut command = trial.descartes(&["loop", "start", "--scud-tag", "big", "--command", &agent]);
    command.args(["--verify", "test ! -e red"]);
    command.args(["--max-iterations-per-task", &each]);
    command.args(["--max-iterations", &(TASKS * attempts * 2).to_string()]);
    command.args(flags);
    let ended = trial.run_within(command, AN_ATTEMPT * (TASKS * attempts) as u32)?;
    let seen = |task: u64| -> Vec<Vec<f64>> {
        let seen = std::fs::read_to_string(format!("{root}/seen-{task}")).unwrap_or_default();
        seen.lines()
            .map(|line| line.split(' ').filter_map(|n| n.parse().ok()).collect())
            .filter(|row: &Vec<f64>| row.len() == 3)
            .collect()
    };
    let (made, wanted) = (
        (1..=TASKS).map(|task| seen(task).len() as u64).sum::<u64>(),
        TASKS * attempts,
    );
    if ended.code() != Some(0) || made != wanted {
        return Err(format!("{made} of {wanted} attempts; {ended}"));
    }
    let counts = |task| [0, 1, 2].map(|at| seen(task).iter().map(|row| row[at]).collect());
    Ok(Seen {
        early: counts(MIDDLE),
        late: counts(TASKS),
    })
}

impl Seen {
    /// What is left open fails in every form; memory is judged in the long one.
    fn row(&self, form: Form, what: String, tried: u64) -> Row {
        let names = ["descriptors", "threads", MEMORY];
        let slack = [SLACK, SLACK, SLACK_KIB];
        let (mut words, mut open, mut memory) = (Vec::new(), Vec::new(), None);
        let values = self.early.iter().zip(&self.late);
        for (((early, late), name), slack) in values.zip(names).zip(slack) {
            let (early, late) = (stats::median(early), stats::median(late));
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
        row.raw = json!({
            "descriptors": [self.early[0], self.late[0]],
            "threads": [self.early[1], self.late[1]],
            "kib": [self.early[2], self.late[2]],
        });
        row
    }
}
