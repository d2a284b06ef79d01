//! What a follower of the guide meets in the first hour: words of ours where others' were typed, names that can be
//! typed as they are shown, and reasons that name the way on.

use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::json;

use crate::common::{CLAIMS, descartes, start, state};
use crate::task_common::{graph, kill_when, repository, run, said, scud_project};

const LONG: Duration = descartes_testkit::PATIENCE;

fn roadmap(tasks: &str) -> World {
    repository("R.md", format!("# Roadmap: R\n\n## Tasks\n\n{tasks}"))
}

#[test]
fn words_of_other_loops_get_ours() {
    let world = World::in_memory();
    for (typed, hint) in [
        (
            &["roadmap", "run", "r.md", "--reset"][..],
            "descartes roadmap reset FILE",
        ),
        (
            &["roadmap", "run", "--roadmap", "r.md"],
            "descartes roadmap run FILE",
        ),
        (&["roadmap", "--status"], "descartes roadmap status FILE"),
        (&["roadmap", "run", "r.md", "-v"], "DESCARTES_LOG=debug"),
        (
            &["roadmap", "run", "r.md", "--verbose"],
            "DESCARTES_LOG=debug",
        ),
        (&["loop", "stop"], "descartes loop cancel"),
        (&["loop", "run"], "descartes loop start"),
        (&["ralph"], "descartes loop start --prompt"),
    ] {
        let refused = descartes(&world, typed);
        refused.assert_code(64);
        let said = refused.stderr();
        let hints: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("hint:"))
            .collect();
        assert!(
            hints.len() == 1 && hints[0].contains(hint),
            "{typed:?}: {said}"
        );
    }
    // As another plugin's command takes it.
    let text = "Build a REST API";
    let refused = descartes(&world, &["loop", "start", "--scud-tag", text]);
    refused.assert_code(65);
    let hint = "descartes loop start --prompt 'Build a REST API'";
    assert!(refused.stderr().contains(hint), "{refused}");
}

#[test]
fn a_first_task_file_is_one_typed_line_away() {
    let world = World::in_memory();
    world.git_init();
    let tagged = ["loop", "start", "--scud-tag", "my-feature", "--command"];
    let agent = world.agent("write a.txt x\npromise");
    let words = [&tagged[..], &[&agent]].concat();
    for empty in [false, true] {
        if empty {
            std::fs::remove_dir_all(world.path(".scud")).unwrap();
            // As `scud init` leaves it.
            world.write(".scud/tasks/tasks.scg", "");
        }
        let refused = run(&world, &words);
        refused.assert_code(65);
        let said = refused.stderr();
        let from = said.find("mkdir -p").or_else(|| said.find("printf '"));
        let line = said[from.expect(&said)..].lines().next().unwrap();
        let line = line.split("; tasks elsewhere").next().unwrap();
        let mut shell = world.command("sh");
        shell.current_dir(world.project()).args(["-c", line]);
        world.run(shell).assert_code(0);
        let graph = descartes(&world, &["graph", "--scud-tag", "my-feature"]);
        assert!(graph.stdout().contains("First task"), "{line}: {graph}");
    }
}

#[test]
fn an_attempt_that_ran_out_of_time_is_called_that_and_the_way_on_gives_it_more() {
    let world =
        roadmap("- [ ] **a**: A\n  - ralph: true\n  - timeout: 1s\n  - max_iterations: 2\n");
    let agent = world.agent("write f-${ITERATION} x\nhang");
    let words = [
        "roadmap",
        "run",
        "R.md",
        "--command",
        &agent,
        "--kill-grace",
        "100ms",
    ];
    let ended = run(&world, &words);
    ended.assert_code(6);
    let told = said(&ended);
    assert!(
        told.contains("task a: cut off: it reached its timeout of 1s"),
        "{told}"
    );
    let why = "2 of 2 attempts used: the agent was cut off: it reached its timeout of 1s";
    assert!(told.contains(why), "{told}");
    assert!(told.contains("--retry-blocked --timeout 2s"), "{told}");
    assert!(!told.contains("did not print the promise"), "{told}");
    let state = ".descartes/roadmap-R.json";
    assert!(world.has(state));
    let history = descartes(&world, &["loop", "history", "-s", state]).stdout();
    assert!(history.contains("timed out"), "{history}");
    let status = descartes(&world, &["loop", "status", "-s", state]).stdout();
    assert!(status.contains("it reached its timeout of 1s"), "{status}");
}

