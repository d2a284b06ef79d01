//! Flags of verbs around loops and tasks that no other test is about.

use std::time::Duration;

use descartes_testkit::{World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, start};
use crate::task_common::{graph, repository, roadmap, run, said, scud_project};

const SOON: Duration = descartes_testkit::PATIENCE;

const ROADMAP: &str = "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n";

#[test]
fn unpause_answers_as_json_once_it_has_taken_effect() {
    let world = World::new();
    let script = "sh until test -e go; do sleep 0.05; done\npromise";
    start(&world, script, &["--detach"]).assert_code(0);
    eventually("the agent", SOON, || {
        !events(&world, "run_started").is_empty()
    });
    descartes(&world, &["loop", "pause"]).assert_code(0);
    let answer = descartes(&world, &["loop", "unpause", "--wait", "--json"]);
    answer.assert_code(0);
    let value: Value = serde_json::from_str(&answer.stdout()).unwrap();
    assert!(value.is_object(), "{answer}");
    assert_eq!(events(&world, "unpaused").len(), 1, "{answer}");
    descartes(&world, &["loop", "cancel", "--now"]).assert_code(0);
}

#[test]
fn cli_names_the_agent_of_a_roadmap() {
    let world = repository("ROADMAP.md", ROADMAP);
    world.program("codex", crate::tasks_agents::CODEX);
    let words = ["roadmap", "run", "ROADMAP.md", "--cli", "codex"];
    let ended = run(&world, &[&words[..], &["--permissions", "edit"]].concat());
    ended.assert_code(0);
    assert!(world.has("work-a"), "{ended}");
}

#[test]
fn trust_marks_holds_for_roadmaps() {
    let two = "# Roadmap: R\n## Tasks\n- [ ] **a**: One\n- [ ] **b**: Two\n  - depends: a\n";
    for (flags, code) in [(&[][..], 6), (&["--trust-marks"], 0)] {
        let world = repository("ROADMAP.md", two);
        let file = world.path("ROADMAP.md").display().to_string();
        // The agent of the first task ticks the second.
        let script = format!("sh echo x > work; sed -i 's/\\[ \\] \\*\\*b/[x] **b/' {file}");
        let ended = roadmap(&world, &script, flags);
        assert_eq!(ended.code(), Some(code), "{ended}");
    }
}

#[test]
fn reset_tells_as_json_what_it_forgot() {
    let world = repository("ROADMAP.md", ROADMAP);
    let reset = |world: &World| -> Value {
        let run = run(world, &["roadmap", "reset", "ROADMAP.md", "--json"]);
        run.assert_code(0);
        serde_json::from_str(&run.stdout()).unwrap()
    };
    assert_eq!(reset(&world)["forgotten"], false);
    roadmap(&world, "write work x", &[]).assert_code(0);
    let told = reset(&world);
    assert_eq!(told["forgotten"], true);
    assert!(std::path::Path::new(told["kept"].as_str().unwrap()).exists());
}

#[test]
fn a_spec_is_made_of_what_the_flags_name() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("notes.md", "mind the gap\n");
    world.write("style.md", "use tabs and not blanks\n".repeat(200));
    let spec = |flags: &[&str]| {
        let run = run(
            &world,
            &[&["spec", "1", "--scud-tag", "auth"], flags].concat(),
        );
        run.assert_code(0);
        (run.stdout(), said(&run))
    };
    assert!(!spec(&[]).0.contains("mind the gap"));
    assert!(spec(&["--handoff", "notes.md"]).0.contains("mind the gap"));
    let (whole, _) = spec(&["--spec-file", "style.md"]);
    assert!(whole.contains("use tabs"), "{whole}");
    let (cut, _) = spec(&["--spec-file", "style.md", "--max-spec-tokens", "150"]);
    assert!(cut.len() < whole.len(), "{cut}");
    let (laid_out, _) = spec(&["--spec-template", r"FIRST\n{task}"]);
    assert!(laid_out.starts_with("FIRST\n"), "{laid_out}");
}

#[test]
fn work_land_tells_its_events_as_json() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("README.md", "one\n");
    world.git(["add", "."]);
    world.git(["commit", "-qm", "readme"]);
    world.write("README.md", "mine\n");
    let flags = ["--verify", "test -e README.md"];
    crate::task_common::start(&world, "write README.md agent ;; promise", &flags).assert_code(6);
    world.git(["checkout", "-q", "--", "README.md"]);
    let landed = run(&world, &["work", "land", "--json"]);
    landed.assert_code(0);
    let events = crate::common::json_lines(&landed.stdout());
    assert!(
        events.iter().any(|event| event["kind"] == "work_landed"),
        "{landed}"
    );
}

#[test]
fn open_shows_the_report_in_the_browser() {
    let world = World::new();
    start(&world, "promise", &[]).assert_code(0);
    let shown = world.path("shown");
    let browser = world.program(
        "my-browser",
        &format!(
            "#!/bin/sh\necho \"$1\" > {}.new && mv {0}.new {0}\n",
            shown.display()
        ),
    );
    let mut command = world.descartes(["report", "--open"]);
    command.env("BROWSER", browser);
    world.run(command).assert_code(0);
    eventually("the browser", SOON, || shown.exists());
    assert!(world.read("shown").contains(".html"));
}

