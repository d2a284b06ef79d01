//! Steering real loops: acknowledged, and effective.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use descartes_testkit::world::Finished;
use descartes_testkit::{World, eventually, process};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{claude_result, descartes, events, loop_dir, start, state};

const SOON: Duration = descartes_testkit::PATIENCE;

/// An agent that tells which iteration it is, keeps its prompt, and waits for leave to end.
const PATIENT: &str =
    "append seen ${ITERATION}\nsave-prompt prompt-${ITERATION} arg\nwait-file go-${ITERATION}";

/// Starts a loop in the background, and waits until its first agent is at work.
fn background(world: &World, script: &str, flags: &[&str]) {
    let all = [flags, &["--detach", "--name", "auth"]].concat();
    start(world, script, &all).assert_code(0);
}

fn verb(world: &World, arguments: &[&str]) -> Finished {
    descartes(world, &[&["loop"], arguments].concat())
}

#[track_caller]
fn says(world: &World, arguments: &[&str], words: &str) {
    let run = verb(world, arguments);
    run.assert_code(0);
    assert!(run.stdout().contains(words), "{words}: {run}");
}

fn status(world: &World) -> Value {
    let run = verb(world, &["status", "--json"]);
    run.assert_code(0);
    serde_json::from_str(&run.stdout()).unwrap()
}

fn seen(world: &World, iteration: u32) -> bool {
    let file = world.path("seen");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().any(|line| line == iteration.to_string())
}

#[track_caller]
fn at_iteration(world: &World, iteration: u32) {
    eventually(&format!("iteration {iteration}"), SOON, || {
        seen(world, iteration)
    });
}

#[test]
fn pause_holds_before_the_next_iteration_and_unpause_goes_on() {
    let world = World::in_memory();
    background(&world, PATIENT, &["-m", "3"]);
    at_iteration(&world, 1);
    says(
        &world,
        &["pause"],
        "accepted: it takes effect after iteration 1",
    );
    world.write("go-1", "");
    eventually("the pause", SOON, || status(&world)["status"] == "paused");
    assert!(!seen(&world, 2));
    says(&world, &["pause"], "paused before iteration 2");
    says(&world, &["unpause", "auth"], "continuing");
    says(
        &world,
        &["unpause"],
        "the loop is not paused: nothing to do",
    );
    assert_eq!(events(&world, "unpaused").len(), 1);
    at_iteration(&world, 2);
    // Taken back before it came to anything.
    says(&world, &["pause"], "after iteration 2");
    says(&world, &["unpause"], "continuing");
    world.write("go-2", "");
    at_iteration(&world, 3);
    verb(&world, &["cancel", "--now"]).assert_code(0);
    world.assert_no_survivors();
}

#[test]
fn pause_waits_for_its_effect_where_asked_to() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    let mut waiting = world.descartes(["loop", "pause", "--wait", "--json"]);
    waiting.stdout(std::process::Stdio::piped());
    let waiting = waiting.spawn().unwrap();
    eventually("the command", SOON, || {
        !events(&world, "command_accepted").is_empty()
    });
    world.write("go-1", "");
    let out = waiting.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(told["answer"], "effective", "{told}");
    assert_eq!(events(&world, "paused").len(), 1);
    verb(&world, &["cancel"]).assert_code(0);
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
}

#[test]
fn a_note_is_in_the_next_prompt_once() {
    let world = World::in_memory();
    background(&world, PATIENT, &["-m", "3"]);
    at_iteration(&world, 1);
    says(
        &world,
        &["say", "use the new parser"],
        "accepted: iteration 2 gets the note",
    );
    world.write("go-1", "");
    at_iteration(&world, 2);
    eventually("the prompt", SOON, || world.has("prompt-2"));
    assert!(world.read("prompt-2").contains("use the new parser"));
    assert_eq!(events(&world, "command_effective").len(), 0);
    world.write("go-2", "");
    at_iteration(&world, 3);
    assert_eq!(events(&world, "command_effective").len(), 1);
    eventually("the prompt", SOON, || world.has("prompt-3"));
    assert!(!world.read("prompt-3").contains("use the new parser"));
    world.write("go-3", "");
    eventually("its end", SOON, || state(&world)["completed"] == true);
    // What a person said stands in the result, as every other change does.
    let status = verb(&world, &["status"]).stdout();
    assert!(
        status.contains("note: none -> use the new parser, by say"),
        "{status}"
    );
    assert_eq!(state(&world)["changes"][0]["by"], "say");
}

