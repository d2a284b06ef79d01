//! Flags that say which agent is run, and what it is given.

use std::process::Stdio;
use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{
    claude_result, descartes, events, loop_dir, prints, start, start_command, state,
};

#[test]
fn command_is_split_as_a_shell_would_and_run_without_one() {
    let world = World::in_memory();
    let command = r#"sh -c 'printf "%s\n" "$@" > seen' sh 'two words' '$HOME' '*'"#;
    let run = descartes(&world, &["loop", "-c", command, "-p", "go", "--no-promise"]);
    run.assert_code(0);
    assert_eq!(world.read("seen"), "two words\n$HOME\n*\ngo\n");
}

#[test]
fn prompt_reaches_the_agent() {
    let world = World::in_memory();
    start(
        &world,
        "save-prompt seen\npromise",
        &["-p", "mend the auth"],
    )
    .assert_code(0);
    assert_eq!(world.read("seen").trim_end(), "mend the auth");
}

#[test]
fn prompt_file_is_read_again_at_every_iteration() {
    let world = World::in_memory();
    world.write("PROMPT.md", "first");
    let script = "save-prompt seen-${ITERATION}\n@1 write PROMPT.md second\n@2 promise";
    start(&world, script, &["--prompt-file", "PROMPT.md"]).assert_code(0);
    assert_eq!(world.read("seen-1").trim_end(), "first");
    assert!(world.read("seen-2").starts_with("second"));
}

#[test]
fn a_prompt_or_spec_file_that_is_being_saved_ends_nothing() {
    let world = World::in_memory();
    world.write("PROMPT.md", "first");
    world.write("SPEC.md", "old spec");
    let script = "save-prompt seen\n@1 sh : > PROMPT.md; rm SPEC.md\n\
         @2- sh grep -q second seen && grep -q 'new spec' seen && touch both; true\n\
         @2- if-file both promise";
    let flags = ["--prompt-file", "PROMPT.md", "--spec-file", "SPEC.md"];
    let mut running = start_command(&world, script, &flags).spawn().unwrap();
    eventually("iteration 1 is over", Duration::from_secs(100), || {
        let file = world.path(".descartes/loop-state.json");
        file.exists() && state(&world)["iteration"].as_u64() >= Some(1)
    });
    world.write("SPEC.md", "new spec");
    world.write("PROMPT.md", "second");
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn a_loop_goes_on_without_its_prompt_and_spec_files_and_says_so_once() {
    let world = World::in_memory();
    world.write("TASK.md", "do it");
    world.write("SPEC.md", "the spec");
    let script = "save-prompt seen-${ITERATION}\n@1 rm TASK.md\n@1 rm SPEC.md\n@3 promise";
    let flags = ["--prompt-file", "TASK.md", "--spec-file", "SPEC.md"];
    let ended = start(&world, script, &flags);
    ended.assert_code(0);
    let seen = world.read("seen-3");
    assert!(
        seen.contains("do it") && seen.contains("the spec"),
        "{seen}"
    );
    let warnings = events(&world, "warning");
    let told = warnings.iter().map(|warning| warning.to_string());
    let told: Vec<String> = told.filter(|warning| warning.contains("TASK.md")).collect();
    assert_eq!(told.len(), 1, "{warnings:?}");
    assert!(
        told[0].contains("SPEC.md") && told[0].contains("iteration before"),
        "{told:?}"
    );
}

#[test]
fn a_prompt_file_that_is_gone_when_a_loop_is_resumed_ends_it_and_the_state_file_says_so() {
    let world = World::in_memory();
    world.write("TASK.md", "do it");
    let flags = ["--prompt-file", "TASK.md", "-m", "1"];
    start(&world, "rm TASK.md", &flags).assert_code(2);
    let ended = descartes(&world, &["loop", "resume", "-m", "2"]);
    ended.assert_code(1);
    assert!(ended.stdout().contains("cannot read the prompt"), "{ended}");
    let state = state(&world);
    assert_eq!(state["iteration"], 1);
    assert_eq!(state["completed"], true);
    assert!(
        state["exit_reason"].to_string().contains("TASK.md"),
        "{state}"
    );
}

#[test]
fn prompt_file_dash_reads_standard_input_once() {
    let world = World::in_memory();
    world.write("task", "from a pipe");
    let script = "save-prompt seen-${ITERATION}\n@1 print hm\n@2 promise";
    let mut command = start_command(&world, script, &["--prompt-file", "-"]);
    command.stdin(std::fs::File::open(world.path("task")).unwrap());
    world.run(command).assert_code(0);
    assert_eq!(world.read("seen-1").trim_end(), "from a pipe");
    assert!(world.read("seen-2").starts_with("from a pipe"));
}

#[test]
fn prompt_mode_is_the_way_the_prompt_goes() {
    for mode in ["arg", "stdin", "env", "file"] {
        let world = World::in_memory();
        let script = format!("save-prompt seen {mode}\npromise");
        start(&world, &script, &["--prompt-mode", mode]).assert_code(0);
        assert_eq!(world.read("seen").trim_end(), "go", "{mode}");
    }
    let world = World::in_memory();
    let agent = world.agent("dump-argv seen\npromise");
    let run = descartes(
        &world,
        &[
            "loop",
            "start",
            "--command",
            &agent,
            "--prompt-mode",
            "none",
        ],
    );
    run.assert_code(0);
    assert!(!world.read("seen").contains("go"));
}

#[test]
fn a_large_prompt_goes_by_standard_input() {
    let world = World::in_memory();
    world.write("big.md", "x".repeat(5_000_000));
    let flags = ["--prompt-file", "big.md"];
    start(&world, "read-stdin-to seen\npromise", &flags).assert_code(0);
    assert_eq!(world.read("seen").trim_end().len(), 5_000_000);
}

#[test]
fn env_is_for_the_agent_alone_and_written_nowhere() {
    let world = World::in_memory();
    let flags = [
        "--env",
        "API_KEY=s3cret-value",
        "--verify",
        "env > gate-env",
    ];
    start(&world, "dump-env seen\npromise", &flags).assert_code(0);
    assert!(world.read("seen").contains("API_KEY=s3cret-value"));
    assert!(!world.read("gate-env").contains("s3cret-value"));
    let written = walk(&world.state())
        .into_iter()
        .chain(walk(&world.path(".descartes")));
    for file in written {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("s3cret-value"),
            "{}",
            file.display()
        );
    }
    assert_eq!(
        state(&world)["config"]["backend"]["environment_names"][0],
        "API_KEY"
    );
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.is_file())
        .collect()
}

