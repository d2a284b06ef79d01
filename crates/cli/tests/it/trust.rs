//! What a project's own config can start or widen holds only once the user has trusted it.

use std::process::Command;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::world::{Finished, bins};
use descartes_testkit::{Pty, World, eventually};
use serde_json::Value;

use crate::common::{descartes, events, loops, start, start_command};
use crate::task_common::{self, WORKS, graph, repository, scud_project};

const SOON: Duration = descartes_testkit::PATIENCE;
const CONFIG: &str = ".descartes/config.toml";

/// A gate of the project's config that leaves a file when it runs.
const GATE: &str = "verify = 'touch gate-ran'\n";

#[track_caller]
fn assert_refused(run: &Finished, words: &[&str]) {
    run.assert_code(65);
    let err = run.stderr();
    for words in words {
        assert!(err.contains(words), "{words}: {run}");
    }
}

/// `descartes` as an agent would call it: with the mark of its loop.
fn from_within(world: &World, words: &[&str]) -> Finished {
    let mut command = world.descartes(words);
    command.env("DESCARTES_LOOP_ID", "0192f0c1-0000-7000-8000-000000000000");
    world.run(command)
}

fn on_terminal(command: &Command) -> Pty {
    Pty::spawn(
        command,
        Size {
            rows: 40,
            columns: 120,
        },
    )
}

#[test]
fn without_a_terminal_an_untrusted_config_is_refused_and_nothing_runs() {
    let world = World::in_memory();
    world.write(CONFIG, GATE);
    let words = [
        "you have not trusted it yet",
        "config.toml",
        "+ verify = [\"touch gate-ran\"]",
        "descartes trust --yes",
        "--trust-config",
    ];
    for flags in [&[][..], &["--detach"], &["--json"]] {
        assert_refused(&start(&world, "touch ran\npromise", flags), &words);
    }
    assert!(!world.has("ran") && !world.has("gate-ran"));
    assert!(loops(&world).is_empty());
    // What the hint names works when it is typed.
    descartes(&world, &["trust", "--yes"]).assert_code(0);
    start(&world, "touch ran\npromise", &[]).assert_code(0);
    assert!(world.has("ran") && world.has("gate-ran"));
}

#[test]
fn other_edits_never_ask_and_changed_keys_are_shown() {
    let world = World::in_memory();
    world.configure(GATE);
    for other in ["max_iterations = 3\n", "# words\nauto_commit = false\n"] {
        world.write(CONFIG, format!("{other}{GATE}"));
        start(&world, "promise", &["--force"]).assert_code(0);
    }
    world.write(CONFIG, "verify = 'curl evil'\non_event = 'evil'\n");
    let words = [
        "has changed since you trusted it",
        "- verify = [\"touch gate-ran\"]",
        "+ verify = [\"curl evil\"]",
        "+ on_event = [\"evil\"]",
    ];
    assert_refused(&start(&world, "promise", &["--force"]), &words);
    // None of these keys: nobody is asked, whatever was trusted before.
    world.write(CONFIG, "max_iterations = 3\nmodel = \"opus\"\n");
    start(&world, "promise", &["--force"]).assert_code(0);
    // What was trusted once is trusted again.
    world.write(CONFIG, GATE);
    start(&world, "promise", &["--force"]).assert_code(0);
}

#[test]
fn every_way_to_start_a_program_or_widen_rights_asks() {
    for key in [
        "default_agent = 'evil'",
        "backend = 'claude'",
        "fallback = ['evil']",
        "on_event = 'evil'",
        "worktree_setup = 'evil'",
        "verify = 'evil'",
        "permissions = 'all'",
        "pass_env = ['SECRET']",
        "prompt_file = '../secret'",
        "spec_file = '/etc/hosts'",
        "model = '--yolo'",
        "[agents.x]\ncommand = 'evil'",
        "[agents.claude]\nargs = ['--yolo']",
    ] {
        let world = World::in_memory();
        world.write(CONFIG, key);
        let run = start(&world, "touch ran\npromise", &[]);
        assert_refused(&run, &["+ ", "descartes trust --yes"]);
        assert!(!world.has("ran"), "{key}");
    }
}