#[test]
fn what_a_list_prints_can_be_typed() {
    let world = roadmap("- [ ] **a**: A\n- [ ] **b**: B\n");
    let agent = world.agent("write ${DESCARTES_TASK_ID} x\nprint of ${DESCARTES_TASK_ID}\npromise");
    let words = [
        "roadmap",
        "run",
        "R.md",
        "--verify",
        "true",
        "--command",
        &agent,
    ];
    run(&world, &[&words[..], &["--name", "rr"]].concat()).assert_code(0);
    let list = descartes(&world, &["loop", "list", "--children"]).stdout();
    let row = list
        .lines()
        .find(|line| line.contains("    a "))
        .expect(&list);
    let id = row.split_whitespace().next().unwrap();
    for name in ["a", "rr/a", id] {
        let logs = descartes(&world, &["loop", "logs", name]);
        logs.assert_code(0);
        assert!(logs.stdout().contains("of a"), "{name}: {logs}");
        descartes(&world, &["loop", "status", name]).assert_code(0);
    }
    // A name in two loops is an error that lists both.
    world.write(
        "R.md",
        world
            .read("R.md")
            .replace("[x]", "[ ]")
            .replace("**a**: A", "**a**: Again"),
    );
    run(&world, &[&words[..], &["--name", "rs"]].concat());
    let both = descartes(&world, &["loop", "logs", "a"]);
    both.assert_code(65);
    assert!(
        both.stderr().contains("rr/a") && both.stderr().contains("rs/a"),
        "{both}"
    );
}

#[test]
fn an_interrupted_task_loop_does_not_count_on() {
    let world = roadmap("- [ ] **a**: A\n");
    let agent = world.agent("touch ../../../begun\nhang");
    let words = ["roadmap", "run", "R.md", "--command", &agent];
    kill_when(&world, &words, "an agent works", || {
        world.state().join("begun").exists()
    });
    eventually("its agent is gone", LONG, || world.processes().is_empty());
    let file = ".descartes/roadmap-R.json";
    let status = descartes(&world, &["loop", "status", "-s", file]).stdout();
    assert!(status.contains("Interrupted"), "{status}");
    assert!(status.contains("a A (attempt 1, interrupted)"), "{status}");
    let rows = descartes(&world, &["roadmap", "status", "R.md"]).stdout();
    assert!(rows.contains("0 iterations, interrupted"), "{rows}");
    assert!(!rows.contains("1 iteration"), "{rows}");
}

#[test]
fn the_guides_own_state_file_is_shown_as_it_is_written() {
    let world = World::in_memory();
    let by_hand = json!({
        "version": "1.0", "iteration": 3,
        "config": {"command": "claude", "prompt": "go", "completion_promise": "COMPLETE"},
        "started_at": "2025-01-15T10:30:00Z",
        "last_iteration_at": "2025-01-15T10:35:00Z",
        "completed": false,
        "exit_reason": {"type": "running"},
        "iteration_summaries": [{
            "iteration": 0, "started_at": "2025-01-15T10:30:00Z", "completed_at": "2025-01-15T10:32:00Z",
            "exit_code": 0, "output_preview": "hm", "promise_checked": true,
        }],
    });
    world.write(".descartes/loop-state.json", by_hand.to_string());
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("Last iteration: 2025-01-15T10:35:00Z"),
        "{status}"
    );
    assert!(!status.contains("unnamed (none)"), "{status}");
}

#[test]
fn a_task_loop_shows_the_agents_that_its_tasks_ask_for() {
    let world = roadmap("- [ ] **a**: A\n  - agent: ./worker.sh\n");
    world.program(
        "worker.sh",
        "#!/bin/sh\necho x > a\necho '<promise>COMPLETE</promise>'\n",
    );
    std::fs::rename(world.bin().join("worker.sh"), world.path("worker.sh")).unwrap_or_default();
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "agent"]);
    let ended = run(&world, &["roadmap", "run", "R.md", "--verify", "true"]);
    ended.assert_code(0);
    let told = said(&ended);
    let head = told.lines().find(|line| line.contains("loop ")).unwrap();
    assert!(
        head.contains("./worker.sh") && !head.contains("claude"),
        "{told}"
    );
    let file = ".descartes/roadmap-R.json";
    let status = descartes(&world, &["loop", "status", "-s", file]).stdout();
    assert!(status.contains("Command: ./worker.sh"), "{status}");
}

