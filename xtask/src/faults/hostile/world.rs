//! What the hostile cases share: shell agents, task files, and a search for work that may be lost.

use std::fmt::Write;
use std::process::Command;

use crate::lab::trial::Ended;
use crate::lab::{Trial, Trouble, kept};

/// The tag that an agent prints when it is done.
pub const PROMISE: &str = "<promise>COMPLETE</promise>";

/// The command line of an agent that runs this shell script; the script lies outside the project.
pub fn shell_agent(trial: &Trial<'_>, script: &str) -> String {
    let path = trial.world.script(script);
    shell_words::join(["sh", &path.to_string_lossy()])
}

/// Runs a shell script in the project, which must succeed; its standard output.
pub fn shell(trial: &Trial<'_>, script: &str) -> Result<String, Trouble> {
    let mut command = trial.world.command("sh");
    command.args(["-ec", script]);
    let ended = trial.run(command)?;
    match ended.code() {
        Some(0) => Ok(ended.stdout().trim().to_owned()),
        _ => Err(format!("the case could not be prepared: {ended}")),
    }
}

/// `loop start` with a shell agent and flags.
pub fn start(trial: &Trial<'_>, agent: &str, flags: &[&str]) -> Command {
    let agent = shell_agent(trial, agent);
    let mut command = trial.descartes(&["loop", "start", "--command", &agent, "--prompt", "go"]);
    command.args(flags);
    command
}

/// `loop start --scud-tag big` with a shell agent and flags.
pub fn start_tasks(trial: &Trial<'_>, agent: &str, flags: &[&str]) -> Command {
    let agent = shell_agent(trial, agent);
    let mut command = trial.descartes(&["loop", "start", "--scud-tag", "big", "--command", &agent]);
    command.args(flags);
    command
}

/// A repository with one commit that holds a SCUD tag `big` of as many independent tasks.
pub fn repository(trial: &Trial<'_>, tasks: u64) {
    let world = &trial.world;
    world.git_init();
    let mut text =
        String::from("# SCUD Graph v1\n# Phase: big\n\n@meta {\n  name big\n}\n\n@nodes\n");
    for task in 1..=tasks {
        let _ = writeln!(text, "{task} | Task {task} | P | 1 | M");
    }
    text.push_str("\n@edges\n");
    world.write(".scud/tasks/tasks.scg", &text);
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "tasks"]);
}

/// An error unless the loop ended with this code.
pub fn expect_code(ended: &Ended, code: i32) -> Result<(), Trouble> {
    match ended.code() == Some(code) {
        true => Ok(()),
        false => Err(format!("expected exit code {code}; {ended}")),
    }
}

/// An error with these words unless it holds.
pub fn ensure(holds: bool, words: impl FnOnce() -> String) -> Result<(), Trouble> {
    match holds {
        true => Ok(()),
        false => Err(words()),
    }
}

/// Whether a text is still to be found somewhere.
pub fn is_kept(trial: &Trial<'_>, text: &str) -> bool {
    kept::lost(trial, &[text]).is_empty()
}
