//! `descartes agents`: what is there, how it is run, whether it works.

use descartes_testkit::World;
use descartes_testkit::world::Finished;
use serde_json::Value;

use crate::stage::whole;

#[track_caller]
fn agents(world: &World, arguments: &[&str]) -> Finished {
    let mut command = world.descartes(["agents"]);
    command.args(arguments);
    world.run(command)
}

/// A profile in six lines whose agent does what the script says.
fn profile(world: &World, name: &str, stream: &str, script: &str) {
    let command = world.agent(script);
    world.configure(
        format!(
            "[agents.{name}]\ncommand = {command:?}\nargs = [\"--quiet\"]\nprompt_mode = \"stdin\"\nstream = \"{stream}\"\nreports = \"tokens\"\n"
        ),
    );
}

#[test]
fn the_list_says_what_is_installed_in_which_version_and_what_was_tested() {
    let world = World::new();
    world.program("claude", "#!/bin/sh\necho '99.1.0 (Claude Code)'\n");
    world.program("aider", "#!/bin/sh\nexit 1\n");
    let listed = agents(&world, &["--json"]);
    listed.assert_code(0);
    let rows: Vec<Value> = serde_json::from_str(&listed.stdout()).unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let claude = row("claude");
    assert_eq!(claude["version"], "99.1.0");
    assert_eq!(claude["version_is"], "newer");
    assert_eq!(
        (&claude["installed"], &claude["verified"]),
        (&true.into(), &true.into())
    );
    assert!(claude["path"].as_str().unwrap().ends_with("/bin/claude"));
    assert_eq!(row("aider")["version_is"], "unreadable");
    assert_eq!(row("amp")["verified"], false);
    assert_eq!(row("goose")["installed"], false);
    let shown = agents(&world, &[]).stdout();
    assert!(shown.contains("99.1.0 (newer than "), "{shown}");
    assert!(shown.contains("unverified"), "{shown}");
}

#[test]
fn a_program_of_the_folder_is_tested_from_there() {
    let world = World::new();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho hello > hello.txt\necho '<promise>COMPLETE</promise>'\n";
    std::fs::rename(world.program("own-agent", script), world.path("agent.sh")).unwrap();
    for command in ["./agent.sh", "sh agent.sh"] {
        let own = format!("[agents.own]\ncommand = {command:?}\nprompt_mode = \"stdin\"\n");
        world.configure(own);
        agents(&world, &["test", "own"]).assert_code(0);
    }
    assert!(!world.has("hello.txt"));
}

#[test]
fn a_profile_is_shown_as_it_stands_after_the_config() {
    let world = World::new();
    world.write(
        ".descartes/config.toml",
        "[agents.claude]\nargs = [\"-p\", \"--mine\"]\n[agents.own]\nlike = \"codex\"\ncommand = \"own\"\n",
    );
    let claude = agents(&world, &["show", "claude"]).stdout();
    assert!(
        claude.starts_with("[agents.claude]") && claude.contains("--mine"),
        "{claude}"
    );
    assert!(
        claude.contains("stream-json"),
        "what was not changed is there: {claude}"
    );
    let own = agents(&world, &["show", "own"]).stdout();
    assert!(
        own.contains("stream = \"codex\"") && !own.contains("verified"),
        "{own}"
    );
    agents(&world, &["show", "nobody"]).assert_code(64);
}

#[test]
fn a_test_runs_a_task_and_says_what_worked() {
    let world = World::new();
    let script = format!(
        "write hello.txt hello\nsave-prompt seen stdin\n{}",
        whole("codex-tool")
    );
    profile(&world, "mine", "codex", &script);
    let run = agents(&world, &["test", "mine", "--timeout", "30s"]);
    run.assert_code(0);
    for told in ["started", "understood", "COMPLETE", "written", "tokens"] {
        assert!(run.stdout().contains(told), "{told}: {run}");
    }
    assert!(
        !world.has(".descartes/loop-state.json"),
        "the project is left alone"
    );
    assert!(!world.state().join("loops").exists());
    let left = std::fs::read_dir(world.root().join("tmp")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains("agents-test")),
        "{left:?}"
    );
}

#[test]
fn a_test_of_an_agent_that_does_not_work_says_why() {
    let cases = [
        ("codex", "exit 0", "nothing"),
        ("codex", "stream-limit codex 1h", "usage limit"),
        ("text", "print I did it.", "not seen"),
        ("text", "promise", "not written"),
    ];
    for (stream, script, why) in cases {
        let world = World::new();
        profile(&world, "mine", stream, script);
        let run = agents(&world, &["test", "mine", "--json"]);
        run.assert_code(1);
        assert!(run.stdout().contains(why), "{why}: {run}");
        let lines: Vec<Value> = serde_json::from_str(&run.stdout()).unwrap();
        assert!(lines.iter().any(|line| line["level"] == "problem"), "{run}");
    }
    let world = World::new();
    let run = agents(&world, &["test", "goose"]);
    run.assert_code(64);
    assert!(run.stderr().contains("not installed"), "{run}");
}

#[test]
fn agents_get_everything_but_our_own_variables() {
    let world = World::new();
    let agent = world.agent("dump-env seen\npromise");
    let mut command = world.descartes(["loop", "start", "--command", &agent, "--prompt", "go"]);
    command
        .env("DESCARTES_MAX_ITERATIONS", "3")
        .env("MY_OWN", "x");
    world.run(command).assert_code(0);
    let seen = world.read("seen");
    assert!(
        seen.contains("MY_OWN=x") && seen.contains("DESCARTES_ITERATION=1"),
        "{seen}"
    );
    assert!(!seen.contains("DESCARTES_MAX_ITERATIONS"), "{seen}");
    assert!(!seen.contains("DESCARTES_STATE_DIR"), "{seen}");
}

#[test]
fn the_books_examples_are_read() {
    let book =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md"));
    let book = book.unwrap();
    let blocks: Vec<&str> = book
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let world = World::new();
    world.configure(blocks.concat());
    agents(&world, &["show", "mine"]).assert_code(0);
    let agent = world.agent("promise");
    let start = world.descartes(["loop", "start", "--command", &agent, "--prompt", "go"]);
    let run = world.run(start);
    run.assert_code(0);
    assert!(!run.stderr().contains("unknown"), "{run}");
}

#[test]
fn keys_that_an_agent_prints_are_masked_in_views_and_not_in_logs() {
    let key = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA";
    let line = format!(
        r#"print {{"type":"item.completed","item":{{"id":"1","type":"agent_message","text":"The key is {key}, keep it."}}}}"#
    );
    for (backend, script) in [("codex", line), ("generic", format!("print key={key}"))] {
        let world = World::new();
        let agent = world.agent(&script);
        let mut start =
            world.descartes(["loop", "start", "--backend", backend, "--command", &agent]);
        start.args(["--prompt", "go", "-m", "1", "--permissions", "edit"]);
        let run = world.run(start);
        assert!(run.stdout().contains("sk-ant-***"), "{run}");
        assert!(!run.stdout().contains(key), "{run}");
        let loops = std::fs::read_dir(world.state().join("loops")).unwrap();
        let log = loops
            .flatten()
            .next()
            .unwrap()
            .path()
            .join("runs/0001/stdout.log");
        assert!(std::fs::read_to_string(log).unwrap().contains(key));
    }
}
