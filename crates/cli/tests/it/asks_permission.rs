//! An agent that would be denied its tools: the person at a terminal is asked what it may do, and
//! without one the loop is refused.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use descartes_testkit::pty::Size;
use descartes_testkit::{Pty, World};

use crate::common::{claude_result, descartes, loops, prints, start, start_command, state};

const LONG: Duration = descartes_testkit::PATIENCE;
const QUESTION: &str = "[edit/all/no]";
const CLAUDE: [&str; 2] = ["--backend", "claude"];

/// Plays claude: keeps its arguments, and claims.
fn claims() -> String {
    let result = claude_result("<promise>COMPLETE</promise>");
    format!("dump-argv argv\n{}", prints(&result))
}

fn on_terminal(command: &std::process::Command) -> Pty {
    let size = Size {
        rows: 40,
        columns: 120,
    };
    Pty::spawn(command, size)
}

#[test]
fn on_a_terminal_the_answer_is_taken_and_the_loop_runs() {
    for (answer, flag) in [
        ("edit\n", "acceptEdits"),
        ("E\n", "acceptEdits"),
        ("what?\n\nall\n", "--dangerously-skip-permissions"),
    ] {
        let world = World::new();
        let flags = [&CLAUDE[..], &["--env", "IS_SANDBOX=1", "--sandbox", "off"]].concat();
        let mut pty = on_terminal(&start_command(&world, &claims(), &flags));
        let asked = pty.wait_text(QUESTION);
        assert!(
            asked.contains("What may claude do without asking?"),
            "{asked}"
        );
        assert!(
            asked.contains("it cannot run commands, such as your tests"),
            "{asked}"
        );
        assert!(
            asked.contains("permissions = \"edit\" in the config"),
            "{asked}"
        );
        assert!(loops(&world).is_empty(), "nothing was begun yet");
        pty.send(answer);
        assert_eq!(pty.wait(LONG).code(), Some(0), "{}", pty.screen());
        assert!(world.read("argv").contains(flag), "{}", world.read("argv"));
        let kept = if flag == "acceptEdits" { "edit" } else { "all" };
        assert_eq!(state(&world)["config"]["permissions"], kept);
    }
}

#[test]
fn no_and_the_end_of_input_refuse_and_leave_nothing() {
    for answer in ["no\n", "n\n", "\x04"] {
        let world = World::new();
        let mut pty = on_terminal(&start_command(&world, &claims(), &CLAUDE));
        pty.wait_text(QUESTION);
        pty.send(answer);
        assert_eq!(pty.wait(LONG).code(), Some(65), "{}", pty.screen());
        assert!(
            pty.screen().contains("--permissions edit"),
            "{}",
            pty.screen()
        );
        assert!(loops(&world).is_empty());
        assert!(!world.has("argv") && !world.has(".descartes/loop-state.json"));
    }
    let world = World::new();
    let mut pty = on_terminal(&start_command(&world, &claims(), &CLAUDE));
    pty.wait_text(QUESTION);
    pty.send("\x03");
    let ended = pty.wait(LONG);
    assert!(
        ended.signal().is_some() || ended.code() == Some(130),
        "{ended}"
    );
    assert!(loops(&world).is_empty());
}

#[test]
fn programs_are_never_asked() {
    for flags in [&["--json"][..], &["--detach"], &["--dry-run"]] {
        let world = World::new();
        let flags = [&CLAUDE[..], flags].concat();
        let mut pty = on_terminal(&start_command(&world, &claims(), &flags));
        assert_eq!(pty.wait(LONG).code(), Some(65), "{}", pty.screen());
        assert!(!pty.screen().contains(QUESTION), "{}", pty.screen());
        assert!(loops(&world).is_empty());
    }
    let world = World::new();
    let refused = start(&world, &claims(), &CLAUDE);
    refused.assert_code(65);
    let said = refused.stderr();
    assert!(said.contains("--permissions edit"), "{refused}");
    assert!(!said.contains(QUESTION), "{refused}");
    // An agent on a terminal of its own decides nothing either.
    let mut within = start_command(&world, &claims(), &[&CLAUDE[..], &["--nested"]].concat());
    within.env("DESCARTES_LOOP_ID", "0192f0c1-0000-7000-8000-000000000000");
    let mut pty = on_terminal(&within);
    assert_eq!(pty.wait(LONG).code(), Some(65), "{}", pty.screen());
    assert!(!pty.screen().contains(QUESTION), "{}", pty.screen());
}

