//! Values of the environment are nobody's business: whatever happens to a loop, no file of ours and
//! no word of ours holds them.

use std::path::{Path, PathBuf};

use crate::stage::{AGENTS, Stage, whole};

/// They look like nothing, so that no mask knows them.
const GIVEN: &str = "xq7vz-given-by-flag-81234";
const AROUND: &str = "pl3wm-found-around-55190";

/// Every file below a folder that holds one of the values.
fn holding(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            holding(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let holds = |value: &str| {
                let mut parts = bytes.windows(value.len());
                parts.any(|part| part == value.as_bytes())
            };
            if holds(GIVEN) || holds(AROUND) {
                found.push(path);
            }
        }
    }
}

/// Runs a loop with secrets around it; nothing that is written or said holds them.
fn keeps(agent: &str, script: &str, flags: &[&str]) {
    let stage = Stage::new();
    let given = format!("API_TOKEN={GIVEN}");
    let flags = [&["--env", given.as_str()], flags].concat();
    let mut command = stage.command(agent, script, &flags);
    command.env("AROUND_TOKEN", AROUND);
    let run = stage.world.run(command);
    let mut said = run.to_string();
    for verb in [
        &["loop", "status"][..],
        &["loop", "history", "--json"],
        &["loop", "list"],
        &["doctor"],
    ] {
        let mut look = stage.world.descartes(verb);
        look.env("AROUND_TOKEN", AROUND);
        said.push_str(&stage.world.run(look).stdout());
    }
    let mut resume = stage
        .world
        .descartes(["loop", "resume", "-m", "9", "--env", &given]);
    resume.env("AROUND_TOKEN", AROUND);
    said.push_str(&stage.world.run(resume).stdout());
    // The command line that a test prints holds what the test gave.
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.contains("env -i"))
        .collect();
    let said = said.join("\n");
    assert!(!said.contains(GIVEN) && !said.contains(AROUND), "{said}");
    let mut found = Vec::new();
    holding(stage.world.root(), &mut found);
    assert!(found.is_empty(), "{agent}, {script}: {found:?}");
    assert!(stage.starts() > 0, "the agent ran");
}

#[test]
fn a_loop_that_works_claims_fails_or_is_limited_keeps_them() {
    keeps(
        "generic",
        "append notes x\n@3- promise",
        &["--verify", "test -s notes", "-m", "5"],
    );
    keeps("generic", "err it broke\nexit 3", &["--max-failures", "2"]);
    keeps(
        "generic",
        "hang",
        &["-m", "1", "--timeout", "500ms", "--kill-grace", "100ms"],
    );
    for agent in AGENTS {
        keeps(agent, &whole(&format!("{agent}-tool")), &["-m", "1"]);
        keeps(
            agent,
            &whole(&format!("{agent}-400")),
            &["--max-failures", "1"],
        );
    }
}

#[test]
fn an_agent_that_cannot_be_started_is_told_of_without_them() {
    let stage = Stage::new();
    let mut start = stage.world.descartes(["loop", "start", "-p", "go"]);
    start.args([
        "--command",
        "no-such-agent",
        "--env",
        &format!("API_TOKEN={GIVEN}"),
    ]);
    start.env("AROUND_TOKEN", AROUND);
    let run = stage.world.run(start);
    assert!(!run.stderr().contains(GIVEN) && !run.stderr().contains(AROUND));
    let mut found = Vec::new();
    holding(stage.world.root(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}
