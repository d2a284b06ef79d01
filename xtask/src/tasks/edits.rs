//! A person edits the list while its tasks run, and agents do not let themselves be ended: no slot has
//! two agents, nothing lands that was not proven, no box is ticked for what did not run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble};

const TASKS: u64 = 6;
const EDITS: u64 = 14;
const LIMIT: Duration = Duration::from_secs(240);

/// It notes in which slot it is, works for up to two seconds, and goes on writing for four more when it is
/// to end.
const AGENT: &str = r#"
SLOT="$ROOT/in-$(basename "$PWD")"
mkdir "$SLOT" || echo "$DESCARTES_TASK_ID met another agent in $SLOT" >> "$ROOT/clashes"
late() {
    for n in 1 2 3 4 5 6 7 8; do echo late >> "late-$DESCARTES_TASK_ID"; sleep 0.5; done
    rmdir "$SLOT"
    exit 0
}
trap late TERM
n=$(($$ % 20))
while [ $n -gt 0 ]; do n=$((n - 1)); sleep 0.1; done
echo "$DESCARTES_TASK_ID" > "work-$DESCARTES_TASK_ID"
echo "$DESCARTES_TASK_ID" >> "$ROOT/ran"
rmdir "$SLOT"
echo '<promise>COMPLETE</promise>'
"#;

/// Takes it.
pub fn take(lab: &Lab) -> Rows {
    let (wanted, at_once) = lab.form.pick((3, 3), (200, 16));
    let next = AtomicU64::new(0);
    let lost = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let world = next.fetch_add(1, Ordering::SeqCst);
                    if world >= wanted {
                        return;
                    }
                    let seed = lab.seed.wrapping_add(world);
                    if let Err(trouble) = one_world(lab, seed) {
                        let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
                        lost.push(format!("seed {seed}: {trouble}"));
                    }
                }
            });
        }
    });
    let lost = lost.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what = "lists edited under way, with agents that write for 4 s after SIGTERM";
    Ok(vec![Row::count("tasks", what, wanted, &lost)])
}

fn one_world(lab: &Lab, seed: u64) -> Result<(), Trouble> {
    let mut chance = Chance::new(seed);
    let trial = Trial::new(lab);
    let lines: Vec<String> = (1..=TASKS).map(|task| line(&format!("t{task}"))).collect();
    trial.world.git_init();
    trial.world.write(
        "ROADMAP.md",
        format!("# Roadmap\n\n## Tasks\n{}\n", lines.join("\n")),
    );
    trial.world.git(["add", "."]);
    trial.world.git(["commit", "--quiet", "--message", "tasks"]);
    let before = files(&trial);
    let root = trial.world.root();
    let script = format!("ROOT={}\n{AGENT}", root.display());
    let script = trial.world.script(&script);
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let mut command = trial.descartes(&["roadmap", "run", "ROADMAP.md", "--command", &agent]);
    command.args(["--parallel", "3", "--verify", "true"]);
    if chance.below(2) == 0 {
        command.arg("--no-wave-barrier");
    }
    let mut host = trial.spawn(command)?;
    let list = trial.path("ROADMAP.md");
    let (mut gone, mut added) = (Vec::new(), 0);
    for _ in 0..EDITS {
        std::thread::sleep(Duration::from_millis(200 + chance.below(900)));
        edit(&list, &mut chance, &mut gone, &mut added)?;
    }
    let code = host.code_within(LIMIT)?;
    if code != 0 && code != 6 {
        return Err(format!("the loop ended with {code}"));
    }
    judge(&trial, &list, &before)
}

/// Files of the last commit on the person's branch.
fn files(trial: &Trial<'_>) -> BTreeSet<String> {
    let names = trial.world.git(["ls-tree", "-r", "--name-only", "HEAD"]);
    names.lines().map(str::to_owned).collect()
}

fn line(id: &str) -> String {
    format!("- [ ] **{id}**: Work")
}

/// One edit of the list, as an editor makes it: all of it is written.
fn edit(
    list: &Path,
    chance: &mut Chance,
    gone: &mut Vec<String>,
    added: &mut u64,
) -> Result<(), Trouble> {
    let text = fs::read_to_string(list).map_err(|error| error.to_string())?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_open = |line: &&String| line.starts_with("- [ ]");
    let open = lines.iter().filter(is_open).count() as u64;
    if open < 2 {
        return Ok(());
    }
    let mut places = (0..lines.len()).filter(|at| lines[*at].starts_with("- [ ]"));
    let at = places.nth(chance.below(open) as usize).unwrap_or(0);
    let mut new_name = || {
        *added += 1;
        format!("n{added}")
    };
    match chance.below(5) {
        0 => gone.push(lines.remove(at)),
        1 => lines[at] = line(&new_name()),
        2 => lines.insert(at, line(&new_name())),
        3 => lines.swap(at, 3),
        _ => match gone.pop() {
            // Somebody may have ticked it or written it again meanwhile.
            Some(back) if !lines.contains(&back) && !lines.contains(&ticked(&back)) => {
                lines.push(back)
            }
            _ => lines[at].push('!'),
        },
    }
    let beside = list.with_extension("new");
    fs::write(&beside, lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    fs::rename(&beside, list).map_err(|error| error.to_string())
}

fn ticked(line: &str) -> String {
    line.replacen("[ ]", "[x]", 1)
}

/// What must never be, and is.
fn judge(trial: &Trial<'_>, list: &Path, before: &BTreeSet<String>) -> Result<(), Trouble> {
    let read = |name: &str| fs::read_to_string(trial.world.root().join(name)).unwrap_or_default();
    let clashes = read("clashes");
    if !clashes.is_empty() {
        return Err(format!("two agents in a slot: {clashes}"));
    }
    let ran = read("ran");
    let ran: BTreeSet<&str> = ran.lines().collect();
    for name in files(trial).difference(before) {
        // A task that came back goes on with what its first agent left, and proves all of it.
        let task = name.strip_prefix("work-").or(name.strip_prefix("late-"));
        if !task.is_some_and(|task| ran.contains(task)) {
            return Err(format!("{name} landed, and nobody proved it"));
        }
    }
    let text = fs::read_to_string(list).map_err(|error| error.to_string())?;
    for line in text.lines() {
        let task = line
            .strip_prefix("- [x] **")
            .and_then(|rest| rest.split('*').next());
        if let Some(task) = task.filter(|task| !ran.contains(task)) {
            return Err(format!("{task} is ticked, and did not run"));
        }
    }
    Ok(())
}