#[test]
fn every_flag_of_set_changes_the_running_loop() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    let run = verb(
        &world,
        &[
            "set",
            "--max-iterations",
            "9",
            "--max-duration",
            "2h",
            "--timeout",
            "90m",
            "--idle-timeout",
            "50m",
            "--max-failures",
            "8",
            "--stall-after",
            "7",
            "--verify",
            "true",
            "--verify",
            "test -e x",
            "--verify-timeout",
            "1m",
        ],
    );
    run.assert_code(0);
    assert!(
        run.stdout().starts_with("changed: max_iterations, "),
        "{run}"
    );
    let config = status(&world)["config"].clone();
    for (key, value) in [
        ("max_iterations", Value::from(9)),
        ("max_duration_secs", 7200.into()),
        ("iteration_timeout_secs", 5400.into()),
        ("idle_timeout_secs", 3000.into()),
        ("max_failures", 8.into()),
        ("stall_after", 7.into()),
        ("verify", vec!["true", "test -e x"].into()),
        ("verify_timeout_secs", 60.into()),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
    assert_eq!(state(&world)["config"], config, "the state file follows");
    says(
        &world,
        &["set", "--prompt", "do that instead"],
        "changed: prompt",
    );
    says(&world, &["set", "--max-iterations", "unlimited"], "changed");
    assert_eq!(status(&world)["config"]["max_iterations"], Value::Null);
    world.write("go-1", "");
    at_iteration(&world, 2);
    eventually("the prompt", SOON, || world.has("prompt-2"));
    assert!(world.read("prompt-2").contains("do that instead"));
    says(&world, &["set", "--max-iterations", "2"], "changed");
    world.write("go-2", "");
    eventually("its end", SOON, || state(&world)["completed"] == true);
    assert_eq!(
        state(&world)["exit_reason"]["type"],
        "max_iterations_reached"
    );
}

#[test]
fn a_model_is_set_where_the_agent_can_be_told() {
    let world = World::in_memory();
    let flags = ["--backend", "claude", "--permissions", "edit"];
    background(&world, "append seen 1\nhang", &flags);
    at_iteration(&world, 1);
    says(&world, &["set", "--model", "m1"], "changed: model");
    assert_eq!(status(&world)["config"]["model"], "m1");
    verb(&world, &["cancel", "--now"]).assert_code(0);
}

#[test]
fn a_new_time_limit_ends_the_run_under_way() {
    let world = World::in_memory();
    background(
        &world,
        "append seen ${ITERATION}\nhang",
        &["-m", "1", "--kill-grace", "1s"],
    );
    at_iteration(&world, 1);
    says(
        &world,
        &["set", "--timeout", "100ms"],
        "changed: iteration_timeout_secs",
    );
    eventually("its end", SOON, || state(&world)["completed"] == true);
    assert_eq!(events(&world, "agent_ended")[0]["ended_by"], "timeout");
}

#[test]
fn a_note_for_an_agent_that_is_given_no_prompt_is_refused() {
    let world = World::in_memory();
    background(&world, PATIENT, &["--prompt-mode", "none"]);
    at_iteration(&world, 1);
    let refused = |world: &World| {
        let run = verb(world, &["say", "use jiff"]);
        run.assert_code(65);
        assert!(run.stderr().contains("--prompt-mode none"), "{run}");
        assert!(run.stderr().contains("\nhint: "), "{run}");
    };
    refused(&world);
    verb(&world, &["cancel", "--now"]).assert_code(0);
    refused(&world);
    assert!(state(&world)["changes"].is_null());
}

