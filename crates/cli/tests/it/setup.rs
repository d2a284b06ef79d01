//! `demo`, `init` and `doctor`.

use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::world::bins;
use serde_json::Value;

use crate::common::{claude_result, descartes, events, loops, prints, start};

#[test]
fn demo_fails_its_gate_twice_and_then_is_proven_done() {
    let world = World::in_memory();
    let run = descartes(&world, &["demo", "--fast"]);
    run.assert_code(0);
    let gates: Vec<Value> = events(&world, "gate_finished")
        .iter()
        .map(|e| e["end"]["exit"]["code"].clone())
        .collect();
    assert_eq!(gates, [1, 1, 0], "{run}");
    let out = run.stdout();
    for words in [
        "gate red",
        "NOT OK  4 is IV",
        "gate green",
        "done: COMPLETE, proven by 1 gate",
        "descartes init",
    ] {
        assert!(out.contains(words), "{words}: {run}");
    }
    let folder = out
        .lines()
        .find_map(|line| line.trim().strip_prefix("cd "))
        .unwrap();
    assert!(std::path::Path::new(folder).join("roman.sh").is_file());
    assert!(run.stderr().contains("not on your PATH"), "{run}");
    world.program("descartes", "#!/bin/sh\n");
    // A second demo has a folder of its own; neither asks for a key or the network.
    let second = descartes(&world, &["demo", "--fast"]);
    second.assert_code(0);
    assert!(!second.stderr().contains("PATH"), "{second}");
    descartes(&world, &["demo", "--fast", "--json"]).assert_code(0);
    assert_eq!(loops(&world).len(), 3);
    world.assert_no_survivors();
}

/// The agent that most people have, with an answer.
fn fake_claude(world: &World) {
    let script = world.script(&prints(&claude_result("<promise>COMPLETE</promise>")));
    let agent = bins::scripted_agent().display();
    let script = script.display();
    let program = format!("#!/bin/sh\nSCRIPTED_AGENT_FILE={script} exec {agent} \"$@\"\n");
    world.program("claude", &program);
}

#[test]
fn what_demo_and_init_tell_to_type_next_starts_a_loop() {
    let world = World::in_memory();
    fake_claude(&world);
    let told = descartes(&world, &["demo", "--fast"]).stdout();
    let hint = told
        .lines()
        .find(|line| line.contains("loop start"))
        .unwrap();
    let of_demo = shell_words::split(hint).unwrap();
    world.write("Makefile", "test:\n\ttrue\n");
    let told = descartes(&world, &["init"]).stdout();
    let (_, hint) = told.rsplit_once("descartes ").unwrap();
    let words: Vec<&str> = hint.split_whitespace().collect();
    // Nobody has said yet what should be done.
    for more in [&[][..], &["--dry-run"], &["--prompt-file", "PROMPT.md"]] {
        let early = descartes(&world, &[&words, more].concat());
        early.assert_code(65);
        assert!(
            early.stderr().contains("still the template") && early.stderr().contains("`# Task`"),
            "{early}"
        );
    }
    let text = world.read("PROMPT.md");
    let (_, how) = text.split_once("# How to work").unwrap();
    world.write(
        "PROMPT.md",
        format!("# Task\n\nSay hello.\n\n# How to work{how}"),
    );
    descartes(&world, &words).assert_code(0);
    let again = [&of_demo[1..], &["--force".to_owned()]].concat();
    world.run(world.descartes(&again)).assert_code(0);
    // What init grants is for agents that can be granted something; others run as they did.
    let run = start(&world, "promise", &["-s", "other.json"]);
    run.assert_code(0);
    assert_eq!(run.stderr(), "");
}

