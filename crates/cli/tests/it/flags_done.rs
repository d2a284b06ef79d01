//! Flags that say when the work is done.

use descartes_testkit::World;

use crate::common::{CLAIMS, descartes, events, start, state};

#[test]
fn verify_is_a_gate_that_decides() {
    let world = World::in_memory();
    start(
        &world,
        CLAIMS,
        &["--max-iterations", "2", "--verify", "test -e proof"],
    )
    .assert_code(2);
    assert_eq!(events(&world, "gate_finished").len(), 2);
    let proven = World::in_memory();
    start(
        &proven,
        "touch proof\npromise",
        &["--verify", "test -e proof", "--verify", "echo two"],
    )
    .assert_code(0);
    let gates = events(&proven, "gate_finished");
    assert_eq!(gates.len(), 2);
    assert_eq!(gates[1]["command"], "echo two");
}

#[test]
fn verify_timeout_ends_a_gate_that_hangs() {
    let world = World::in_memory();
    let flags = [
        "-m",
        "1",
        "--verify",
        "sleep 60",
        "--verify-timeout",
        "200ms",
        "--kill-grace",
        "100ms",
    ];
    start(&world, CLAIMS, &flags).assert_code(2);
    assert_eq!(events(&world, "gate_finished")[0]["end"], "timeout");
}

#[test]
fn completion_promise_is_the_text_that_is_looked_for() {
    let script = "promise AUTH_MIGRATED";
    start(&World::in_memory(), script, &["-m", "1"]).assert_code(2);
    let flags = ["-m", "1", "--completion-promise", "AUTH_MIGRATED"];
    start(&World::in_memory(), script, &flags).assert_code(0);
}

#[test]
fn no_promise_leaves_it_to_the_exit_code_or_the_gates() {
    let world = World::in_memory();
    start(&world, "print hello", &["-m", "1", "--no-promise"]).assert_code(0);
    assert_eq!(state(&world)["exit_reason"]["type"], "process_success");
    let gated = World::in_memory();
    start(
        &gated,
        "print hello",
        &["-m", "1", "--no-promise", "--verify", "true"],
    )
    .assert_code(0);
    assert_eq!(state(&gated)["exit_reason"]["type"], "gates_passed");
}

#[test]
fn promise_match_says_how_it_must_stand() {
    let outcomes = |script: &str| {
        ["tagged", "line", "anywhere"].map(|how| {
            start(
                &World::in_memory(),
                script,
                &["-m", "1", "--promise-match", how],
            )
            .code()
            .unwrap()
        })
    };
    assert_eq!(outcomes("print COMPLETE"), [2, 0, 0]);
    assert_eq!(outcomes("print the task is COMPLETE now"), [2, 2, 0]);
}

#[test]
fn promise_hint_tells_the_first_prompt() {
    for (hint, told) in [("on", true), ("off", false)] {
        let world = World::in_memory();
        start(
            &world,
            "save-prompt seen\npromise",
            &["--promise-hint", hint],
        )
        .assert_code(0);
        assert_eq!(
            world.read("seen").contains("<promise>COMPLETE</promise>"),
            told
        );
    }
}

#[test]
fn promise_grace_ends_an_agent_that_stays() {
    let world = World::in_memory();
    start(
        &world,
        "promise\nhang",
        &["--promise-grace", "200ms", "--kill-grace", "200ms"],
    )
    .assert_code(0);
    let ended = &events(&world, "agent_ended")[0];
    assert_eq!(ended["ended_by"], "promise");
    // By default it would be ten seconds.
    assert!(ended["duration_ms"].as_u64().unwrap() < 9000, "{ended}");
    world.assert_no_survivors();
}

#[test]
fn abort_promise_ends_the_loop_with_the_agents_words() {
    let script = "print I lack a key.\npromise NO_KEY";
    start(&World::in_memory(), script, &["-m", "1"]).assert_code(2);
    start(
        &World::in_memory(),
        script,
        &["-m", "1", "--abort-promise", "NO_KEY"],
    )
    .assert_code(5);
}

#[test]
fn a_promise_that_ordinary_output_may_contain_is_warned_about_unless_it_is_tagged() {
    for (promise, mode, warned) in [
        ("DONE", "line", true),
        ("success", "anywhere", true),
        ("DONE", "tagged", false),
        ("ALL-GREEN", "line", false),
    ] {
        let world = World::in_memory();
        let flags = ["--completion-promise", promise, "--promise-match", mode];
        let script = format!("print <promise>{promise}</promise>");
        let run = start(&world, &script, &flags);
        let told = run.stderr().contains("is a common word");
        assert_eq!(told, warned, "{promise} {mode}: {}", run.stderr());
    }
}

#[test]
fn a_proof_of_nothing_that_was_changed_says_so() {
    for (script, is_told) in [("promise", true), ("write out.txt x ;; promise", false)] {
        let world = World::in_memory();
        world.git_init();
        let ended = start(&world, script, &["--verify", "true"]);
        ended.assert_code(0);
        let status = descartes(&world, &["loop", "status"]).stdout();
        let report = descartes(&world, &["report", "--output", "-"]).stdout();
        let ending = ended.stdout() + &ended.stderr();
        for text in [ending, status, report] {
            let words = "no file was changed in this loop";
            assert_eq!(text.contains(words), is_told, "{script}: {text}");
        }
    }
}
