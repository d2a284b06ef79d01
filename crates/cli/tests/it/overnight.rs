//! What happens in a night that nobody watches: gates are replaced, programs are updated, output goes to a file.

use std::io::PipeReader;
use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{claude_result, descartes, events, start};

const SOON: Duration = descartes_testkit::PATIENCE;

/// A loop whose agent claims at once, and whose gate is green once `go` is there.
fn in_its_gate(flags: &[&str]) -> World {
    let world = World::in_memory();
    let gate = "touch in-gate; while [ ! -e go ]; do sleep 0.05; done";
    let all = [
        &[
            "--detach",
            "--name",
            "auth",
            "-m",
            "1",
            "--verify",
            gate,
            "--kill-grace",
            "1s",
        ],
        flags,
    ]
    .concat();
    start(&world, "promise", &all).assert_code(0);
    eventually("the gate", SOON, || world.has("in-gate"));
    world
}

#[test]
fn a_gate_that_replaces_the_one_that_runs_decides() {
    let world = in_its_gate(&[]);
    // Nobody waits for the old one: it would never end.
    let set = ["loop", "set", "--verify", "touch new-gate; false"];
    descartes(&world, &set).assert_code(0);
    eventually("the end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
    assert!(world.has("new-gate"), "it ran");
    let ended = &events(&world, "iteration_finished")[0];
    assert_eq!(ended["verdict"], "refused", "{ended}");
    world.assert_no_survivors();
}

#[test]
fn a_longer_time_limit_holds_for_the_gate_that_runs() {
    let world = in_its_gate(&["--verify-timeout", "2s"]);
    let set = ["loop", "set", "--verify-timeout", "10m"];
    descartes(&world, &set).assert_code(0);
    std::thread::sleep(Duration::from_secs(3));
    world.write("go", "");
    eventually("the end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
    let ended = &events(&world, "iteration_finished")[0];
    assert_eq!(ended["verdict"], "promise", "{ended}");
}

/// An agent for Claude's profile: this shell script, then a result.
fn claude(world: &World, script: &str) {
    let result = claude_result("thinking");
    world.program(
        "claude",
        &format!("#!/bin/sh\ncat > /dev/null\n{script}\ncat <<'END'\n{result}\nEND\n"),
    );
}

#[test]
fn an_agent_whose_program_is_away_for_a_moment_is_tried_again() {
    let world = World::in_memory();
    world.write("hold", "");
    let script = "echo x >> work\nwhile [ -e hold ]; do sleep 0.05; done";
    let program = world.program("agent", &format!("#!/bin/sh\n{script}\n"));
    let words = "loop start --command agent --prompt go -m 4 --detach --name auth";
    let words: Vec<&str> = words.split(' ').collect();
    descartes(&world, &words).assert_code(0);
    eventually("the first run", SOON, || world.has("work"));
    // As updaters have it.
    let away = world.root().join("away");
    std::fs::rename(&program, &away).unwrap();
    std::fs::remove_file(world.path("hold")).unwrap();
    let failed = |event: &serde_json::Value| event["verdict"].to_string().contains("not found");
    eventually("a failure", SOON, || {
        events(&world, "iteration_finished").iter().any(failed)
    });
    std::fs::rename(&away, &program).unwrap();
    eventually("the end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
    let ended = &events(&world, "loop_finished")[0];
    assert_eq!(ended["reason"]["type"], "max_iterations_reached", "{ended}");
    assert!(world.read("work").lines().count() >= 2);
}

#[test]
fn an_agent_that_never_could_be_started_is_an_error_at_once() {
    let world = World::in_memory();
    let words = ["loop", "start", "--command", "nobody", "--prompt", "go"];
    let run = descartes(&world, &words);
    run.assert_code(1);
    assert!(run.stderr().contains("agent not found"), "{run}");
}

#[test]
fn our_own_output_in_the_project_is_no_progress() {
    let world = World::in_memory();
    world.git_init();
    claude(&world, "");
    let flags =
        "--backend claude --permissions edit --sandbox off --prompt go -m 9 --stall-after 2";
    let binary = descartes_testkit::descartes();
    let mut shell = world.command("sh");
    shell.args([
        "-c",
        &format!("{} loop start {flags} > run.log 2>&1", binary.display()),
    ]);
    let run = world.run(shell);
    run.assert_code(4);
    assert!(world.read("run.log").contains("stalled"), "{run}");
}

/// As `descartes … | filter | tee run.log` does, with readers that are there before the loop begins.
#[test]
fn our_own_output_through_pipes_into_the_project_is_no_progress() {
    let world = World::in_memory();
    world.git_init();
    claude(&world, "");
    let (from_loop, into_filter) = std::io::pipe().unwrap();
    let (from_filter, into_log) = std::io::pipe().unwrap();
    let log_file = std::fs::File::create(world.path("run.log")).unwrap();
    let copy = |from: PipeReader, to: Stdio| {
        let mut command = world.command("cat");
        command.stdin(from).stdout(to).spawn().unwrap()
    };
    let mut filter = copy(from_loop, into_log.into());
    let mut log = copy(from_filter, log_file.into());
    let flags =
        "--backend claude --permissions edit --sandbox off --prompt go -m 9 --stall-after 2";
    let mut looped = world.descartes(["loop", "start"]);
    looped.args(flags.split(' '));
    looped
        .stdout(into_filter.try_clone().unwrap())
        .stderr(into_filter);
    let code = looped.status().unwrap().code();
    drop(looped);
    filter.wait().unwrap();
    log.wait().unwrap();
    let told = world.read("run.log");
    assert_eq!(code, Some(4), "{told}");
    assert!(told.contains("stalled"), "{told}");
}

#[test]
fn a_budget_below_what_was_told_ends_the_run_at_once() {
    let world = World::in_memory();
    let told = r#"{"type":"assistant","message":{"id":"m","role":"assistant","usage":{"input_tokens":90000,"output_tokens":900},"content":[{"type":"text","text":"hm"}]}}"#;
    world.program(
        "claude",
        &format!(
            "#!/bin/sh\ncat > /dev/null\necho '{told}'\ntouch told\nwhile :; do sleep 1; done\n"
        ),
    );
    let words = "loop start --backend claude --permissions edit --sandbox off --prompt go --detach --name auth";
    let words: Vec<&str> = words.split(' ').collect();
    descartes(&world, &words).assert_code(0);
    eventually("the agent", SOON, || world.has("told"));
    descartes(&world, &["loop", "set", "--max-tokens", "10"]).assert_code(0);
    eventually("the end", SOON, || {
        !events(&world, "loop_finished").is_empty()
    });
    let ended = &events(&world, "loop_finished")[0];
    assert_eq!(ended["reason"]["type"], "budget_exhausted", "{ended}");
}