#[test]
fn check_and_run_find_the_same_unknown_agents() {
    let world = roadmap(
        "- [ ] **a**: A\n  - cli: claud\n- [ ] **b**: B\n  - agent: ./nosuch.sh\n- [ ] **c**: C\n  - cli: gemini\n",
    );
    let path = |words: &[&str]| {
        let mut command = world.descartes(words);
        command.env("PATH", "/usr/bin:/bin");
        world.run(command)
    };
    let checked = path(&["roadmap", "check", "R.md"]);
    checked.assert_code(1);
    let told = said(&checked);
    let unknown = "task a: agent not found: claud (searched in PATH)";
    for words in [
        unknown,
        "did you mean `claude`?",
        "task b: agent not found: ./nosuch.sh",
        "note: task c: agent not found: gemini",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let refused = path(&["roadmap", "run", "R.md"]);
    refused.assert_code(1);
    let told = refused.stderr();
    assert!(
        told.contains(unknown) && told.contains("did you mean `claude`?"),
        "{told}"
    );
    let refused = path(&["roadmap", "run", "R.md", "--cli", "claud"]);
    refused.assert_code(64);
    assert!(
        refused.stderr().contains("did you mean `claude`?"),
        "{refused}"
    );
    // One that is known and not installed here is no finding.
    world.write(
        "R.md",
        "# Roadmap: R\n\n## Tasks\n\n- [ ] **c**: C\n  - cli: gemini\n",
    );
    path(&["roadmap", "check", "R.md"]).assert_code(0);
}

#[test]
fn a_script_whose_interpreter_is_missing_begins_no_loop() {
    let world = World::in_memory();
    let agent = world.program("agent", "#!/no/such/python\nprint('hi')\n");
    let agent = agent.display().to_string();
    let refused = descartes(
        &world,
        &["loop", "start", "--prompt", "go", "--command", &agent],
    );
    refused.assert_code(1);
    let told = refused.stderr();
    assert!(
        told.contains("its first line asks for /no/such/python, which is not there"),
        "{told}"
    );
    assert!(
        told.contains("hint: install that, or change the `#!` line"),
        "{told}"
    );
    assert!(!world.has(".descartes/loop-state.json"));
}

#[test]
fn waits_are_told_in_full_and_no_nudge_stands_above_an_ending() {
    let world = World::in_memory();
    let flags = ["--max-failures", "2", "--stall-after", "2"];
    let ended = start(&world, "exit 3", &flags);
    ended.assert_code(7);
    let told = said(&ended);
    assert!(told.contains("waiting 1s, "), "{told}");
    assert!(!told.contains("the agent is told"), "{told}");
}

#[test]
fn a_detached_loop_is_one_line_and_its_id() {
    let world = World::in_memory();
    let ended = start(&world, CLAIMS, &["--detach", "--name", "auth"]);
    ended.assert_code(0);
    assert_eq!(
        ended.stdout().trim(),
        state(&world)["loop_id"].as_str().unwrap()
    );
    let told = ended.stderr();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.contains("loop auth is running") && told.contains("descartes loop logs auth -f"),
        "{told}"
    );
    eventually("its end", LONG, || state(&world)["completed"] == true);
}

#[test]
fn limits_that_were_raised_again_and_again_are_told_once() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    for limit in ["2", "3", "4"] {
        descartes(&world, &["loop", "resume", "-m", limit]).assert_code(2);
    }
    let status = descartes(&world, &["loop", "status"]).stdout();
    let told: Vec<&str> = status
        .lines()
        .filter(|line| line.contains("max_iterations:"))
        .collect();
    assert_eq!(told.len(), 1, "{status}");
    assert!(
        told[0].contains("max_iterations: 1 -> 4, by resume (3 times)"),
        "{status}"
    );
    // All of them stay on record.
    assert_eq!(state(&world)["changes"].as_array().unwrap().len(), 3);
}

#[test]
fn an_accepted_environment_is_told_by_its_names() {
    let world = World::in_memory();
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    let mut file = state(&world);
    file["config"]["backend"]["environment"] = json!({"FOO": "s3cret"});
    world.write(".descartes/loop-state.json", file.to_string());
    let words = ["loop", "resume", "--accept-edits", "-m", "2"];
    descartes(&world, &words).assert_code(2);
    let status = descartes(&world, &["loop", "status"]).stdout();
    assert!(
        status.contains("backend.environment: [] -> [FOO], by state file"),
        "{status}"
    );
    assert!(
        !status.contains("environment_names") && !status.contains("s3cret"),
        "{status}"
    );
}

#[test]
fn what_a_run_leaves_in_scuds_folder_is_not_in_gits_way() {
    let world = scud_project(graph("1 | One | P | 1 | M", ""));
    let agent = world.agent("write a.txt x\npromise");
    let words = [
        "loop",
        "start",
        "--scud-tag",
        "auth",
        "--verify",
        "true",
        "--command",
        &agent,
    ];
    run(&world, &words).assert_code(0);
    assert!(world.has(".scud/logs") && world.has(".scud/swarm"));
    let status = world.git(["status", "--porcelain", "--untracked-files=all"]);
    assert!(
        !status.contains(".scud/logs") && !status.contains(".scud/swarm"),
        "{status}"
    );
}
