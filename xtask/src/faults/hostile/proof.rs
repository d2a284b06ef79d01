//! Agents that would rather be called done than be done.

use super::super::cases::Case;
use super::super::recovery;
use super::world::{PROMISE, ensure, repository, shell, start, start_tasks};
use crate::lab::{Lab, Trial, Trouble};
use nix::sys::signal::Signal;

pub const CASES: &[(&str, Case)] = &[
    (
        "the agent changes its own gate over the control socket",
        own_gate,
    ),
    ("the agent raises its own limit", own_limit),
    (
        "the agent cancels, pauses or speaks to its loop",
        own_commands,
    ),
    (
        "a daemon of the agent's changes the gate",
        daemon_changes_gate,
    ),
    (
        "a task's agent changes the gate of the task loop",
        parent_gate,
    ),
    (
        "the agent edits the state file, and the host dies",
        edited_state,
    ),
    ("a task's agent marks the other tasks done", marks_others),
    ("a task that only works with an ignored file", ignored_file),
    ("a task that hides a file by info/exclude", excluded_file),
    (
        "a task that hides a change by assume-unchanged",
        assume_unchanged,
    ),
    ("a task that hides a change by skip-worktree", skip_worktree),
    (
        "a task that hides a change behind a clean filter",
        clean_filter,
    ),
    (
        "a task changes the script of its gate",
        changed_gate_in_task,
    ),
    (
        "an agent changes the script of its gate",
        changed_gate_in_loop,
    ),
];

/// The binary as an agent would call it that found out where our files lie.
fn descartes(trial: &Trial<'_>) -> String {
    let state = format!("DESCARTES_STATE_DIR={}", trial.world.state().display());
    let runtime = format!("XDG_RUNTIME_DIR={}", trial.world.runtime().display());
    let binary = trial.lab.descartes.to_string_lossy();
    shell_words::join(["env", &state, &runtime, &binary])
}

fn own_gate(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = format!(
        "{} loop set --verify true\necho '{PROMISE}'",
        descartes(&trial)
    );
    let ended = trial.run(start(
        &trial,
        &agent,
        &["--verify", "false", "--max-iterations", "2"],
    ))?;
    ensure(ended.code() == Some(2), || {
        format!("the gate was changed from within; {ended}")
    })
}

fn own_limit(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = format!(
        "echo x >> runs\n{} loop set --max-iterations 9",
        descartes(&trial)
    );
    let ended = trial.run(start(&trial, &agent, &["--max-iterations", "2"]))?;
    let runs = trial.world.read("runs").lines().count();
    ensure(ended.code() == Some(2) && runs == 2, || {
        format!("{runs} runs with a limit of 2; {ended}")
    })
}

fn own_commands(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let descartes = descartes(&trial);
    let agent = format!(
        "for verb in cancel 'cancel --now' pause unpause 'say hello' resume 'rewind 1 --yes'; do\n\
         {descartes} loop $verb </dev/null >> answers 2>&1 && echo \"$verb\" >> taken\ndone\n\
         {descartes} clean --older 0s --yes </dev/null >> answers 2>&1 && echo clean >> taken; true"
    );
    let ended = trial.run(start(&trial, &agent, &["--max-iterations", "2"]))?;
    let taken = std::fs::read_to_string(trial.path("taken")).unwrap_or_default();
    ensure(ended.code() == Some(2) && taken.is_empty(), || {
        format!("taken from within: {}; {ended}", taken.replace('\n', ", "))
    })
}

fn daemon_changes_gate(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = format!(
        "setsid env -i sh -c '{} loop set --state-file {} --verify true; touch tried' </dev/null >/dev/null 2>&1 &\n\
         while [ ! -e tried ]; do sleep 0.05; done\necho '{PROMISE}'",
        descartes(&trial),
        trial.state_file().display(),
    );
    let ended = trial.run(start(
        &trial,
        &agent,
        &["--verify", "false", "--max-iterations", "1"],
    ))?;
    ensure(ended.code() == Some(2), || {
        format!("the gate was changed from within; {ended}")
    })
}

fn parent_gate(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    let agent = format!(
        "echo work > work\n{0} loop set --verify true\n{0} loop set --state-file {1} --verify true\necho '{PROMISE}'",
        descartes(&trial),
        trial.state_file().display(),
    );
    let ended = trial.run(start_tasks(&trial, &agent, &["--verify", "false"]))?;
    ensure(ended.code() == Some(6), || {
        format!("a task's gate was changed from within; {ended}")
    })
}

