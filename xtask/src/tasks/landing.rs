//! Landing: many quick runs, and hosts killed while work comes together.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::kills::{remove_dead_lock, repository};
use crate::lab::chance::Chance;
use crate::lab::{Lab, Row, Rows, Trial, Trouble, kept};

const TASKS: u64 = 12;
/// More of them use up the iterations of a loop: each takes those that were under way.
const KILLS_A_LOOP: u64 = 12;
const PROMISE: &str = "<promise>COMPLETE</promise>";

/// Quick agents in eight slots: whatever is blocked, we blocked ourselves.
pub fn runs(lab: &Lab) -> Rows {
    let wanted = lab.form.pick(4, 200);
    let variants: [(&str, &[&str]); 2] = [
        ("with wave barrier", &[]),
        ("without wave barrier", &["--no-wave-barrier"]),
    ];
    let mut rows = Vec::new();
    for (name, flags) in variants {
        let results = (0..wanted).map(|_| one_run(lab, flags));
        let lost: Vec<String> = results.filter_map(Result::err).collect();
        let what = format!("{TASKS} quick tasks, --parallel 8, {name}");
        rows.push(Row::count("tasks", what, wanted, &lost));
    }
    Ok(rows)
}

fn one_run(lab: &Lab, flags: &[&str]) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    // Two waves, so that the second begins while the first still lands where there is no barrier.
    repository(&trial, 20, TASKS, |task| {
        task.checked_sub(TASKS / 2).filter(|before| *before > 0)
    })?;
    let script = format!("echo work > work-$DESCARTES_TASK_ID\necho '{PROMISE}'");
    let ended = trial.run(task_loop(&trial, &script, flags))?;
    let landed = (1..=TASKS).filter(|task| trial.path(&format!("work-{task}")).exists());
    let landed = landed.count() as u64;
    match ended.code() {
        Some(0) if landed == TASKS => Ok(()),
        _ => Err(format!("{landed} of {TASKS} landed; {ended}")),
    }
}

fn task_loop(trial: &Trial<'_>, script: &str, flags: &[&str]) -> std::process::Command {
    let script = trial.world.script(script);
    let agent = shell_words::join(["sh", &script.to_string_lossy()]);
    let mut command = trial.descartes(&[
        "loop",
        "start",
        "--scud-tag",
        "big",
        "--command",
        &agent,
        "--parallel",
        "8",
        "--verify",
        "true",
    ]);
    command.args(flags);
    command
}

/// SIGKILL of the host at random instants; nothing that an agent or the person made may be found nowhere.
pub fn kills(lab: &Lab) -> Rows {
    let wanted = lab.form.pick(6, 300);
    let (mut kills, mut worlds, mut lost) = (0, 0, Vec::new());
    while kills < wanted && lost.is_empty() {
        let seed = lab.seed.wrapping_add(worlds);
        match one_world(lab, seed, (wanted - kills).min(KILLS_A_LOOP)) {
            Ok(done) => kills += done,
            Err(trouble) => lost.push(format!("seed {seed}: {trouble}")),
        }
        worlds += 1;
    }
    let what =
        "SIGKILL in mid-landing, with nested repositories, submodules and a person's commits";
    let mut row = Row::count("tasks", what, kills, &lost);
    row.ours = format!("{} lost; {worlds} loops", lost.len());
    Ok(vec![row])
}

/// A third of the tasks make what git cannot carry.
const AGENT: &str = r#"
text="precious work of task $DESCARTES_TASK_ID;"
case $((DESCARTES_TASK_ID % 6)) in
3) mkdir -p app-$DESCARTES_TASK_ID && cd app-$DESCARTES_TASK_ID && { [ -d .git ] || git init -q .; }
   echo "$text" > file && git add . && git commit -q -m inner ;;
5) git -c protocol.file.allow=always submodule --quiet update --init library && cd library
   echo "$text" > "inner-$DESCARTES_TASK_ID" && git add . && git commit -q -m inner ;;
*) echo "$text" > "work-$DESCARTES_TASK_ID" ;;
esac
echo "$DESCARTES_TASK_ID" >> "$WRITTEN"
echo '<promise>COMPLETE</promise>'
"#;