#[test]
fn init_writes_what_a_loop_needs_and_never_overwrites() {
    let world = World::in_memory();
    world.write("Cargo.toml", "[package]\nname = \"x\"\n");
    world.write("AGENTS.md", "mine\n");
    let dry = descartes(&world, &["init", "--dry-run"]);
    dry.assert_code(0);
    assert!(dry.stdout().contains("would write PROMPT.md"), "{dry}");
    assert!(!world.has("PROMPT.md") && !world.has(".descartes"));
    let run = descartes(&world, &["init"]);
    run.assert_code(0);
    assert!(
        run.stdout().contains("found: Rust") && run.stdout().contains("kept AGENTS.md"),
        "{run}"
    );
    assert_eq!(world.read("AGENTS.md"), "mine\n");
    assert!(
        world
            .read("PROMPT.md")
            .contains("<promise>COMPLETE</promise>")
    );
    assert!(world.has("specs/README.md") && world.has(".descartes/.gitignore"));
    let shown = descartes(&world, &["config", "show"]);
    assert!(
        shown.stdout().contains("cargo check && cargo test"),
        "{shown}"
    );
    assert_eq!(shown.stderr(), "");
    let again = descartes(&world, &["init"]);
    assert_eq!(again.stdout().matches("kept ").count(), 4, "{again}");
    descartes(&world, &["init", "nowhere"]).assert_code(64);
}

fn doctor(world: &World, arguments: &[&str]) -> (i32, Vec<Value>) {
    let mut command = world.descartes(["doctor", "--json"]);
    command.args(arguments);
    let run = world.run(command);
    (
        run.code().unwrap(),
        serde_json::from_str(&run.stdout()).unwrap(),
    )
}

fn problems(findings: &[Value]) -> Vec<String> {
    let bad = findings
        .iter()
        .filter(|finding| finding["level"] == "problem");
    bad.map(|finding| finding["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn doctor_finds_nothing_wrong_with_a_healthy_machine() {
    let world = World::in_memory();
    world.git_init();
    world.program("claude", "#!/bin/sh\necho '9.9.9 (Claude Code)'\n");
    let (code, findings) = doctor(&world, &[]);
    assert_eq!((code, problems(&findings)), (0, vec![]), "{findings:?}");
    let told = |words: &str| {
        findings
            .iter()
            .any(|f| f["message"].as_str().unwrap().contains(words))
    };
    assert!(
        told("9.9.9 (newer than") && told("can be written") && told("free"),
        "{findings:?}"
    );
    assert_eq!(std::fs::read_dir(world.state()).unwrap().count(), 0);
    let run = descartes(&world, &["doctor"]);
    run.assert_code(0);
    assert!(run.stdout().contains("ok       git"), "{run}");
}

#[test]
fn doctor_finds_a_missing_identity_a_bad_config_and_leftovers() {
    let world = World::in_memory();
    std::fs::write(world.home().join(".gitconfig"), "").unwrap();
    world.write(".descartes/config.toml", "max_iteration = 3\n");
    let folder = world.runtime().join("descartes");
    std::fs::create_dir_all(&folder).unwrap();
    drop(std::os::unix::net::UnixListener::bind(folder.join("0123456789abcdef.sock")).unwrap());
    let (code, findings) = doctor(&world, &[]);
    let found = problems(&findings).join("\n");
    assert_eq!(code, 1);
    for words in ["identity", "max_iteration", "dead socket"] {
        assert!(found.contains(words), "{words}: {found}");
    }
    assert!(
        findings
            .iter()
            .filter(|f| f["level"] == "problem")
            .all(|f| f["hint"].is_string())
    );
    world.write(".descartes/config.toml", "");
    let cleaned = descartes(&world, &["clean", "--yes"]);
    cleaned.assert_code(0);
    assert!(cleaned.stdout().contains("1 dead socket"), "{cleaned}");
    assert!(!folder.join("0123456789abcdef.sock").exists());
    world.write(".descartes/config.toml", "max_iterations = true\n");
    assert!(
        problems(&doctor(&world, &[]).1)
            .join("\n")
            .contains("config.toml:1")
    );
}

#[test]
fn doctor_finds_processes_of_a_loop_that_does_not_run() {
    let world = World::in_memory();
    std::fs::create_dir_all(world.state().join("loops/dead-loop")).unwrap();
    let mut command: Command = world.command("sleep");
    let mut child = command
        .arg("60")
        .env("DESCARTES_LOOP_ID", "dead-loop")
        .spawn()
        .unwrap();
    let (code, findings) = doctor(&world, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, 1);
    let found = problems(&findings).join("\n");
    assert!(
        found.contains("dead-loop") && found.contains(&child.id().to_string()),
        "{found}"
    );
}