#[test]
fn backend_model_and_permissions_become_the_agents_own_flags() {
    let world = World::in_memory();
    let script = format!(
        "dump-argv seen\n{}",
        prints(&claude_result("<promise>COMPLETE</promise>"))
    );
    let flags = [
        "--backend",
        "claude",
        "--model",
        "opus-9",
        "--permissions",
        "edit",
    ];
    start(&world, &script, &flags).assert_code(0);
    let argv = world.read("seen");
    for word in [
        "--output-format",
        "stream-json",
        "--model",
        "opus-9",
        "acceptEdits",
    ] {
        assert!(argv.lines().any(|line| line == word), "{word}: {argv}");
    }
    assert_eq!(state(&world)["config"]["backend"]["backend_type"], "claude");
}

#[test]
fn the_backend_is_guessed_from_the_command() {
    let world = World::in_memory();
    let agent = descartes_testkit::scripted_agent().display().to_string();
    let script = world.script(&prints(&claude_result("<promise>COMPLETE</promise>")));
    let program = format!(
        "#!/bin/sh\nSCRIPTED_AGENT_FILE={} exec {agent} \"$@\"\n",
        script.display()
    );
    world.program("claude", &program);
    let run = descartes(
        &world,
        &["loop", "-c", "claude", "-p", "go", "--permissions", "edit"],
    );
    run.assert_code(0);
    assert_eq!(
        state(&world)["config"]["backend"]["output_format"],
        "stream-json"
    );
    assert!(
        run.stdout().contains("<promise>COMPLETE</promise>"),
        "{run}"
    );
    assert!(!run.stdout().contains("session_id"), "{run}");
}

#[test]
fn an_agent_that_would_be_denied_its_tools_is_refused_before_it_starts() {
    let world = World::in_memory();
    let run = start(&world, "touch ran", &["--backend", "claude"]);
    run.assert_code(65);
    assert!(run.stderr().contains("--permissions"), "{run}");
    assert!(!world.has("ran") && !world.has(".descartes"));
}

#[test]
fn fallback_takes_over_from_an_agent_that_is_limited() {
    let world = World::in_memory();
    let second = world.agent("touch second\npromise");
    let flags = [
        "--backend",
        "claude",
        "--permissions",
        "edit",
        "--fallback",
        &second,
    ];
    start(&world, "stream-limit claude 1h", &flags).assert_code(0);
    assert!(world.has("second"));
    assert_eq!(events(&world, "run_started")[1]["agent"], 1);
}

#[test]
fn fresh_context_and_iteration_context_decide_on_the_block() {
    let script = "save-prompt seen-${ITERATION}\n@1 print hm\n@2 promise";
    for (variable, flags, told) in [
        ("off", &[][..], true),
        ("off", &["--fresh-context"], false),
        ("on", &[], false),
        ("on", &["--iteration-context"], true),
    ] {
        let world = World::in_memory();
        let mut command = start_command(&world, script, flags);
        command.env("DESCARTES_FRESH_CONTEXT", variable);
        world.run(command).assert_code(0);
        assert_eq!(
            world.read("seen-2").contains("This is iteration 2"),
            told,
            "{flags:?}"
        );
    }
}

#[test]
fn spec_files_stand_before_the_prompt_within_their_budget() {
    let world = World::in_memory();
    world.write(
        "spec.md",
        format!("# the spec\n{}", "many words here\n".repeat(500)),
    );
    let script = "save-prompt seen\npromise";
    start(&world, script, &["--spec-file", "spec.md"]).assert_code(0);
    let whole = world.read("seen");
    assert!(whole.find("# the spec").unwrap() < whole.rfind("go").unwrap());
    assert!(whole.contains("spec.md") && !whole.contains(world.project().to_str().unwrap()));
    let cut = World::in_memory();
    cut.write("spec.md", world.read("spec.md"));
    start(
        &cut,
        script,
        &["--spec-file", "spec.md", "--max-spec-tokens", "100"],
    )
    .assert_code(0);
    assert!(cut.read("seen").len() < whole.len() / 4);
}

#[test]
fn agents_get_no_terminal_and_no_standard_input_of_ours() {
    let world = World::in_memory();
    let mut command = start_command(&world, "tty-check\nread-stdin-to seen\npromise", &[]);
    command.stdin(Stdio::piped());
    let run = world.run(command);
    run.assert_code(0);
    assert!(run.stdout().contains("controlling=none"), "{run}");
    assert_eq!(world.read("seen"), "");
    assert!(loop_dir(&world).join("runs/0001/stdout.log").exists());
}