#[test]
fn a_loop_that_is_taken_up_asks_and_its_hint_can_be_typed() {
    let world = World::new();
    let agent = world.agent(&claims());
    let words = shell_words::split(&agent).unwrap();
    let by_hand = serde_json::json!({
        "version": "1.0",
        "iteration": 0,
        "config": {
            "command": words[0], "args": words[1..], "prompt": "go", "completion_promise": "COMPLETE",
            "backend": { "backend_type": "claude" },
        },
        "completed": false,
        "exit_reason": { "type": "running" },
    });
    world.write(".descartes/loop-state.json", by_hand.to_string());
    let refused = descartes(&world, &["loop", "resume"]);
    refused.assert_code(65);
    let said = refused.stderr();
    assert!(said.contains("--permissions edit"), "{refused}");
    assert!(
        !said.contains("--command"),
        "resume has no such flag: {refused}"
    );
    let mut pty = on_terminal(&world.descartes(["loop", "resume"]));
    pty.wait_text(QUESTION);
    pty.send("edit\n");
    assert_eq!(pty.wait(LONG).code(), Some(0), "{}", pty.screen());
    assert!(world.read("argv").contains("acceptEdits"));
    assert_eq!(state(&world)["config"]["permissions"], "edit");
}

#[test]
fn tasks_of_a_roadmap_ask_once_for_all() {
    let world = World::new();
    world.git_init();
    world.write(
        "ROADMAP.md",
        "# Plan\n\n## Tasks\n\n- [ ] **a**: First\n- [ ] **b**: Second\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "plan"]);
    let agent = world.agent(&prints(&claude_result("<promise>COMPLETE</promise>")));
    let words = ["roadmap", "run", "ROADMAP.md", "--command", &agent];
    let words = [&words[..], &CLAUDE].concat();
    let mut pty = on_terminal(&world.descartes(words));
    pty.wait_text(QUESTION);
    pty.send("edit\n");
    pty.wait(LONG);
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    assert_eq!(raw.matches(QUESTION).count(), 1, "{raw}");
    assert!(raw.contains("task a") && raw.contains("task b"), "{raw}");
}

#[test]
fn an_answer_that_is_none_is_explained_and_the_end_of_input_ends_the_line() {
    let world = World::new();
    let mut pty = on_terminal(&start_command(&world, &claims(), &CLAUDE));
    pty.wait_text(QUESTION);
    pty.send("y\n");
    pty.wait_text("`y` is no answer: type one of these: edit, all, no");
    pty.send("\x04");
    assert_eq!(pty.wait(LONG).code(), Some(65), "{}", pty.screen());
    let screen = pty.screen();
    let error = screen.lines().find(|line| line.contains("error:"));
    assert!(
        error.is_some_and(|line| line.starts_with("error:")),
        "{screen}"
    );
}

#[test]
fn nobody_is_asked_about_an_agent_that_is_not_there() {
    let world = World::new();
    let words = ["loop", "start", "--command", "claude", "--prompt", "go"];
    let mut command = world.descartes(words);
    command.env("PATH", "/usr/bin:/bin");
    let mut pty = on_terminal(&command);
    assert_eq!(pty.wait(LONG).code(), Some(1), "{}", pty.screen());
    assert!(
        pty.screen().contains("agent not found: claude"),
        "{}",
        pty.screen()
    );
    assert!(!pty.screen().contains(QUESTION), "{}", pty.screen());
    // Nor about one task's agent while another's is not there.
    world.git_init();
    world.write(
        "R.md",
        "# Roadmap: R\n\n## Tasks\n\n- [ ] **a**: First\n- [ ] **b**: Second\n  - cli: codex\n",
    );
    world.git(["add", "."]);
    world.git(["commit", "--quiet", "--message", "plan"]);
    let agent = world.agent(&claims());
    let words = [
        "roadmap",
        "run",
        "R.md",
        "--command",
        &agent,
        "--backend",
        "claude",
    ];
    let mut command = world.descartes(words);
    command.env("PATH", "/usr/bin:/bin");
    let mut pty = on_terminal(&command);
    assert_eq!(pty.wait(LONG).code(), Some(1), "{}", pty.screen());
    assert!(
        pty.screen().contains("task b: agent not found: codex"),
        "{}",
        pty.screen()
    );
    assert!(!pty.screen().contains(QUESTION), "{}", pty.screen());
}

#[test]
fn what_was_denied_is_told_with_what_allows_it_and_ends_the_loop_at_the_second_time() {
    let world = World::new();
    let denied = claude_result("I could not run the tests.").replace(
        "\"permission_denials\":[]",
        r#""permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"make test"}}]"#,
    );
    let flags = [&CLAUDE[..], &["--permissions", "edit"]].concat();
    let ended = start(&world, &prints(&denied), &flags);
    ended.assert_code(7);
    let said = format!("{}{}", ended.stdout(), ended.stderr());
    assert!(
        said.contains("was denied: Bash(make test); allow them with --permissions all"),
        "{said}"
    );
    assert!(said.contains("the agent failed 2 times in a row"), "{said}");
    assert!(
        said.contains("descartes loop resume --permissions all"),
        "{said}"
    );
    assert_eq!(state(&world)["iteration"], 2);
}