#[test]
fn commands_that_look_start_nothing_and_say_so() {
    let world = World::in_memory();
    std::fs::rename(
        world.program("evil", "#!/bin/sh\ntouch \"${0%/*}/ran\"\necho 1.0.0\n"),
        world.path("evil.sh"),
    )
    .unwrap();
    world.write(
        CONFIG,
        "on_event = './evil.sh'\n[agents.x]\ncommand = './evil.sh'\n[agents.claude]\ncommand = './evil.sh'\n",
    );
    // An agent of the user's own that takes what it does not say from one that the project changed.
    let folder = world.home().join(".config/descartes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("config.toml"),
        "[agents.mine]\nlike = \"claude\"\n",
    )
    .unwrap();
    for words in [
        &["agents"][..],
        &["agents", "--json"],
        &["agents", "show", "x"],
        &["config", "show"],
        &["loop", "list"],
        &["loop", "start", "--dry-run", "--backend", "x", "-p", "go"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let run = descartes(&world, words);
        let said = format!("{}{}", run.stdout(), run.stderr());
        assert!(said.contains("is not trusted yet"), "{words:?}: {run}");
        assert!(said.contains("descartes trust"), "{words:?}: {run}");
        assert!(!world.has("ran"), "{words:?}");
    }
    let listed = descartes(&world, &["agents", "--json"]).stdout();
    let rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let trusted = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["trusted"].clone(), row["version"].clone())
    };
    for name in ["x", "claude", "mine"] {
        assert_eq!(trusted(name), (false.into(), Value::Null), "{name}");
    }
    assert_eq!(trusted("codex").0, true);
    for name in ["x", "claude", "mine"] {
        let run = descartes(&world, &["agents", "test", name]);
        assert_refused(&run, &["agents.x.command", "descartes trust --yes"]);
    }
    assert!(!world.has("ran"));
    descartes(&world, &["trust", "--yes"]).assert_code(0);
    let listed = descartes(&world, &["agents", "--json"]);
    assert!(world.has("ran"), "{listed}");
    assert_eq!(listed.stderr(), "");
}

#[test]
fn trust_config_holds_for_one_run_alone() {
    let world = World::in_memory();
    world.write(CONFIG, GATE);
    start(&world, "promise", &["--trust-config"]).assert_code(0);
    assert!(world.has("gate-ran"));
    assert_refused(
        &start(&world, "promise", &["--force"]),
        &["descartes trust"],
    );
    // A process in the background is told which config the person let it use.
    std::fs::remove_file(world.path("gate-ran")).unwrap();
    let run = start(
        &world,
        "promise",
        &["--force", "--trust-config", "--detach"],
    );
    run.assert_code(0);
    eventually("the gate", SOON, || world.has("gate-ran"));
}

#[test]
fn nobody_can_trust_from_within_a_loop() {
    let world = World::in_memory();
    world.write(CONFIG, GATE);
    for words in [
        &["trust"][..],
        &["trust", "--yes"],
        &["trust", "--revoke"],
        &["loop", "start", "--trust-config", "-c", "true", "-p", "x"],
        &["loop", "resume", "--trust-config"],
        &["roadmap", "run", "R.md", "--trust-config", "-c", "true"],
    ] {
        world.write("R.md", "- [ ] a\n");
        let run = from_within(&world, words);
        run.assert_code(65);
        assert!(run.stderr().contains("inside"), "{words:?}: {run}");
    }
    // Nor is it asked on a terminal that an agent made.
    let mut command = start_command(&world, "promise", &[]);
    command.env("DESCARTES_LOOP_ID", "0192f0c1-0000-7000-8000-000000000000");
    let mut pty = on_terminal(&command);
    assert_eq!(pty.wait(SOON).code(), Some(65));
    assert!(!pty.screen().contains("[y/N]"), "{}", pty.screen());
    // To look is allowed.
    let shown = from_within(&world, &["trust", "--show"]);
    shown.assert_code(0);
    assert!(shown.stdout().contains("not trusted yet"), "{shown}");
    // What an agent lets `init` write is nobody's wish.
    let fresh = World::in_memory();
    fresh.write("Cargo.toml", "");
    from_within(&fresh, &["init"]).assert_code(0);
    assert_refused(&start(&fresh, "promise", &[]), &["not trusted it yet"]);
}

