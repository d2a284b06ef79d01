//! `--fallback`: the next agent takes the iteration; the first comes back when it can.

use crate::stage::{Stage, recording, whole};

#[test]
fn a_fallback_takes_over_and_the_first_comes_back_after_its_reset() {
    let stage = Stage::new();
    let first = format!("@1 stream-limit claude 3s\n@* {}", recording("claude-ok"));
    // Its iterations take longer than the limit lasts.
    let second = stage
        .world
        .agent("append second x\nsleep 2s\nprint not yet");
    let run = stage.run("claude", &first, &["--fallback", &second]);
    run.assert_code(0);
    let agents = agents(&stage);
    assert_eq!(
        (agents.first(), agents.last()),
        (Some(&0), Some(&0)),
        "{agents:?}"
    );
    assert!(
        agents[1..agents.len() - 1].iter().all(|agent| *agent == 1),
        "{agents:?}"
    );
    assert!((3..=4).contains(&agents.len()), "{agents:?}");
    assert!(stage.records("wait_started").is_empty(), "nobody waited");
    assert!(
        run.stdout().contains(", by "),
        "the view says who works: {run}"
    );
}

#[test]
fn a_failing_agent_is_followed_by_the_next() {
    let stage = Stage::new();
    let second = stage.world.agent("promise");
    let flags = ["--fallback", &second];
    stage
        .run("claude", &whole("claude-400"), &flags)
        .assert_code(0);
    assert_eq!(stage.records("run_started")[1]["agent"], 1);
}

#[test]
fn when_all_are_limited_the_first_reset_is_waited_for() {
    let stage = Stage::new();
    let first = format!("@1 stream-limit claude 1h\n@* {}", recording("claude-ok"));
    let own = format!(
        "env SCRIPTED_AGENT_COUNTER={} ",
        stage.world.root().join("tmp/second").display()
    );
    let second =
        "@1 err Error: 429 rate limit exceeded, try again in 3 seconds\n@1 exit 1\n@* promise";
    let second = own + &stage.world.agent(second);
    stage
        .run("claude", &first, &["--fallback", &second])
        .assert_code(0);
    let agents = agents(&stage);
    assert_eq!(agents, [0, 1, 1]);
    assert_eq!(stage.records("iteration_finished").len(), 1);
}

/// Which agent took each run; the first is 0.
fn agents(stage: &Stage) -> Vec<i64> {
    let runs = stage.records("run_started");
    runs.iter()
        .map(|run| run["agent"].as_i64().unwrap_or(0))
        .collect()
}
