//! Which agents a task loop looks for, and which gets the next turn.

use descartes_testkit::World;

use crate::common::{events, start};
use crate::task_common::{repository, run};

pub const CODEX: &str = r#"#!/bin/sh
echo x > work-$DESCARTES_TASK_ID
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

/// The loop's own agent is not installed.
const RUN: [&str; 7] = [
    "roadmap",
    "run",
    "ROADMAP.md",
    "--command",
    "no-such-agent",
    "--permissions",
    "edit",
];

fn with_codex(roadmap: &str) -> World {
    let world = repository("ROADMAP.md", roadmap);
    world.program("codex", CODEX);
    world
}

#[test]
fn an_agent_that_no_task_asks_for_is_not_looked_for() {
    let world = with_codex(
        "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - cli: codex\n- [ ] **b**: Two\n  - cli: codex\n",
    );
    let ended = run(&world, &RUN);
    ended.assert_code(0);
    assert!(world.has("work-a") && world.has("work-b"), "{ended}");
}

#[test]
fn an_agent_that_a_task_asks_for_is_looked_for_before_any_begins() {
    let world =
        with_codex("# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - cli: codex\n- [ ] **b**: Two\n");
    let ended = run(&world, &RUN);
    assert_ne!(ended.code(), Some(0), "{ended}");
    assert!(ended.stderr().contains("no-such-agent"), "{ended}");
    assert!(!world.has("work-a"), "{ended}");
    // Growth is a question to the loop's own agent.
    let world = with_codex("# Roadmap: R\n## Tasks\n- [ ] **a**: One\n  - cli: codex\n");
    let ended = run(&world, &[&RUN[..], &["--growth", "1"]].concat());
    assert_ne!(ended.code(), Some(0), "{ended}");
    assert!(!world.has("work-a"), "{ended}");
}

/// The first agent fails once, the fallback works longer than its rest.
#[test]
fn an_agent_that_failed_once_gets_its_turn_again() {
    let world = World::in_memory();
    let second = world.agent("sh sleep 1.5; echo x >> work");
    let flags = ["--fallback", &second, "-m", "3", "--stall-after", "0"];
    start(&world, "@1 exit 1\n@* promise", &flags).assert_code(0);
    let runs = events(&world, "run_started");
    let agents: Vec<u64> = runs
        .iter()
        .map(|run| run["agent"].as_u64().unwrap_or(0))
        .collect();
    // A host that stood still for all of its rest asks it again at once.
    assert!(agents == [0, 1, 0] || agents == [0, 0], "{agents:?}");
}
