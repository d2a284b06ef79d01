//! Text of the person's own may begin with `-`, wherever it is given.

use std::time::Duration;

use descartes_testkit::{World, eventually};

use crate::common::{CLAIMS, descartes, start, state};

const LONG: Duration = descartes_testkit::PATIENCE;

#[test]
fn a_prompt_that_is_a_list_reaches_the_agent_as_it_was_typed() {
    for (flag, mode) in [("--prompt", "arg"), ("-p", "stdin")] {
        let world = World::in_memory();
        let script = format!("save-prompt got {mode}\npromise");
        let prompt = "- [ ] fix the parser\n- [ ] write a test";
        start(&world, &script, &[flag, prompt, "--prompt-mode", mode]).assert_code(0);
        assert!(
            world.read("got").starts_with(prompt),
            "{}",
            world.read("got")
        );
        assert_eq!(state(&world)["config"]["prompt"], prompt);
    }
}

#[test]
fn promises_templates_and_names_may_begin_with_a_dash() {
    let world = World::in_memory();
    world.git_init();
    let flags = [
        "--completion-promise",
        "--all-green--",
        "--abort-promise",
        "-stuck",
        "--auto-commit",
        "--commit-template",
        "- {iteration} of the loop",
        "--name",
        "- first",
    ];
    start(&world, "write made x\npromise --all-green--", &flags).assert_code(0);
    assert_eq!(world.git(["log", "-1", "--format=%s"]), "- 1 of the loop");
    let state = state(&world);
    assert_eq!(state["exit_reason"]["type"], "completion_promise_detected");
    assert_eq!(state["name"], "- first");
    // A loop with such a name is named behind `--`.
    descartes(&world, &["loop", "status", "--", "- first"]).assert_code(0);
}

#[test]
fn a_note_that_begins_with_a_dash_is_told_to_the_agent() {
    let world = World::in_memory();
    let script = "save-prompt prompt-${ITERATION}\n@1 touch began\n@1 wait-file go\n@2 promise";
    let mut flags = vec!["--detach", "--name", "-x"];
    flags.extend(["--prompt-mode", "arg"]);
    let begun = start(&world, script, &flags);
    begun.assert_code(0);
    // What it says to type next can be typed.
    assert!(
        begun.stderr().contains("descartes loop logs -f -- -x"),
        "{begun}"
    );
    eventually("the agent is at work", LONG, || world.has("began"));
    for words in [
        &["- use tabs"][..],
        &["---"],
        &["--verbose is no flag of ours", "--json"],
    ] {
        let mut typed = vec!["loop", "say"];
        typed.extend(words);
        descartes(&world, &typed).assert_code(0);
    }
    world.write("go", "");
    eventually("it is over", LONG, || state(&world)["completed"] == true);
    let prompt = world.read("prompt-2");
    for note in ["- use tabs", "---", "--verbose is no flag of ours"] {
        assert!(prompt.contains(note), "{note}: {prompt}");
    }
}

#[test]
fn a_flag_in_place_of_the_text_is_an_error_that_says_how_to_mean_it() {
    let world = World::in_memory();
    for (words, needed, hint) in [
        (
            &["loop", "start", "--prompt", "--verify", "true"][..],
            "--prompt <TEXT>",
            "--prompt=--verify",
        ),
        (
            &["loop", "start", "-p", "-m", "3"],
            "--prompt <TEXT>",
            "--prompt=-m",
        ),
        (
            &[
                "roadmap",
                "run",
                "x.md",
                "--ralph-default-promise",
                "--json",
            ],
            "--ralph-default-promise <TEXT>",
            "--ralph-default-promise=--json",
        ),
    ] {
        let refused = descartes(&world, words);
        refused.assert_code(64);
        assert!(refused.stderr().contains(needed), "{refused}");
        assert!(refused.stderr().contains(hint), "{refused}");
    }
    // And so it is meant.
    start(
        &world,
        CLAIMS,
        &["--prompt=--verify", "--prompt", "--verify"],
    )
    .assert_code(64);
    let agent = world.agent(CLAIMS);
    let typed = ["loop", "start", "--command", &agent, "--prompt=--verify"];
    descartes(&world, &typed).assert_code(0);
    assert_eq!(state(&world)["config"]["prompt"], "--verify");
}

#[test]
fn a_question_in_sql_may_begin_with_a_comment() {
    let world = World::in_memory();
    start(&world, CLAIMS, &["--name", "one"]).assert_code(0);
    let asked = descartes(
        &world,
        &["query", "-- the names\nselect name from loops", "--csv"],
    );
    asked.assert_code(0);
    assert!(asked.stdout().contains("one"), "{asked}");
}