fn edited_state(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    let agent = "sed -i 's/\"false\"/\"true\"/' .descartes/loop-state.json\ntouch edited\n\
         [ $DESCARTES_ITERATION = 1 ] || { echo '<promise>COMPLETE</promise>'; exit; }\nsleep 600";
    let flags = [
        "--verify",
        "false",
        "--max-iterations",
        "2",
        "--kill-grace",
        "200ms",
    ];
    let mut host = trial.spawn(start(&trial, agent, &flags))?;
    trial.wait_for("edited")?;
    host.signal(Signal::SIGKILL);
    host.code()?;
    let ended = recovery::resume(&trial, &[])?;
    ensure(ended.code() != Some(0), || {
        format!("the edited gate was taken; {ended}")
    })
}

fn marks_others(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 3);
    let tasks = trial.path(".scud/tasks/tasks.scg");
    let agent = format!(
        "sed -i 's/ | P | / | D | /' {}\necho work > work-$DESCARTES_TASK_ID\necho '{PROMISE}'",
        tasks.display()
    );
    let ended = trial.run(start_tasks(&trial, &agent, &[]))?;
    ensure(ended.code() == Some(6), || {
        format!("tasks that never ran were believed; {ended}")
    })
}

/// A gate that is green in the agent's tree alone must not land.
fn must_not_land(lab: &Lab, prepare: &str, agent: &str, gate: &str) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    shell(&trial, prepare)?;
    let agent = format!("{agent}\necho work >> work\necho '{PROMISE}'");
    let ended = trial.run(start_tasks(&trial, &agent, &["--verify", gate]))?;
    let mut check = trial.world.command("sh");
    check.args(["-c", gate]);
    let green = trial.run(check)?.code() == Some(0);
    let landed = trial.path("work").exists();
    ensure(!landed || green, || {
        format!("it landed, and the gate is red there; {ended}")
    })?;
    ensure(ended.code() != Some(0) || green, || {
        format!("called done; {ended}")
    })
}

fn ignored_file(lab: &Lab) -> Result<(), Trouble> {
    let prepare = "echo '*.ign' > .gitignore; git add .; git commit -qm ignore";
    must_not_land(lab, prepare, "touch need.ign", "test -e need.ign")
}

fn excluded_file(lab: &Lab) -> Result<(), Trouble> {
    let agent = "echo need >> \"$(git rev-parse --git-path info/exclude)\"; touch need";
    must_not_land(lab, "true", agent, "test -e need")
}

fn assume_unchanged(lab: &Lab) -> Result<(), Trouble> {
    let prepare = "echo red > state; git add .; git commit -qm state";
    let agent = "git update-index --assume-unchanged state; echo green > state";
    must_not_land(lab, prepare, agent, "grep -q green state")
}

fn skip_worktree(lab: &Lab) -> Result<(), Trouble> {
    let prepare = "echo red > state; git add .; git commit -qm state";
    let agent = "git update-index --skip-worktree state; echo green > state";
    must_not_land(lab, prepare, agent, "grep -q green state")
}

fn clean_filter(lab: &Lab) -> Result<(), Trouble> {
    let prepare = "echo red > state; git add .; git commit -qm state";
    let agent = "git config filter.hide.clean 'echo red'; git config filter.hide.smudge 'echo green'\n\
         echo 'state filter=hide' >> \"$(git rev-parse --git-path info/attributes)\"; echo green > state";
    must_not_land(lab, prepare, agent, "grep -q green state")
}

fn told(trial: &Trial<'_>, ended: &crate::lab::trial::Ended) -> Result<(), Trouble> {
    let last: String = {
        let all = format!("{}\n{}", ended.stdout(), ended.stderr());
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    };
    ensure(last.contains("check.sh"), || {
        format!("the ending does not tell; {ended}")
    })?;
    for verb in ["status", "history"] {
        let shown = trial.run(trial.descartes(&["loop", verb]))?;
        ensure(shown.stdout().contains("check.sh"), || {
            format!("`loop {verb}` does not tell; {shown}")
        })?;
    }
    Ok(())
}

fn changed_gate_in_task(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    repository(&trial, 1);
    shell(
        &trial,
        "echo 'exit 1' > check.sh; git add .; git commit -qm gate",
    )?;
    let agent = format!("echo 'exit 0' > check.sh\necho '{PROMISE}'");
    let ended = trial.run(start_tasks(&trial, &agent, &["--verify", "sh check.sh"]))?;
    told(&trial, &ended)
}

fn changed_gate_in_loop(lab: &Lab) -> Result<(), Trouble> {
    let trial = Trial::new(lab);
    trial.world.git_init();
    trial.world.write("check.sh", "exit 1\n");
    let agent = format!("echo 'exit 0' > check.sh\necho '{PROMISE}'");
    let ended = trial.run(start(&trial, &agent, &["--verify", "sh check.sh"]))?;
    told(&trial, &ended)
}
