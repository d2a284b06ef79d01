//! Flags that end a loop or an iteration before the work is done.

use descartes_testkit::World;

use crate::common::{CLAIMS, claude_result, events, loop_dir, prints, start, state};

#[test]
fn max_iterations_counts_and_unlimited_is_spelled_out() {
    let world = World::new();
    start(&world, "print on it", &["-m", "3"]).assert_code(2);
    assert_eq!(events(&world, "run_started").len(), 3);
    let unlimited = World::new();
    start(
        &unlimited,
        "@1 print on it\n@2 promise",
        &["--max-iterations", "unlimited"],
    )
    .assert_code(0);
    assert!(state(&unlimited)["config"]["max_iterations"].is_null());
}

#[test]
fn max_duration_ends_a_running_iteration() {
    let world = World::new();
    let flags = ["--max-duration", "300ms", "--kill-grace", "100ms"];
    start(&world, "hang", &flags).assert_code(3);
    assert_eq!(state(&world)["exit_reason"]["budget"], "duration");
}

#[test]
fn max_cost_and_max_tokens_are_budgets_of_the_whole_loop() {
    let script = prints(&claude_result("on it"));
    let agent = [
        "--backend",
        "claude",
        "--permissions",
        "edit",
        "--stall-after",
        "0",
    ];
    for (flag, limit, budget) in [
        ("--max-cost", "0.75", "cost"),
        ("--max-tokens", "1500", "tokens"),
    ] {
        let world = World::new();
        start(
            &world,
            &script,
            &[&agent[..], &["-m", "5", flag, limit]].concat(),
        )
        .assert_code(3);
        assert_eq!(state(&world)["exit_reason"]["budget"], budget);
        assert_eq!(events(&world, "iteration_finished").len(), 2);
    }
}

#[test]
fn timeout_ends_one_iteration() {
    let world = World::new();
    // An agent that is not in time on a busy machine is followed by another.
    let flags = ["--timeout", "1s", "--kill-grace", "100ms"];
    start(&world, "@1 hang\n@2- promise", &flags).assert_code(0);
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "timeout");
}

#[test]
fn idle_timeout_ends_an_iteration_that_hangs() {
    let world = World::new();
    let flags = ["--idle-timeout", "1s", "--kill-grace", "100ms"];
    start(&world, "@1 hang\n@2- promise", &flags).assert_code(0);
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "idle");
}

#[test]
fn max_failures_ends_a_loop_whose_agent_fails() {
    let world = World::new();
    start(&world, "exit 3", &["--max-failures", "1"]).assert_code(7);
    assert_eq!(state(&world)["exit_reason"]["failures"], 1);
}

#[test]
fn an_agent_that_fails_at_its_start_is_a_failure_whatever_file_it_leaves() {
    for backend in ["generic", "claude"] {
        let world = World::new();
        world.git_init();
        let flags = ["-m", "unlimited", "--max-failures", "3", "--backend"];
        let flags = [&flags[..], &[backend, "--permissions", "all"]].concat();
        let crash = "sh date +%N >> agent.log; echo 'cannot start' >&2; exit 1";
        start(&world, crash, &flags).assert_code(7);
        assert_eq!(state(&world)["exit_reason"]["failures"], 3, "{backend}");
        assert_eq!(events(&world, "wait_started").len(), 2, "{backend}");
    }
}

#[test]
fn stall_after_nudges_then_stops() {
    let world = World::new();
    world.git_init();
    start(&world, "print hm", &["--stall-after", "1"]).assert_code(4);
    assert_eq!(events(&world, "nudged").len(), 1);
    assert_eq!(events(&world, "iteration_finished").len(), 2);
}

#[test]
fn kill_grace_is_the_time_between_asking_and_killing() {
    let world = World::new();
    let flags = ["-m", "1", "--timeout", "200ms", "--kill-grace", "200ms"];
    start(&world, "ignore TERM\nignore INT\nhang", &flags).assert_code(2);
    // By default it would be five seconds.
    let took = events(&world, "agent_ended")[0]["duration_ms"].as_u64();
    assert!(took.unwrap() < 5000, "{took:?}");
    world.assert_no_survivors();
}

#[test]
fn max_log_keeps_head_and_tail() {
    let world = World::new();
    start(&world, "flood 2MB lines\npromise", &["--max-log", "200kB"]).assert_code(0);
    let dropped = events(&world, "agent_ended")[0]["log_dropped"]
        .as_u64()
        .unwrap();
    assert!(dropped > 1_500_000, "{dropped}");
    let whole = World::new();
    start(
        &whole,
        "flood 2MB lines\npromise",
        &["--max-log", "unlimited"],
    )
    .assert_code(0);
    let log = loop_dir(&whole).join("runs/0001/stdout.log");
    assert!(std::fs::metadata(log).unwrap().len() > 2_000_000);
    assert!(events(&whole, "agent_ended")[0]["log_dropped"].is_null());
}

#[test]
fn a_promise_in_the_last_allowed_iteration_counts() {
    start(&World::new(), CLAIMS, &["-m", "1"]).assert_code(0);
}
