//! Flags that say where a loop works, how it is called and how it is shown.

use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{CLAIMS, descartes, events, json_lines, loop_dir, loops, start, state};

const SOON: Duration = descartes_testkit::PATIENCE;

#[test]
fn working_dir_is_where_the_agent_and_the_gates_run() {
    let world = World::in_memory();
    std::fs::create_dir(world.path("sub")).unwrap();
    start(
        &world,
        "touch here\npromise",
        &["-w", "sub", "--verify", "test -e here"],
    )
    .assert_code(0);
    assert!(world.has("sub/here") && world.has("sub/.descartes/loop-state.json"));
    assert!(!world.has(".descartes"));
}

#[test]
fn state_file_may_lie_elsewhere() {
    let world = World::in_memory();
    start(&world, CLAIMS, &["-s", "states/one.json"]).assert_code(0);
    assert!(world.has("states/one.json"));
    assert!(!world.has(".descartes/loop-state.json"));
    // As the only one of its directory it needs no name.
    for words in [&["status"][..], &["logs"], &["history"]] {
        descartes(&world, &[&["loop"], words].concat()).assert_code(0);
    }
    let resumed = descartes(&world, &["loop", "resume"]);
    resumed.assert_code(0);
    assert!(resumed.stderr().contains("already done"), "{resumed}");
}

#[test]
fn a_file_in_the_place_of_the_state_folder_is_told_and_stops_nothing() {
    let world = World::in_memory();
    let agent = "@1 rm .descartes\n@1 touch .descartes\n@1-3 print working\n@4- promise";
    let run = start(&world, agent, &[]);
    run.assert_code(0);
    for (words, times) in [
        ("the lock next to the state file cannot be kept", 1),
        // And once more at the end.
        ("the state file is not up to date", 2),
    ] {
        assert_eq!(run.stdout().matches(words).count(), times, "{words}\n{run}");
    }
    assert!(world.path(".descartes").is_file(), "the agent's file stays");
    assert_eq!(events(&world, "iteration_finished").len(), 4);
}

#[test]
fn nothing_that_was_made_ahead_is_left_when_a_loop_is_over() {
    let world = World::in_memory();
    start(&world, "@1-2 print working\n@3- promise", &[]).assert_code(0);
    let entries = |folder: &str| {
        let names = std::fs::read_dir(loop_dir(&world).join(folder)).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(entries("runs"), ["0001", "0002", "0003"]);
    assert_eq!(
        entries("prompts").len(),
        3,
        "one each, and nothing half-made"
    );
}

#[test]
fn name_is_for_lists_and_views() {
    let world = World::in_memory();
    let run = start(&world, CLAIMS, &["--name", "auth"]);
    assert_eq!(state(&world)["name"], "auth");
    assert!(run.stdout().contains("loop auth"), "{run}");
}

#[test]
fn a_held_state_file_is_refused_with_the_loops_id_pid_and_age() {
    let world = World::in_memory();
    let wait = "touch begun\nwait-file go\npromise";
    start(&world, wait, &["--detach"]).assert_code(0);
    eventually("the agent", SOON, || world.has("begun"));
    let id = state(&world)["loop_id"].as_str().unwrap().to_owned();
    let status = descartes(&world, &["loop", "status", "--json"]).stdout();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let pid = &status["pid"];
    let again = start(&world, CLAIMS, &[]);
    let resumed = descartes(&world, &["loop", "resume"]);
    for refused in [&again, &resumed] {
        refused.assert_code(65);
        let said = refused.stderr();
        let held = format!("/.descartes/loop-state.json is held by loop {id} (pid {pid}, for ");
        assert!(said.contains(&held), "{said}");
        assert!(said.contains(&format!("loop cancel {id}")), "{said}");
    }
    assert!(again.stderr().contains("another --state-file"), "{again}");
    assert!(!resumed.stderr().contains("--state-file"), "{resumed}");
    world.write("go", "");
    eventually("its end", SOON, || state(&world)["completed"] == true);
}

#[test]
fn force_starts_anew_and_keeps_the_old_file() {
    let world = World::in_memory();
    start(&world, CLAIMS, &[]).assert_code(0);
    let first = state(&world)["loop_id"].clone();
    start(&world, "print hm", &["--force", "-m", "1"]).assert_code(2);
    let unfinished = start(&world, CLAIMS, &[]);
    unfinished.assert_code(65);
    assert!(
        unfinished.stderr().contains("--force") && unfinished.stderr().contains("resume"),
        "{unfinished}"
    );
    assert_ne!(state(&world)["loop_id"], first);
    let kept = std::fs::read_dir(world.path(".descartes"))
        .unwrap()
        .flatten();
    let kept = kept.filter(|file| {
        file.file_name()
            .to_string_lossy()
            .starts_with("loop-state.json.2")
    });
    assert_eq!(kept.count(), 1);
}

#[test]
fn dry_run_shows_everything_and_writes_nothing() {
    let world = World::in_memory();
    let flags = [
        "--dry-run",
        "--verify",
        "cargo test",
        "-m",
        "7",
        "-p",
        "mend the auth",
    ];
    let run = start(&world, "touch ran", &flags);
    run.assert_code(0);
    for words in [
        "descartes-scripted-agent PROMPT",
        "mend the auth",
        "cargo test",
        "at most 7",
        "--verify",
    ] {
        assert!(run.stdout().contains(words), "{words}: {run}");
    }
    assert!(std::fs::read_dir(world.project()).unwrap().next().is_none());
    assert!(loops(&world).is_empty());
}

#[test]
fn a_dry_run_tells_of_an_old_state_file_unless_it_is_set_aside() {
    let world = World::in_memory();
    start(&world, "promise", &[]).assert_code(0);
    let dry = start(&world, "promise", &["--dry-run"]);
    let out = dry.stdout();
    let lines: Vec<&str> = out.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("state file"))
        .unwrap();
    assert!(
        lines[at + 1].contains("the old one is kept next to it"),
        "{dry}"
    );
    assert!(lines[at + 2].contains("done when"), "{dry}");
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    let refused = start(&world, "promise", &["--dry-run"]);
    assert!(
        refused.stdout().contains("belongs to a loop that"),
        "{refused}"
    );
    let forced = start(&world, "promise", &["--dry-run", "--force"]);
    assert!(!forced.stdout().contains("belongs to a loop"), "{forced}");
}