#[test]
fn what_cannot_be_set_is_refused_with_its_reason() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    let before = status(&world)["config"].clone();
    for (arguments, code, words) in [
        (&["set"][..], 64, "nothing to change"),
        (&["set", "--max-iterations", "0"], 64, "would do nothing"),
        (&["set", "--max-cost", "5"], 65, "does not"),
        (&["set", "--max-tokens", "5k"], 65, "does not"),
        (&["set", "--max-failures", "0"], 64, "would stop"),
        (&["set", "--timeout", "0"], 64, "--timeout"),
        (&["set", "--model", "m1"], 65, "`generic` has no flag"),
        (&["say", " "], 64, "empty"),
        (&["say", "use", "jiff"], 65, "no loop \"jiff\""),
    ] {
        let run = verb(&world, arguments);
        run.assert_code(code);
        assert!(run.stderr().contains(words), "{words}: {run}");
        assert!(run.stderr().contains("\nhint: "), "{run}");
    }
    assert_eq!(status(&world)["config"], before);
    says(&world, &["set", "--retry-now"], "is not waiting");
    assert!(events(&world, "command_accepted").is_empty());
    verb(&world, &["cancel", "--now"]).assert_code(0);
}

#[test]
fn a_wait_for_the_provider_is_shown_and_can_be_ended() {
    let world = World::in_memory();
    let result = claude_result("<promise>COMPLETE</promise>");
    world.write("result.jsonl", result + "\n");
    let script = "if-file limited stream result.jsonl\nif-file limited exit 0\ntouch limited\nstream-limit claude 1h";
    background(
        &world,
        script,
        &["--backend", "claude", "--permissions", "edit"],
    );
    eventually("the wait", SOON, || status(&world)["status"] == "waiting");
    let block = verb(&world, &["status"]).stdout();
    assert!(block.contains("  Waiting until: "), "{block}");
    says(&world, &["set", "--retry-now"], "trying again now");
    eventually("its end", SOON, || state(&world)["completed"] == true);
    assert_eq!(
        state(&world)["exit_reason"]["type"],
        "completion_promise_detected"
    );
    assert_eq!(state(&world)["iteration"], 1, "the limited run was none");
}

#[test]
fn cancel_ends_everything_and_says_so_only_then() {
    let world = World::in_memory();
    let script = "spawn-child setsid pids\nspawn-child ignore-term pids\nspawn-child setsid-double-fork pids\nappend seen ${ITERATION}\nhang";
    background(&world, script, &["--kill-grace", "300ms"]);
    at_iteration(&world, 1);
    let run = verb(&world, &["cancel"]);
    // Nothing is waited for: it has said so.
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    run.assert_code(0);
    assert!(
        run.stdout()
            .contains("cancelled after 1 iteration; every process of the loop is gone"),
        "{run}"
    );
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    assert_eq!(events(&world, "stop_requested")[0]["by"], "cancel");
    says(
        &world,
        &["cancel"],
        "had already ended: cancelled; nothing to cancel",
    );
    assert_eq!(events(&world, "loop_finished").len(), 1);
}

#[test]
fn cancel_now_leaves_the_agent_no_grace() {
    let world = World::in_memory();
    let script = "ignore TERM\nappend seen ${ITERATION}\nhang";
    background(&world, script, &["--kill-grace", "5m"]);
    at_iteration(&world, 1);
    let begun = Instant::now();
    let run = verb(&world, &["cancel", "--now", "--json"]);
    run.assert_code(0);
    assert!(
        begun.elapsed() < Duration::from_secs(100),
        "{:?}",
        begun.elapsed()
    );
    let told: Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(
        (&told["answer"], &told["exit_reason"]["type"]),
        (&"effective".into(), &"user_cancelled".into())
    );
    world.assert_no_survivors();
}

#[test]
fn cancel_works_in_a_pause_and_in_a_gate() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    verb(&world, &["pause"]).assert_code(0);
    world.write("go-1", "");
    eventually("the pause", SOON, || status(&world)["status"] == "paused");
    says(&world, &["cancel"], "cancelled after 1 iteration");
    world.assert_no_survivors();
    let world = World::in_memory();
    background(
        &world,
        "promise",
        &["--verify", "touch gate; sleep 600", "--kill-grace", "1s"],
    );
    eventually("the gate", SOON, || world.has("gate"));
    says(&world, &["cancel"], "cancelled");
    world.assert_no_survivors();
}