#[test]
fn a_trial_runs_the_agent_as_the_flags_say() {
    let world = World::new();
    let args = world.path("args").display().to_string();
    world.program(
        "claude",
        &format!("#!/bin/sh\ncase \"$1\" in --version) echo 2.0.0; exit;; esac\necho \"$GREETING $@\" >> {args}\nexec sleep 1000\n"),
    );
    let flags = [
        "agents",
        "test",
        "claude",
        "--model",
        "small",
        "--env",
        "GREETING=hello",
        "--permissions",
        "all",
        "--timeout",
        "10s",
        "--json",
    ];
    let mut command = world.descartes(flags);
    command.env("IS_SANDBOX", "1");
    let run = world.run_within(command, SOON);
    assert_ne!(run.code(), Some(0), "{run}");
    let told = world.read("args");
    assert!(told.contains("hello "), "{told}");
    assert!(told.contains("--model small"), "{told}");
    assert!(told.contains("dangerously-skip-permissions"), "{told}");
    serde_json::from_str::<Value>(run.stdout().lines().last().unwrap()).unwrap();
}

#[test]
fn the_window_is_asked_for_dark_or_light() {
    for flag in ["--dark", "--light"] {
        let world = World::new();
        let window = "#!/bin/sh\ncase \"$1\" in --version) echo \"descartes-gui $VERSION (window of descartes loops)\";; *) echo \"$@\";; esac\n";
        let window = window.replace("$VERSION", env!("CARGO_PKG_VERSION"));
        let folder = world.root().join("alone");
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("descartes");
        std::fs::copy(descartes_testkit::descartes(), &program).unwrap();
        world.program("descartes-gui", &window);
        let mut command = world.command(program);
        command.args(["gui", flag]);
        let run = world.run(command);
        assert!(run.stdout().contains(flag), "{run}");
    }
}

#[test]
fn a_loop_is_named_by_its_state_file_for_every_verb() {
    let world = World::new();
    world.git_init();
    let flags = ["--state-file", "other.json", "-m", "1"];
    start(&world, "write work x", &flags).assert_code(2);
    let verbs: [&[&str]; 7] = [
        &["loop", "diff", "1"],
        &["loop", "say", "mind the gap"],
        &["loop", "pause"],
        &["loop", "unpause"],
        &["loop", "set", "--max-iterations", "5"],
        &["report"],
        &["loop", "rewind", "0", "--yes"],
    ];
    for verb in verbs {
        descartes(&world, &[verb, &["--state-file", "other.json"]].concat()).assert_code(0);
        let elsewhere = [verb, &["--state-file", "none.json"]].concat();
        assert_ne!(descartes(&world, &elsewhere).code(), Some(0), "{verb:?}");
    }
    assert!(!world.has("work"), "rewound");
    let state: Value = serde_json::from_str(&world.read("other.json")).unwrap();
    assert_eq!(state["config"]["max_iterations"], 5);
}

#[test]
fn what_answers_as_json_answers_with_json() {
    let world = scud_project(graph("1 | One | P | 1 | H", ""));
    world.write("ROADMAP.md", ROADMAP);
    start(&world, "print hm", &["-m", "1"]).assert_code(2);
    let verbs: [&[&str]; 4] = [
        &["doctor"],
        &["roadmap", "check", "ROADMAP.md"],
        &["spec", "1", "--scud-tag", "auth"],
        &["loop", "set", "--max-iterations", "5"],
    ];
    for verb in verbs {
        let plain = descartes(&world, verb).stdout();
        let json = descartes(&world, &[verb, &["--json"]].concat());
        let value: Result<Value, _> = serde_json::from_str(&json.stdout());
        assert!(value.is_ok(), "{json}");
        assert_ne!(plain, json.stdout());
    }
}

#[test]
fn budgets_and_the_prompt_file_of_a_running_loop_are_set() {
    let world = World::new();
    let result = crate::common::prints(&crate::common::claude_result("on it"));
    let script = format!("sh until test -e go; do sleep 0.05; done\n{result}");
    let flags = ["--backend", "claude", "--permissions", "edit", "--detach"];
    start(&world, &script, &flags).assert_code(0);
    eventually("the agent", SOON, || {
        !events(&world, "run_started").is_empty()
    });
    world.write("other.md", "do something else\n");
    let set = [
        "loop",
        "set",
        "--max-cost",
        "0.4",
        "--max-tokens",
        "5000",
        "--prompt-file",
        "other.md",
    ];
    descartes(&world, &set).assert_code(0);
    let config = crate::common::state(&world)["config"].clone();
    assert_eq!(config["max_tokens"], 5000);
    assert!(
        config["prompt_file"]
            .as_str()
            .unwrap()
            .ends_with("other.md")
    );
    // Whoever is told that it is done finds it in the state file, every time.
    for tokens in 5001..5031 {
        let given = tokens.to_string();
        descartes(&world, &["loop", "set", "--max-tokens", &given]).assert_code(0);
        let config = crate::common::state(&world)["config"].clone();
        assert_eq!(config["max_tokens"], tokens);
    }
    world.write("go", "");
    // The first run costs 0.50.
    eventually("the end", SOON, || {
        crate::common::state(&world)["exit_reason"]["budget"] == "cost"
    });
}