fn one_world(lab: &Lab, seed: u64, most: u64) -> Result<u64, Trouble> {
    let mut chance = Chance::new(seed);
    let trial = Trial::new(lab);
    repository(&trial, 20, TASKS, |task| {
        task.checked_sub(4).filter(|before| *before > 0)
    })?;
    shell(
        &trial,
        "git init -q ../library && cd ../library && echo one > one && git add . && git commit -qm one\n\
        cd ../project && git -c protocol.file.allow=always submodule --quiet add ../library library && git commit -qm submodule",
    )?;
    let written = trial.world.root().join("written.log");
    let script = format!("WRITTEN={}\n{AGENT}", written.display());
    let barrier: &[&str] = if chance.below(2) == 0 {
        &[]
    } else {
        &["--no-wave-barrier"]
    };
    let (mut kills, mut commits) = (0, 0);
    loop {
        let command = match trial.state_file().exists() {
            true => trial.descartes(&["loop", "resume"]),
            false => task_loop(&trial, &script, barrier),
        };
        let mut host = trial.spawn(command)?;
        if kills < most {
            let wait = Duration::from_millis(100 + chance.below(1_500));
            if host.wait_at_most(wait).is_none() {
                host.signal(Signal::SIGKILL);
                kills += 1;
            }
        }
        let code = host.code_within(Duration::from_secs(300))?;
        remove_dead_lock(&trial);
        check(&trial, &written).map_err(|what| {
            let kept = kept::keep_world(&trial, &format!("landing-kills-{seed}"));
            format!("after {kills} kills: {what}; {kept}")
        })?;
        match code {
            0 | 6 => return Ok(kills),
            137 => {}
            // The guards of the one before still sweep.
            65 | 1 => std::thread::sleep(Duration::from_millis(300)),
            other => return Err(format!("ended with {other} after {kills} kills")),
        }
        if chance.below(3) == 0 && commits < 6 {
            commits += 1;
            person_commits(&trial, commits)?;
        }
    }
}

fn shell(trial: &Trial<'_>, script: &str) -> Result<(), Trouble> {
    let mut command = trial.world.command("sh");
    command.args(["-ec", script]);
    let ended = trial.run(command)?;
    match ended.code() {
        Some(0) => Ok(()),
        _ => Err(format!("the case could not be prepared: {ended}")),
    }
}

/// A commit on the checked out branch, and one on every branch of ours, as far as no git that outlived its
/// host is about them: what was made is written down.
fn person_commits(trial: &Trial<'_>, number: u64) -> Result<(), Trouble> {
    let script = format!(
        "if git commit -q --allow-empty -m 'person {number}'; then echo '{number}' >> ../made.log; fi\n\
         for branch in $(git for-each-ref --format='%(refname)' refs/heads/descartes); do\n\
         if old=$(git rev-parse --verify -q $branch) \\\n\
         && new=$(git commit-tree -p $old -m 'person {number} on our branch' $old^{{tree}}) \\\n\
         && git update-ref $branch $new $old; then echo $new >> ../persons.log; fi\ndone"
    );
    shell(trial, &script)
}

/// What must be found at every instant.
fn check(trial: &Trial<'_>, written: &std::path::Path) -> Result<(), Trouble> {
    let tasks = std::fs::read_to_string(written).unwrap_or_default();
    let texts: Vec<String> = tasks
        .lines()
        .map(|task| format!("precious work of task {task};"))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let lost = kept::lost(trial, &texts);
    if let Some(text) = lost.first() {
        return Err(format!("`{text}` is found nowhere"));
    }
    let script = "git log --all --format=%s; [ ! -e ../persons.log ] || while read -r commit; do \
        [ -n \"$(git for-each-ref --contains $commit)\" ] || echo lost $commit; done < ../persons.log";
    let mut command = trial.world.command("sh");
    let ended = trial.run({
        command.args(["-c", script]);
        command
    })?;
    let text = ended.stdout();
    if let Some(line) = text.lines().find(|line| line.starts_with("lost ")) {
        return Err(format!(
            "a person's commit on a branch of ours is on no ref: {line}"
        ));
    }
    let made = std::fs::read_to_string(trial.world.root().join("made.log")).unwrap_or_default();
    let is_there = |number: &&str| {
        let subject = format!("person {number}");
        text.lines().any(|line| line == subject)
    };
    match made.lines().find(|number| !is_there(number)) {
        None => Ok(()),
        Some(number) => Err(format!("the person's commit {number} is on no ref")),
    }
}