/// Kills host and guard at once: nobody is left to end the agent.
fn kill_both(world: &World) {
    let guard = events(world, "run_started")[0]["guard_pid"]
        .as_i64()
        .unwrap();
    let host = status(world)["pid"].as_i64().unwrap();
    let (host, guard) = (i32::try_from(host).unwrap(), i32::try_from(guard).unwrap());
    // A stopped host cannot answer the death of its guard.
    process::stop(host);
    process::send(guard, Signal::SIGKILL);
    process::send(host, Signal::SIGKILL);
    process::assert_gone(host, SOON);
    process::assert_gone(guard, SOON);
}

#[test]
fn cancelling_a_dead_loop_records_it_and_ends_what_was_left() {
    let world = World::in_memory();
    background(
        &world,
        "append seen ${ITERATION}\nspawn-child setsid pids\nhang",
        &[],
    );
    at_iteration(&world, 1);
    eventually("the child", SOON, || world.has("pids"));
    kill_both(&world);
    // The first thread of a killed process is gone before the last, which holds the locks.
    eventually("the locks to be free", SOON, || {
        status(&world)["status"] == "interrupted"
    });
    let block = verb(&world, &["status"]).stdout();
    assert!(
        block.contains("Exit reason: Interrupted (resume with: descartes loop resume)"),
        "{block}"
    );
    assert!(!world.processes().is_empty(), "the agent lives on");
    let run = verb(&world, &["cancel"]);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    run.assert_code(0);
    assert!(
        run.stdout()
            .contains("was not running: recorded as cancelled; ended "),
        "{run}"
    );
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    assert_eq!(
        state(&world)["iteration"],
        1,
        "its number is not used again"
    );
    let resumed = verb(&world, &["resume", "--detach"]);
    resumed.assert_code(0);
    at_iteration(&world, 2);
    verb(&world, &["cancel", "--now"]).assert_code(0);
    world.assert_no_survivors();
}

#[test]
fn what_a_stopped_loop_is_told_holds_from_its_resume_on() {
    let world = World::in_memory();
    world.write("go-1", "");
    start(&world, PATIENT, &["-m", "1", "--name", "auth"]).assert_code(2);
    says(
        &world,
        &["say", "mind the gap"],
        "note recorded; the loop is not running",
    );
    says(
        &world,
        &["set", "--max-iterations", "3"],
        "changed: max_iterations; the loop is not running",
    );
    says(&world, &["pause"], "pause recorded");
    says(
        &world,
        &["unpause"],
        "no longer paused; the loop is not running, continue it with `descartes loop resume`",
    );
    says(
        &world,
        &["unpause"],
        "not paused: nothing to do; the loop is not running",
    );
    says(&world, &["pause"], "pause recorded");
    assert_eq!(state(&world)["config"]["max_iterations"], 3);
    assert_eq!(state(&world)["completed"], true, "it is still over");
    verb(&world, &["resume", "--detach"]).assert_code(0);
    eventually("the pause", SOON, || status(&world)["status"] == "paused");
    assert!(!seen(&world, 2));
    says(&world, &["unpause"], "continuing");
    at_iteration(&world, 2);
    eventually("the prompt", SOON, || world.has("prompt-2"));
    assert!(world.read("prompt-2").contains("mind the gap"));
    verb(&world, &["cancel", "--now"]).assert_code(0);
}

#[test]
fn a_cancelled_loop_is_not_paused_and_hears_no_note() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    verb(&world, &["cancel", "--now"]).assert_code(0);
    let refused = verb(&world, &["pause"]);
    refused.assert_code(65);
    assert!(
        refused.stderr().contains("the loop was cancelled"),
        "{refused}"
    );
    assert!(
        refused.stderr().contains("descartes loop resume"),
        "{refused}"
    );
    says(
        &world,
        &["say", "mind the gap"],
        "nobody hears it now: the loop was cancelled",
    );
    let status = verb(&world, &["status"]);
    assert!(
        status
            .stdout()
            .contains("  State: Cancelled\n  Completed: Yes\n"),
        "{status}"
    );
    world.assert_no_survivors();
}