#[test]
fn a_dry_run_is_refused_as_the_start_would_be() {
    let world = World::in_memory();
    for (flags, words) in [
        (["--command", "no-such-agent-here"], "no-such-agent-here"),
        (["--verify", "no-such-gate-here"], "no-such-gate-here"),
    ] {
        let command = ["loop", "start", "-p", "go", "--command", "true"];
        let typed: Vec<&str> = if flags[0] == "--command" {
            [&command[..4], &flags].concat()
        } else {
            [&command[..], &flags].concat()
        };
        let real = descartes(&world, &typed);
        let dry = descartes(&world, &[&typed[..], &["--dry-run"]].concat());
        assert!(dry.stdout().contains("Plan"), "{dry}");
        assert!(dry.stderr().contains(words), "{dry}");
        assert_eq!((dry.code(), dry.stderr()), (real.code(), real.stderr()));
        assert_ne!(dry.code(), Some(0));
    }
}

#[test]
fn json_gives_every_record_as_a_line_and_nothing_else() {
    let world = World::in_memory();
    let run = start(
        &world,
        "print hello\npromise",
        &["--json", "--verify", "true"],
    );
    run.assert_code(0);
    let records = json_lines(&run.stdout());
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect();
    for kind in [
        "loop_created",
        "run_started",
        "agent_ended",
        "gate_finished",
        "iteration_finished",
        "loop_finished",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let numbers: Vec<u64> = records
        .iter()
        .map(|record| record["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record["crc"].is_null()));
    assert_eq!(run.stderr(), "");
}

#[test]
fn plain_lines_tell_the_story_around_the_agents_bytes() {
    let world = World::in_memory();
    let script = "err a complaint\n@1 printf no end\n@2- promise";
    let run = start(
        &world,
        script,
        &[
            "--verify",
            "test -e proof || { echo missing proof; exit 9; }",
            "-m",
            "2",
        ],
    );
    run.assert_code(2);
    let out = run.stdout();
    for words in [
        "[descartes] iteration 1 of at most 2\n",
        "no end\n[descartes] agent ended",
        "gate red: test -e proof",
        "exit code 9",
        "[descartes]   | missing proof\n",
        "not done: iteration limit",
        "descartes loop resume --max-iterations 4",
    ] {
        assert!(out.contains(words), "{words}: {run}");
    }
    assert!(run.stderr().contains("a complaint"), "{run}");
    assert!(!out.contains('\x1b'));
}

#[test]
fn color_is_for_terminals_unless_asked_for() {
    let painted = descartes(&World::in_memory(), &["--color", "always", "loop", "start"]);
    assert!(painted.stderr().contains("\x1b["), "{painted}");
    let mut command = World::in_memory().descartes(["loop", "start"]);
    command.env("CLICOLOR", "1");
    let world = World::in_memory();
    let plain = world.run(world.descartes(["loop", "start"]));
    assert!(!plain.stderr().contains('\x1b'), "{plain}");
}

#[test]
fn show_thinking_changes_nothing_for_plain_text() {
    let run = start(
        &World::in_memory(),
        "print hm\npromise",
        &["--show-thinking"],
    );
    run.assert_code(0);
    assert!(run.stdout().contains("hm"), "{run}");
}

#[test]
fn a_dry_run_shows_the_very_prompt_that_the_agent_gets() {
    let world = World::in_memory();
    world.write("spec.md", "# Rules\n\nno tabs\n");
    world.write("PROMPT.md", "- [ ] the first\n\n- [ ] the second\n");
    for flags in [
        &["--prompt-file", "PROMPT.md", "--spec-file", "spec.md"][..],
        &["--prompt-file", "PROMPT.md", "--promise-hint", "on"],
        &["--prompt", "go", "--fresh-context", "--promise-hint", "on"],
        &[
            "--prompt",
            "go",
            "--spec-file",
            "spec.md",
            "--max-spec-tokens",
            "1",
        ],
    ] {
        let script = "save-prompt got\npromise";
        let dry = start(&world, script, &[flags, &["--dry-run"]].concat());
        dry.assert_code(0);
        let out = dry.stdout();
        let shown = out
            .lines()
            .skip_while(|line| *line != "Prompt of iteration 1");
        let shown = shown.skip(1).take_while(|line| *line != "Plan");
        let shown: Vec<&str> = shown.map(str::trim).collect();
        start(&world, script, flags).assert_code(0);
        let got = world.read("got");
        let got: Vec<&str> = got.lines().map(str::trim).collect();
        assert_eq!(shown, got, "{dry}");
    }
}