#[test]
fn the_agent_of_a_real_loop_cannot_trust() {
    let world = World::in_memory();
    let program = bins::descartes().display().to_string();
    let state = format!("DESCARTES_STATE_DIR={}", world.state().display());
    let script = format!(
        "echo \"verify = 'evil'\" > .descartes/config.toml; env -u DESCARTES_LOOP_ID {program} trust --yes > said 2>&1; \
         {program} trust --yes >> said 2>&1; echo '<promise>COMPLETE</promise>'"
    );
    let agent = format!("sh -c {}", quoted(&script));
    let run = descartes(
        &world,
        &["loop", "start", "-c", &agent, "-p", "x", "--env", &state],
    );
    run.assert_code(0);
    let again = start(&world, "promise", &["--force"]);
    assert_refused(&again, &["+ verify = [\"evil\"]"]);
    assert!(
        !world.read("said").contains("trusted: "),
        "{}",
        world.read("said")
    );
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn on_a_terminal_it_is_asked_and_only_yes_is_yes() {
    for (typed, trusted) in [
        ("y\n", true),
        ("n\n", false),
        ("\n", false),
        ("\x04", false),
    ] {
        let world = World::in_memory();
        world.write(CONFIG, GATE);
        let mut pty = on_terminal(&start_command(&world, "promise", &[]));
        let screen = pty.wait_text("[y/N]");
        assert!(
            screen.contains("+ verify = [\"touch gate-ran\"]"),
            "{screen}"
        );
        pty.send(typed);
        let code = pty.wait(SOON).code();
        assert_eq!(code, Some(if trusted { 0 } else { 65 }), "{typed:?}");
        let asked = pty.screen().matches("+ verify").count();
        match typed.starts_with('\x04') {
            // Nobody answered.
            true => assert_eq!(asked, 2, "{}", pty.screen()),
            false => assert_eq!(asked, 1, "{}", pty.screen()),
        }
        assert_eq!(world.has("gate-ran"), trusted, "{typed:?}");
        if trusted {
            start(&world, "promise", &["--force"]).assert_code(0);
        }
    }
}

#[test]
fn what_init_writes_is_trusted_as_written() {
    let world = World::in_memory();
    world.write("Makefile", "test:\n\ttouch gate-ran\n");
    descartes(&world, &["init"]).assert_code(0);
    assert!(world.read(CONFIG).contains("verify = "));
    start(&world, "promise", &[]).assert_code(0);
    assert!(world.has("gate-ran"));
    // A config that was there before is not written, and not trusted by that.
    let other = World::in_memory();
    other.write(CONFIG, GATE);
    let run = descartes(&other, &["init"]);
    assert!(run.stderr().contains("is not trusted yet"), "{run}");
    assert_refused(&start(&other, "promise", &[]), &["+ verify"]);
}

#[test]
fn what_a_person_names_is_trusted_by_that() {
    let world = World::in_memory();
    start(&world, "promise", &["--verify", "touch named"]).assert_code(0);
    assert!(world.has("named"));
    let roadmap = "- [ ] **a**: one\n  - check: touch ../../../../checked\n";
    let world = repository("ROADMAP.md", roadmap);
    let run = task_common::roadmap(&world, WORKS, &[]);
    assert!(!run.stderr().contains("trust"), "{run}");
}

#[test]
fn a_running_loop_keeps_what_it_began_with_and_the_next_start_asks() {
    let world = World::in_memory();
    world.configure("on_event = 'touch told'\n");
    let script = "write .descartes/config.toml on_event=\"touch evil\"\npromise";
    start(&world, script, &[]).assert_code(0);
    assert!(world.read(CONFIG).contains("evil"));
    eventually("the hook of the beginning", SOON, || world.has("told"));
    let words = [
        "- on_event = [\"touch told\"]",
        "+ on_event = [\"touch evil\"]",
    ];
    assert_refused(&start(&world, "promise", &["--force"]), &words);
    let status = descartes(&world, &["loop", "status"]);
    status.assert_code(0);
    assert!(
        status.stderr().contains("has changed since you trusted it"),
        "{status}"
    );
    assert!(!world.has("evil"));
}

#[test]
fn gates_of_scud_are_asked_for_where_they_would_be_used() {
    let world = scud_project(graph("1 | One | P | 3 | M", ""));
    world.write(
        ".scud/config.toml",
        "[swarm.backpressure]\ncommands = [\"touch ../../../gate-ran\"]\n",
    );
    let words = [
        "+ swarm.backpressure.commands = [\"touch ../../../gate-ran\"]",
        ".scud/config.toml",
        "descartes trust --yes",
    ];
    assert_refused(&task_common::start(&world, WORKS, &[]), &words);
    assert!(!world.state().join("gate-ran").exists());
    // A gate that the person names leaves SCUD's unused.
    let named = task_common::start(&world, WORKS, &["--verify", "true"]);
    named.assert_code(0);
    assert!(!world.state().join("gate-ran").exists());
    let other = scud_project(graph("1 | One | P | 3 | M", ""));
    other.write(
        ".scud/config.toml",
        "[swarm.backpressure]\ncommands = [\"touch ../../../gate-ran\"]\n",
    );
    descartes(&other, &["trust", "--yes"]).assert_code(0);
    task_common::start(&other, WORKS, &[]).assert_code(0);
    assert!(other.state().join("gate-ran").exists());
}

#[test]
fn a_slot_uses_the_projects_config_and_never_its_own_copy() {
    let world = scud_project(graph("1 | One | P | 3 | M", ""));
    world.configure("verify = 'touch ../../../good'\n");
    world.git(["add", "-f", CONFIG]);
    world.git(["commit", "--quiet", "--message", "share the config"]);
    let script =
        "write .descartes/config.toml verify=\"touch ../../../evil\" ;; write work x ;; promise";
    let run = task_common::start(&world, script, &[]);
    assert!(world.state().join("good").exists(), "{run}");
    assert!(!world.state().join("evil").exists(), "{run}");
}

#[test]
fn trust_is_shown_and_taken_back() {
    let world = World::in_memory();
    let none = descartes(&world, &["trust"]);
    none.assert_code(0);
    assert!(none.stdout().contains("nothing to trust"), "{none}");
    world.write(CONFIG, GATE);
    let refused = descartes(&world, &["trust"]);
    assert_refused(&refused, &["descartes trust --yes"]);
    let shown = |world: &World| {
        let run = descartes(world, &["trust", "--show", "--json"]);
        run.assert_code(0);
        serde_json::from_str::<Value>(&run.stdout()).unwrap()
    };
    assert_eq!(shown(&world)["trusted"], false);
    descartes(&world, &["trust", "--yes"]).assert_code(0);
    let told = shown(&world);
    assert_eq!(told["trusted"], true, "{told}");
    assert_eq!(told["files"][0]["keys"]["verify"], "[\"touch gate-ran\"]");
    let again = descartes(&world, &["trust"]);
    again.assert_code(0);
    assert!(again.stdout().contains("already trusted"), "{again}");
    descartes(&world, &["trust", "--revoke"]).assert_code(0);
    assert_refused(&start(&world, "promise", &[]), &["not trusted it yet"]);
    for words in [
        &["trust", "--yes", "--show"][..],
        &["trust", "--revoke", "--yes"],
        &["trust", "--json"],
        &["trust", "--working-dir", "nowhere"],
    ] {
        descartes(&world, words).assert_code(64);
    }
    // From elsewhere, the hint names the project.
    let mut command = world.descartes(["loop", "start", "-c", "true", "-p", "x", "-w"]);
    command.arg(world.project()).current_dir(world.home());
    let run = world.run(command);
    let hint = format!(
        "descartes trust --yes --working-dir {}",
        world.project().display()
    );
    assert_refused(&run, &[&hint]);
    let mut typed = world.command("sh");
    let program = bins::descartes().display().to_string();
    typed.args(["-c", &hint.replacen("descartes", &program, 1)]);
    typed.current_dir(world.home());
    world.run(typed).assert_code(0);
    start(&world, "promise", &[]).assert_code(0);
}

#[test]
fn trust_is_never_kept_in_the_project() {
    let world = World::in_memory();
    world.write(CONFIG, GATE);
    let within = |words: &[&str]| {
        let mut command = world.descartes(words);
        command.env("DESCARTES_STATE_DIR", world.path("state"));
        world.run(command)
    };
    let run = within(&["trust", "--yes"]);
    assert_refused(&run, &["is inside the project", "--trust-config"]);
    let agent = world.agent("promise");
    let words = ["loop", "start", "-c", &agent, "-p", "x", "--trust-config"];
    within(&words).assert_code(0);
    assert!(world.has("gate-ran"));
}

#[test]
fn a_project_that_was_copied_is_another_one() {
    let world = World::in_memory();
    world.configure(GATE);
    let copy = world.root().join("copy");
    std::fs::rename(world.project(), &copy).unwrap();
    std::fs::create_dir(world.project()).unwrap();
    let mut command = world.descartes(["loop", "start", "-c", "true", "-p", "x"]);
    command.current_dir(&copy);
    assert_refused(&world.run(command), &["+ verify"]);
}

#[test]
fn nothing_in_a_config_reaches_the_terminal_as_it_is() {
    let world = World::in_memory();
    world.write(CONFIG, "verify = \"a\\u001b[2Jb\\u202ec\"\n");
    let run = start(&world, "promise", &[]);
    assert_refused(&run, &["a\\u{1b}[2Jb\\u{202e}c"]);
    assert!(!run.stderr().contains('\u{1b}'), "{run}");
}

#[test]
fn files_to_copy_lie_in_the_project() {
    for name in ["/etc/hosts", "../secret", "a/../../secret"] {
        let world = scud_project(graph("1 | One | P | 3 | M", ""));
        world.configure(format!("worktree_copy = [{name:?}]\n"));
        let run = task_common::start(&world, WORKS, &["--verify", "true"]);
        run.assert_code(64);
        assert!(run.stderr().contains("is not inside the project"), "{run}");
    }
}

#[test]
fn a_loop_that_began_without_a_config_hears_of_no_event_that_came_later() {
    let world = World::in_memory();
    let script = "write .descartes/config.toml on_event=\"touch evil\"\npromise";
    start(&world, script, &[]).assert_code(0);
    assert_eq!(events(&world, "loop_finished").len(), 1);
    assert_refused(
        &start(&world, "promise", &["--force"]),
        &["+ on_event = [\"touch evil\"]"],
    );
    assert!(!world.has("evil"));
}