#[test]
fn a_limit_that_is_reached_already_says_that_the_loop_ends_and_that_no_note_arrives() {
    let world = World::in_memory();
    world.write("go-1", "");
    background(&world, PATIENT, &["-m", "9"]);
    at_iteration(&world, 2);
    says(&world, &["set", "-m", "5"], "changed: max_iterations\n");
    says(
        &world,
        &["say", "mind the gap"],
        "accepted: iteration 3 gets the note",
    );
    says(
        &world,
        &["set", "-m", "1"],
        "changed: max_iterations; the loop ends after this iteration (2), and nobody gets the note that waits",
    );
    says(
        &world,
        &["say", "and the step"],
        "iteration 2 is the last: nobody gets the note unless the limit is raised (descartes loop set --max-iterations 3)",
    );
    world.write("go-2", "");
    eventually("the end", SOON, || status(&world)["completed"] == true);
    verb(&world, &["status"]).assert_code(0);
    let page = descartes(&world, &["report", "--output", "-"]).stdout();
    assert_eq!(
        page.matches("not delivered: the loop ended before the next prompt")
            .count(),
        2,
        "{page}"
    );
    assert!(!page.contains("waiting for the next prompt"), "{page}");
    world.assert_no_survivors();
}

#[test]
fn a_done_loop_takes_no_more_orders() {
    let world = World::in_memory();
    start(&world, "promise", &[]).assert_code(0);
    for arguments in [
        &["say", "x"][..],
        &["pause"],
        &["unpause"],
        &["set", "-m", "9"],
    ] {
        let run = verb(&world, arguments);
        run.assert_code(65);
        assert!(run.stderr().contains("the loop is done"), "{run}");
        assert!(
            run.stderr()
                .contains("start another with `descartes loop start`"),
            "{run}"
        );
    }
    says(&world, &["cancel"], "had already ended");
    assert_eq!(
        state(&world)["exit_reason"]["type"],
        "completion_promise_detected"
    );
}

fn socket(world: &World) -> PathBuf {
    let host = std::fs::read_to_string(loop_dir(world).join("host.json")).unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    host["socket"].as_str().unwrap().into()
}

#[test]
fn a_loop_whose_socket_is_gone_can_still_be_ended() {
    let world = World::in_memory();
    background(&world, PATIENT, &["--kill-grace", "1s"]);
    at_iteration(&world, 1);
    // Something else stands in its place, so that it cannot be listened on anew.
    let other = world.write("other", "");
    std::fs::rename(other, socket(&world)).unwrap();
    let run = verb(&world, &["pause"]);
    run.assert_code(65);
    assert!(run.stderr().contains("no control socket"), "{run}");
    assert!(run.stderr().contains("hint: "), "{run}");
    let run = verb(&world, &["cancel"]);
    run.assert_code(0);
    assert!(run.stderr().contains("SIGTERM"), "{run}");
    assert!(
        run.stdout().contains("every process of the loop is gone"),
        "{run}"
    );
    assert_eq!(state(&world)["exit_reason"]["type"], "user_cancelled");
    world.assert_no_survivors();
}

#[test]
fn garbage_on_the_socket_is_an_error_and_not_an_answer() {
    let world = World::in_memory();
    background(&world, PATIENT, &[]);
    at_iteration(&world, 1);
    let path = socket(&world);
    let real = path.with_extension("real");
    std::fs::hard_link(&path, &real).unwrap();
    let other = path.with_extension("other");
    let listener = UnixListener::bind(&other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let liar = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Who sees that it is not the loop's host may be gone already.
        std::io::Write::write_all(&mut stream, b"\x1b[2J<html>\n").ok();
        let mut request = String::new();
        std::io::Read::read_to_string(&mut stream, &mut request).ok();
    });
    let run = verb(&world, &["say", "hello"]);
    liar.join().unwrap();
    run.assert_code(65);
    assert!(!run.stderr().contains('\x1b'), "{run}");
    std::fs::rename(&real, &path).unwrap();
    says(&world, &["say", "hello"], "accepted");
    verb(&world, &["cancel", "--now"]).assert_code(0);
}
